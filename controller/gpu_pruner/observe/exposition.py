"""From an exporter's text page to samples of the fields that we know. Pure.

Lines of other metrics are skipped unread. Labels are read by `prometheus_client`'s parser, which is
slow, so `observe.labels.Identities` asks for each series once and not once per scrape. A line of a
known metric that cannot be read condemns the whole page: half a page would look like idle devices.
Called by `observe.scrape` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from gpu_pruner.errors import ObservationError
from gpu_pruner.model.foreign import quoted
from gpu_pruner.observe.profiles import Field


class ExposedSample(NamedTuple):
    """One line of the page."""

    field: Field
    series: str
    """Metric name and labels as they stand on the page; `read_labels` takes them apart."""
    value: float
    """As exported, without scale. A timestamp on the line is ignored: the scrape's time counts."""


class Page(NamedTuple):
    """What a page holds."""

    samples: tuple[ExposedSample, ...]
    """Of the fields that were asked for, in the page's order."""
    others: frozenset[str]
    """Names of all other metrics."""


def read_page(text: str, fields: Mapping[str, Field]) -> Page:
    """Read a page in the Prometheus text format.

    Args:
        text: the page.
        fields: what to read, by metric name.

    Raises:
        ObservationError: a line of a known metric cannot be read.
    """
    samples: list[ExposedSample] = []
    others: set[str] = set()
    for line in text.split("\n"):  # `splitlines` also splits at characters of a label
        words = line.partition("{")[0].split(maxsplit=1)
        if not words or words[0].startswith("#"):
            continue
        field = fields.get(words[0])
        if field is None:
            others.add(words[0])
        else:
            samples.append(_sample(field, line))
    return Page(tuple(samples), frozenset(others))


def read_labels(series: str) -> dict[str, str]:
    """Read the labels of a series as it stands on the page.

    Args:
        series: for example ``DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aaaa"}``.

    Returns:
        Label name to value.

    Raises:
        ObservationError: it is malformed.
    """
    try:
        (family,) = text_string_to_metric_families(f"{series} 0")
        (sample,) = family.samples
    except ValueError as error:
        raise ObservationError(f"a line cannot be read: {quoted(series)}") from error
    return dict(sample.labels)


def _sample(field: Field, line: str) -> ExposedSample:
    labels, brace, rest = line.rpartition("}")
    if not brace:
        labels, _, rest = line.strip().partition(" ")
    try:
        value = float(rest.split()[0])
    except (IndexError, ValueError) as error:
        raise ObservationError(f"a line cannot be read: {quoted(line)}") from error
    return ExposedSample(field, f"{labels}{brace}".strip(), value)

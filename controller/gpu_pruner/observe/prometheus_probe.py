"""What telemetry there is: which fields, which label scheme, how often. Pure.

Builds the probe's two questions and reads their answers; `observe.prometheus` asks them at start
and every ten minutes. The probe chooses what the screen asks for and tells the operator in words
what was found. It never chooses owners: both label triples go to `resolve`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import msgspec

from gpu_pruner.model.signals import Signal
from gpu_pruner.model.units import MINUTE, Seconds
from gpu_pruner.observe import labels
from gpu_pruner.observe.profiles import FIELDS, LIVENESS_ORDER, Field, Use
from gpu_pruner.observe.prometheus_replies import Series
from gpu_pruner.observe.promql import literal

PROBE_EVERY: Seconds = 10 * MINUTE
DEFAULT_INTERVAL: Seconds = 30.0
"""Assumed scrape interval while fewer than two samples of a series are there to tell it."""

STEP_GRAIN: Seconds = 30.0
"""Steps longer than a minute are whole multiples of this, so that jitter does not renumber them."""

INTERVAL_TOLERANCE = 0.1
"""A new estimate of the scrape interval counts only if it differs by more than this ratio."""

_SAMPLED_DEVICES = 5
_MODE = "mode"
_HINTED_NAMES = 5
_EXPORTERS = ".*dcgm-exporter.*"
"""Pods that are not workloads whatever the label scheme."""


class _Labels(msgspec.Struct, gc=False):
    mode: str = ""
    uuid: str = msgspec.field(name=labels.UUID, default="")
    metric: str = msgspec.field(name="__name__", default="")


_LABELS = msgspec.json.Decoder(_Labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What was found. Counts are numbers of devices or series at the time of asking."""

    devices: Mapping[str, int]
    """By metric name; metrics that nobody exports are absent."""
    exported: int = 0
    """Series with a pod in ``exported_pod``."""
    native: int = 0
    """Series with a pod in ``pod`` only, in jobs where no series has ``exported_pod``."""
    util_only: int = 0
    """Devices with utilisation and no engine activity."""
    duplicates: int = 1
    """Most series that say the same of one device: 2 for an HA pair or a double scrape."""
    sample: tuple[str, ...] = ()
    """A few UUIDs, to measure the scrape interval on."""

    @property
    def series(self) -> int:
        """Return about how many series the largest answer will have."""
        return max(self.devices.values(), default=0) * max(1, self.duplicates)

    @property
    def screened(self) -> tuple[Field, ...]:
        """Return the fields that a screen asks for: all activity, and liveness for every device."""
        chosen = [one for one in FIELDS if one.use is Use.ACTIVITY and one.metric in self.devices]
        covered = 0
        for signal in LIVENESS_ORDER:
            fields = [one for one in FIELDS if one.signal is signal and one.metric in self.devices]
            count = sum(self.devices[one.metric] for one in fields)
            if count > covered:
                chosen += fields
                covered = count
        return tuple(chosen)

    def notes(self, *, honor_labels: bool | None) -> tuple[str, ...]:
        """Return what the operator should know, in sentences."""
        return tuple(self._notes(honor_labels))

    def _notes(self, honor_labels: bool | None) -> Iterable[str]:  # noqa: FBT001 - the setting itself
        yield self._scheme()
        if honor_labels is True and self.exported and not self.native:
            yield "honor_labels is true, but workloads are in exported_pod: unset it, or set false"
        if honor_labels is False and self.native and not self.exported:
            yield "honor_labels is false, but workloads are in pod: unset it, or set true"
        if self.util_only:
            yield (
                f"{self.util_only} devices export only GPU_UTIL; their window is doubled "
                "(profiling metrics would make it normal)"
            )
        if self.duplicates > 1:
            yield (
                f"up to {self.duplicates} series say the same of one device (HA pair or double "
                "scrape); harmless, the highest counts"
            )

    def _scheme(self) -> str:
        if self.exported and self.native:
            return (
                f"label schemes are mixed: exported_pod on {self.exported} series, pod on "
                f"{self.native}"
            )
        if self.exported:
            return f"workloads are in exported_pod (honorLabels false) on {self.exported} series"
        if self.native:
            return f"workloads are in pod (honorLabels true) on {self.native} series"
        return "no series names a pod: nothing is allocated, or the exporter's pod mapping is off"


def probe_query() -> str:
    """Return the one query whose rows carry, as label ``mode``, what they count."""
    engine, util = _metric(Signal.ENGINE), _metric(Signal.UTIL)
    device = f"{labels.UUID}, {labels.MIG_INSTANCE}"
    exported = _either(f'{labels.EXPORTED_POD}!=""')
    # Per job: where any series has exported_pod, a pod alone is the exporter's own.
    native = _either(f'{labels.POD}!="",{labels.EXPORTED_POD}="",{labels.POD}!~"{_EXPORTERS}"')
    owner = f"{device}, {labels.POD}, {labels.EXPORTED_POD}"
    rows = {
        "exported": f"count({exported})",
        "native": f"count({native} unless on ({labels.JOB}) {exported})",
        "util_only": f"count(count by ({device}) ({util}) unless count by ({device}) ({engine}))",
        "duplicates": f"max(count by ({owner}) {_either()})",
        "sample": f"topk({_SAMPLED_DEVICES}, count by ({labels.UUID}) {_either()})",
    }
    for field in FIELDS:
        rows[field.metric] = f'count(count by ({device}) ({field.metric}{{{labels.UUID}!=""}}))'
    return " or ".join(
        f'label_replace({query}, "{_MODE}", "{mode}", "", "")' for mode, query in rows.items()
    )


def read_probe(rows: Iterable[Series]) -> Probe:
    """Read the answer to `probe_query`.

    Args:
        rows: instant values; a mode without a row counted nothing.
    """
    counts: dict[str, int] = {}
    sample: list[str] = []
    for row in rows:
        told = _LABELS.decode(row.metric)
        if told.mode == "sample" and told.uuid:
            sample.append(told.uuid)
        elif row.value is not None:
            counts[told.mode] = int(float(row.value[1]))
    return Probe(
        devices={one.metric: counts[one.metric] for one in FIELDS if one.metric in counts},
        exported=counts.get("exported", 0),
        native=counts.get("native", 0),
        util_only=counts.get("util_only", 0),
        duplicates=counts.get("duplicates", 1),
        sample=tuple(sorted(sample)),
    )


def samples_query(uuids: Iterable[str]) -> str:
    """Return the query for the raw samples of a few devices, newest ten minutes."""
    names = f"{_metric(Signal.ENGINE)}|{_metric(Signal.UTIL)}"
    matched = "|".join(literal(uuid) for uuid in uuids)
    return f'{{__name__=~"{names}",{labels.UUID}=~"{matched}"}}[10m]'


def scrape_interval(series: Iterable[Series]) -> Seconds | None:
    """Return the usual time between two samples of one series.

    Args:
        series: raw samples, as `samples_query` asks for.

    Returns:
        Whole seconds, at least 1; None where no series has two samples.
    """
    gaps = [later[0] - earlier[0] for one in series for earlier, later in pairwise(one.values)]
    return max(1.0, float(round(median(gaps)))) if gaps else None


def step_seconds(interval: Seconds) -> Seconds:
    """Return the length of a step: a minute, or the scrape interval if that is longer.

    Args:
        interval: time between two samples of a series.

    Returns:
        60, or the interval rounded up to a multiple of `STEP_GRAIN`.
    """
    if interval <= MINUTE * (1 + INTERVAL_TOLERANCE):
        return MINUTE
    return math.ceil(interval / STEP_GRAIN) * STEP_GRAIN


def hint_query() -> str:
    """Return the query for GPU metric names that we do not know; asked only if none is known."""
    names = "(DCGM|dcgm|nvidia_smi|nvidia_gpu|amd|gpu)_.+"
    return f'topk({_HINTED_NAMES}, count by (__name__) ({{__name__=~"{names}"}}))'


def read_hint(rows: Iterable[Series]) -> tuple[str, ...]:
    """Return the metric names of an answer to `hint_query`, sorted."""
    return tuple(sorted(_LABELS.decode(row.metric).metric for row in rows))


def _either(matchers: str = "") -> str:
    """Return the series of engine activity, and of utilisation where there is none, in brackets."""
    both = f'{labels.UUID}!=""{"," if matchers else ""}{matchers}'
    return f"({_metric(Signal.ENGINE)}{{{both}}} or {_metric(Signal.UTIL)}{{{both}}})"


def _metric(signal: Signal) -> str:
    """Return the first metric name of a signal."""
    return next(field.metric for field in FIELDS if field.signal is signal)

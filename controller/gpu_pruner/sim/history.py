"""What a Prometheus would have stored of the simulated exporters, as OpenMetrics text.

For ``promtool tsdb create-blocks-from openmetrics``: each line is a stored sample, with the
target's labels joined to the exporter's as ``honorLabels`` true or false would have joined them.
Pure; the same arithmetic as a live scrape, so history and live series meet without a seam.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.sim.exporter import FAMILIES, Exporter, families_of, line
from gpu_pruner.sim.world import World, within

_Labels: TypeAlias = tuple[tuple[str, str], ...]

TARGET_LABELS: Mapping[str, str] = {
    "job": "dcgm-exporter",
    "instance": "{node}:9400",
    "namespace": "gpu-operator",
    "pod": "dcgm-exporter-{node}",
    "service": "dcgm-exporter",
    "container": "exporter",
}
"""Labels that a ServiceMonitor gives its targets; ``{node}`` stands for the node's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scraping:
    """When and how the imagined Prometheus scraped."""

    start: Timestamp
    end: Timestamp
    """Inclusive."""
    interval_seconds: Seconds = 30.0
    honor_labels: bool = False
    target_labels: Mapping[str, str] | None = None
    """None: `TARGET_LABELS`."""


def openmetrics_history(world: World, exporter: Exporter, *, scraping: Scraping) -> Iterator[str]:
    """Write the stored samples, line by line, ready to be joined and fed to promtool."""
    series: dict[str, dict[_Labels, list[str]]] = {
        family.name: defaultdict(list) for family in FAMILIES
    }
    for node in world.nodes:
        target = _target(scraping, node.name)
        for moment in _moments(scraping):
            if within(node.exporter_gaps, exporter.meter.minute(moment)):
                continue
            for row in exporter.rows(node.name, moment):
                exported = dict(row.device_labels + row.pod_labels)
                labels = stored_labels(exported, target, honor_labels=scraping.honor_labels)
                for family in families_of(row.device):
                    sample = f"{family.value(row.reading)} {moment:.3f}"
                    series[family.name][labels].append(sample)
    for name, by_labels in series.items():
        yield f"# TYPE {name} unknown\n"
        for labels, samples in by_labels.items():
            head = line(name, labels)
            yield from (f"{head}{sample}\n" for sample in samples)
    yield "# EOF\n"


def _moments(scraping: Scraping) -> Iterator[Timestamp]:
    count = int((scraping.end - scraping.start) // scraping.interval_seconds) + 1
    return (scraping.start + number * scraping.interval_seconds for number in range(count))


def _target(scraping: Scraping, node: str) -> Mapping[str, str]:
    template = TARGET_LABELS if scraping.target_labels is None else scraping.target_labels
    return {key: value.format(node=node) for key, value in template.items()}


def stored_labels(
    exported: Mapping[str, str], target: Mapping[str, str], *, honor_labels: bool
) -> tuple[tuple[str, str], ...]:
    """Join the exporter's labels with the target's as a scrape does.

    Where both carry a label, ``honorLabels: true`` keeps the exporter's value; false keeps the
    target's and renames the exporter's to ``exported_<label>``.
    """
    joined = dict(target)
    for key, value in exported.items():
        if key in target and not honor_labels:
            joined[f"exported_{key}"] = value
        else:
            joined[key] = value
    return tuple(sorted(joined.items()))

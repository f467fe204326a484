"""What a Prometheus would have stored of the simulated exporters, as OpenMetrics text.

For ``promtool tsdb create-blocks-from openmetrics``: each line is a stored sample, with the
target's labels joined to the exporter's as ``honorLabels`` true or false would have joined them.
Pure; the same arithmetic as a live scrape, so history and live series meet without a seam.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.sim.exporter import FAMILIES, Family, line, rows
from gpu_pruner.sim.meter import Meter
from gpu_pruner.sim.occupancy import Occupancy
from gpu_pruner.sim.world import World, within

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


def openmetrics_history(
    world: World, occupancy: Occupancy, meter: Meter, scraping: Scraping
) -> Iterator[str]:
    """Write the stored samples, line by line, ready to be joined and fed to promtool."""
    for family in FAMILIES:
        yield f"# TYPE {family.name} unknown\n"
        for node in world.nodes:
            gaps = node.exporter_gaps
            series = _series(family, node.name, gaps=gaps, source=(meter, occupancy), how=scraping)
            for samples in series.values():
                yield from samples
    yield "# EOF\n"


def _series(
    family: Family,
    node: str,
    *,
    gaps: tuple[tuple[float, float], ...],
    source: tuple[Meter, Occupancy],
    how: Scraping,
) -> Mapping[tuple[tuple[str, str], ...], list[str]]:
    meter, occupancy = source
    template = TARGET_LABELS if how.target_labels is None else how.target_labels
    target = {key: value.format(node=node) for key, value in template.items()}
    series: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    count = int((how.end - how.start) // how.interval_seconds) + 1
    for number in range(count):
        moment = how.start + number * how.interval_seconds
        if within(gaps, meter.minute(moment)):
            continue
        for row in rows(meter, occupancy, node, moment):
            if family.on_slices or not row.device.mig_instance:
                exported = dict(row.device_labels + row.pod_labels)
                labels = stored_labels(exported, target, honor_labels=how.honor_labels)
                sample = line(family.name, labels, family.value(row.reading))
                series[labels].append(f"{sample} {moment:.3f}\n")
    return series


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

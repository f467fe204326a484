"""From what GPUs do to what an honest exporter says of it, sample by sample.

A `Strip` is what one target exported of one device under one label set. Lies and restarts are
edits of strips: samples are taken away, changed, or put under other labels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from race.truth import Work
from support.prometheus import History, as_stored
from support.worlds import DRAM, ENCODER, ENERGY, ENGINE, POWER, UTIL

PROFILING = (ENGINE, DRAM)
"""Metrics that only the profiling module gives."""
BOARD = (ENERGY, POWER)
"""Metrics that belong to the physical GPU, also where it is sliced."""

_LOUD_ENGINE = 0.05
"""From here on a sampled utilisation is sure to show work."""
_CATCHES = 3.0
"""How much likelier than by chance a sample of utilisation meets a rare kernel (it looks at up to
a second)."""

Sheet = dict[str, dict[float, float]]
"""Metric to moment to value."""


@dataclass
class Strip:
    """One label set of one device, with its samples."""

    labels: dict[str, str]
    sheet: Sheet
    target: dict[str, str] = field(default_factory=dict)

    def histories(self, *, honor_labels: bool) -> list[History]:
        """Return what Prometheus has stored of it."""
        stored = as_stored(self.labels, honor_labels=honor_labels, target=self.target)
        return [
            History(metric, stored, sorted(row.items()))
            for metric, row in self.sheet.items()
            if row
        ]

    def keep(self, wanted: Callable[[float], bool]) -> Strip:
        """Return a copy with some moments only."""
        sheet = {
            metric: {at: value for at, value in row.items() if wanted(at)}
            for metric, row in self.sheet.items()
        }
        return replace(self, labels=dict(self.labels), sheet=sheet, target=dict(self.target))

    def overwrite(
        self, metrics: Collection[str], value: float, *, since: float = 0.0, until: float = 1e12
    ) -> None:
        """Let metrics read a constant for a while; those that are not exported stay so."""
        for metric in metrics:
            row = self.sheet.get(metric, {})
            row.update({at: value for at in row if since < at <= until})

    def freeze(self, since: float) -> None:
        """Let every metric read for ever what it read at a moment."""
        for row in self.sheet.values():
            before = [at for at in row if at <= since]
            if before:
                held = row[max(before)]
                row.update(dict.fromkeys((at for at in row if at > since), held))

    def drop(self, *metrics: str) -> None:
        """Stop exporting metrics."""
        for metric in metrics:
            self.sheet.pop(metric, None)


def read(work: Work, moments: Collection[float], rng: Random) -> Sheet:
    """Return what an honest exporter reads at these moments.

    Args:
        work: of the GPU; a reading is the average of the poll that ends at its moment.
        moments: ascending, Unix seconds.
        rng: for noise.
    """
    sheet: Sheet = {metric: {} for metric in (ENGINE, DRAM, UTIL, ENCODER, ENERGY, POWER)}
    joules, before = rng.uniform(1e6, 1e9), min(moments)
    idle_watts = rng.uniform(60, 90)
    for at in moments:
        now = [span for span in work if span.begin < at <= span.end]
        engine = max((span.engine for span in now), default=0.0) * rng.uniform(0.95, 1.0)
        extra = max((span.dram for span in now), default=0.0)
        watts = idle_watts + 500 * engine + rng.uniform(0, 2)
        joules += watts * max(1.0, at - before)
        before = at
        sheet[ENGINE][at] = round(engine, 6)
        sheet[DRAM][at] = round((0.6 if engine >= _LOUD_ENGINE else 0.3) * engine + extra, 6)
        sheet[UTIL][at] = _utilisation(engine, rng)
        sheet[ENCODER][at] = max((span.encoder for span in now), default=0.0)
        sheet[ENERGY][at] = float(round(joules * 1000))
        sheet[POWER][at] = round(watts, 3)
    return sheet


def _utilisation(engine: float, rng: Random) -> float:
    if engine >= _LOUD_ENGINE:
        return float(min(100, max(1, round(100 * engine * rng.uniform(0.9, 1.1)))))
    return 1.0 if rng.random() < _CATCHES * engine else 0.0


def without(sheet: Sheet, metrics: Collection[str]) -> Sheet:
    """Return the rest of a sheet."""
    return {metric: row for metric, row in sheet.items() if metric not in metrics}


def only(sheet: Sheet, metrics: Collection[str]) -> Sheet:
    """Return a part of a sheet."""
    return {metric: row for metric, row in sheet.items() if metric in metrics}


def relabelled(strip: Strip, labels: Mapping[str, str], begin: float, end: float) -> list[Strip]:
    """Cut a strip so that it carries other labels for a while; an empty label is none."""
    inside = strip.keep(lambda at: begin < at <= end)
    merged = {**inside.labels, **labels}
    inside.labels = {name: text for name, text in merged.items() if text}
    return [strip.keep(lambda at: not begin < at <= end), inside]

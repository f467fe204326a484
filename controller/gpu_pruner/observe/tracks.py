"""Per-step peaks of every series, gathered into tracks.

Used by both sources: for one answer by `observe.prometheus`, as the memory of the whole window by
`observe.scrape`. A value that is not a number or below zero is kept on a track of its own, so that
a healthy duplicate or a higher value in the same step never hides it.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from itertools import chain
from typing import TypeAlias

from gpu_pruner.model.signals import DeviceId, Period, SeriesLabels, Track
from gpu_pruner.observe.labels import Identity
from gpu_pruner.observe.profiles import Field

_Key: TypeAlias = tuple[str, Identity, bool]
"""Metric name, whose series, and whether it is the track of values no healthy reading can have."""


class _Peaks:
    """Steps of one series, ascending, with the peak of each. 16 bytes per step."""

    __slots__ = ("field", "steps", "values")

    def __init__(self, field: Field) -> None:
        self.field = field
        self.steps = array("q")
        self.values = array("d")

    def record(self, step: int, value: float) -> None:
        """Add a value; within a step the higher one stays, and not-a-number gives way."""
        if not self.steps or step > self.steps[-1]:
            self.steps.append(step)
            self.values.append(value)
            return
        at = bisect_left(self.steps, step)
        if self.steps[at] != step:
            self.steps.insert(at, step)
            self.values.insert(at, value)
        elif math.isnan(self.values[at]) or value > self.values[at]:
            self.values[at] = value

    def forget_before(self, step: int) -> None:
        """Drop every step below this one."""
        end = bisect_left(self.steps, step)
        del self.steps[:end], self.values[:end]

    def within(self, first: int, last: int) -> tuple[tuple[int, float], ...]:
        """Return the steps from first to last, both included."""
        part = slice(bisect_left(self.steps, first), bisect_right(self.steps, last))
        return tuple(zip(self.steps[part], self.values[part], strict=True))


class TrackTable:
    """Peaks of many series, by field, device and labels."""

    def __init__(self) -> None:
        self._series: dict[_Key, _Peaks] = {}

    def __len__(self) -> int:
        """Return how many series are held."""
        return len(self._series)

    def record(self, field: Field, identity: Identity, points: Iterable[tuple[int, float]]) -> None:
        """Add points of one series.

        Args:
            field: which metric; its scale is applied here and nowhere else.
            identity: the series' device and labels.
            points: (step number, value as exported), in any order. A value at another scale than
                the field's is kept as it is, with a not-a-number beside it, because it shows work
                and must not be believed.
        """
        scale, plain = field.scale, field.single_scale and field.proves_idle
        healthy = self._series.get((field.metric, identity, False))
        for step, exported in points:
            value = exported * scale
            if not value >= 0:
                self._peaks(field, identity, flawed=True).record(step, value)
                continue
            if not plain:
                if field.is_ambiguous(exported):
                    self._peaks(field, identity, flawed=True).record(step, math.nan)
                    value = exported
                if not value and not field.proves_idle:
                    continue
            if healthy is None:
                healthy = self._peaks(field, identity, flawed=False)
            healthy.record(step, value)

    def _peaks(self, field: Field, identity: Identity, *, flawed: bool) -> _Peaks:
        return self._series.setdefault((field.metric, identity, flawed), _Peaks(field))

    def forget_before(self, step: int) -> None:
        """Drop every step below this one, and series without any step left."""
        for peaks in self._series.values():
            peaks.forget_before(step)
        self._series = {key: peaks for key, peaks in self._series.items() if peaks.steps}

    def tracks(
        self, period: Period, devices: Collection[DeviceId] | None = None
    ) -> tuple[Track, ...]:
        """Return the tracks that have a step in the period.

        Args:
            period: its step length must be the one that the points were recorded in.
            devices: only these and their boards; None means all.
        """
        wanted = None if devices is None else {*devices, *(one.board for one in devices)}
        found: list[Track] = []
        joined: dict[tuple[str, DeviceId, SeriesLabels], list[_Peaks]] = {}
        for (metric, identity, flawed), peaks in self._series.items():
            device = identity.device
            if wanted is not None and device not in wanted:
                continue
            if peaks.field.joined and not flawed:
                key = (peaks.field.joined, device, identity.labels)
                joined.setdefault(key, []).append(peaks)
                continue
            steps = peaks.within(period.first, period.last)
            if steps:
                found.append(Track(device, peaks.field.signal, metric, identity.labels, steps))
        for (name, device, labels), parts in joined.items():
            sums: dict[int, float] = {}
            for step, value in chain.from_iterable(
                one.within(period.first, period.last) for one in parts
            ):
                sums[step] = sums.get(step, 0.0) + value
            if sums:
                signal = parts[0].field.signal
                found.append(Track(device, signal, name, labels, tuple(sorted(sums.items()))))
        return tuple(found)

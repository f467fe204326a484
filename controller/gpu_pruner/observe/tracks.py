"""Per-step peaks of every series, gathered into tracks.

Used by both sources: for one answer by `observe.prometheus`, as the memory of the whole window by
`observe.scrape`. A value that is not a number or below zero is kept on a track of its own, so that
a healthy duplicate or a higher value in the same step never hides it.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable
from itertools import chain
from typing import TypeAlias, TypeVar

from gpu_pruner.model.signals import DeviceId, Period, SeriesLabels, Track
from gpu_pruner.observe.labels import Identity
from gpu_pruner.observe.profiles import Field

Steps: TypeAlias = tuple[tuple[int, float], ...]
"""(step number, value)."""

_Key: TypeAlias = tuple[str, Identity, bool]
"""Metric name, whose series, and whether it is the track of values no healthy reading can have."""


Key = TypeVar("Key", bound=Hashable)


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


def _in_unit(field: Field, steps: Steps) -> Steps | None:
    """Return the values in the signal's unit; None where one is flawed or doubtful."""
    if field.joined or not field.proves_idle or not steps:
        return None
    scale, single, before = field.scale, field.single_scale, -1
    for step, value in steps:
        if not value >= 0 or step <= before or not (single or not field.is_ambiguous(value)):
            return None
        before = step
    return steps if scale == 1.0 else tuple([(step, value * scale) for step, value in steps])


def _as_it_is(steps: Steps) -> Steps:
    return steps


class TrackTable:
    """Peaks of many series, by field, device and labels."""

    def __init__(self) -> None:
        self._series: dict[_Key, _Peaks] = {}
        self._whole: dict[str, tuple[Field, dict[Identity, Steps]]] = {}
        """Series that came in one piece and need no further work, in the signal's unit. Most do,
        and many share one tuple, because most GPUs of an answer say the same."""

    def __len__(self) -> int:
        """Return how many series are held."""
        return len(self._series) + sum(len(whole) for _, whole in self._whole.values())

    def record(self, field: Field, identity: Identity, points: Iterable[tuple[int, float]]) -> None:
        """Add points of one series; see `take`."""
        self.take(field, ((identity, tuple(points)),), read=_as_it_is)

    def take(
        self, field: Field, series: Iterable[tuple[Identity, Key]], *, read: Callable[[Key], Steps]
    ) -> None:
        """Add the series of one answer.

        Args:
            field: which metric; its scale is applied here and nowhere else.
            series: each series' device and labels, with what its points are read from.
            read: returns (step number, value as exported) in any order; called once for each
                distinct key, because most GPUs of an answer say the same. A value at another scale
                than the field's is kept as it is, with a not-a-number beside it, because it shows
                work and must not be believed.
        """
        _, whole = self._whole.setdefault(field.metric, (field, {}))
        known: dict[Key, tuple[Steps, Steps | None]] = {}
        for identity, key in series:
            found = known.get(key)
            if found is None:
                steps = read(key)
                found = known[key] = steps, _in_unit(field, steps)
            steps, healthy = found
            if healthy is None or identity in whole or self._has_peaks(field, identity):
                self._merge(field, identity, steps)
            else:
                whole[identity] = healthy

    def _has_peaks(self, field: Field, identity: Identity) -> bool:
        return bool(self._series) and (field.metric, identity, False) in self._series

    def _merge(self, field: Field, identity: Identity, steps: Steps) -> None:
        """Add points step by step, to what came before."""
        former = self._whole[field.metric][1].pop(identity, ())
        if former:
            peaks = self._peaks(field, identity, flawed=False)
            for step, value in former:
                peaks.record(step, value)
        self._record(field, identity, steps)

    def _record(self, field: Field, identity: Identity, steps: Steps) -> None:
        scale, plain = field.scale, field.single_scale and field.proves_idle
        healthy = self._series.get((field.metric, identity, False))
        for step, exported in steps:
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
        for field, whole in self._whole.values():
            for identity, steps in whole.items():
                peaks = self._peaks(field, identity, flawed=False)
                for at, value in steps:
                    peaks.record(at, value)
        self._whole = {}
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
        found = self._whole_tracks(period, wanted)
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
            sums = _sums(one.within(period.first, period.last) for one in parts)
            if sums:
                found.append(Track(device, parts[0].field.signal, name, labels, sums))
        return tuple(found)

    def _whole_tracks(self, period: Period, wanted: set[DeviceId] | None) -> list[Track]:
        first, last = period.first, period.last
        found: list[Track] = []
        for field, whole in self._whole.values():
            signal, metric = field.signal, field.metric
            for identity, steps in whole.items():
                if wanted is not None and identity.device not in wanted:
                    continue
                if steps[0][0] >= first and steps[-1][0] <= last:
                    found.append(Track(identity.device, signal, metric, identity.labels, steps))
                elif inside := tuple(one for one in steps if first <= one[0] <= last):
                    found.append(Track(identity.device, signal, metric, identity.labels, inside))
        return found


def _sums(parts: Iterable[Steps]) -> Steps:
    """Return the sum of several series in each step in which one of them has a value."""
    sums: dict[int, float] = {}
    for step, value in chain.from_iterable(parts):
        sums[step] = sums.get(step, 0.0) + value
    return tuple(sorted(sums.items()))

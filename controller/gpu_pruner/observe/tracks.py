"""Per-step peaks of every series, gathered into tracks, or into the columns of a screen.

Used by both sources: for one answer by `observe.prometheus`, as the memory of the whole window by
`observe.scrape`. A value that is not a number or below zero is kept on a track of its own, so that
a healthy duplicate or a higher value in the same step never hides it.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, pairwise
from typing import TypeAlias, TypeVar

from gpu_pruner.model.signals import Column, DeviceId, Period, Signal, Steps, Subject, Track
from gpu_pruner.observe.profiles import Field, Use, use_of

_COMPARED = 5
"""How many steps back a value is looked for to compare the first one of a screen with."""

_Key: TypeAlias = tuple[str, Subject, bool]
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
        self._whole: dict[str, tuple[Field, dict[Subject, Steps]]] = {}
        """Series that came in one piece and need no further work, in the signal's unit. Most do,
        and many share one tuple, because most GPUs of an answer say the same."""

    def __len__(self) -> int:
        """Return how many series are held."""
        return len(self._series) + sum(len(whole) for _, whole in self._whole.values())

    def record(self, field: Field, subject: Subject, points: Iterable[tuple[int, float]]) -> None:
        """Add points of one series; see `take`."""
        self.take(field, ((subject, tuple(points)),), read=_as_it_is)

    def take(
        self, field: Field, series: Iterable[tuple[Subject, Key]], *, read: Callable[[Key], Steps]
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
        for subject, key in series:
            found = known.get(key)
            if found is None:
                steps = read(key)
                found = known[key] = steps, _in_unit(field, steps)
            steps, healthy = found
            if healthy is None or subject in whole or self._has_peaks(field, subject):
                self._merge(field, subject, steps)
            else:
                whole[subject] = healthy

    def _has_peaks(self, field: Field, subject: Subject) -> bool:
        return bool(self._series) and (field.metric, subject, False) in self._series

    def _merge(self, field: Field, subject: Subject, steps: Steps) -> None:
        """Add points step by step, to what came before."""
        former = self._whole[field.metric][1].pop(subject, ())
        if former:
            peaks = self._peaks(field, subject, flawed=False)
            for step, value in former:
                peaks.record(step, value)
        self._record(field, subject, steps)

    def _record(self, field: Field, subject: Subject, steps: Steps) -> None:
        scale, plain = field.scale, field.single_scale and field.proves_idle
        healthy = self._series.get((field.metric, subject, False))
        for step, exported in steps:
            value = exported * scale
            if not value >= 0:
                self._peaks(field, subject, flawed=True).record(step, value)
                continue
            if not plain:
                if field.is_ambiguous(exported):
                    self._peaks(field, subject, flawed=True).record(step, math.nan)
                    value = exported
                if not value and not field.proves_idle:
                    continue
            if healthy is None:
                healthy = self._peaks(field, subject, flawed=False)
            healthy.record(step, value)

    def _peaks(self, field: Field, subject: Subject, *, flawed: bool) -> _Peaks:
        return self._series.setdefault((field.metric, subject, flawed), _Peaks(field))

    def forget_before(self, step: int) -> None:
        """Drop every step below this one, and series without any step left."""
        for field, whole in self._whole.values():
            for subject, steps in whole.items():
                peaks = self._peaks(field, subject, flawed=False)
                for at, value in steps:
                    peaks.record(at, value)
        self._whole = {}
        for peaks in self._series.values():
            peaks.forget_before(step)
        self._series = {key: peaks for key, peaks in self._series.items() if peaks.steps}

    def exported(self) -> Iterator[tuple[str, Subject]]:
        """Yield the metric name and the subject of everything that is held; some several times."""
        for metric, (_, whole) in self._whole.items():
            yield from ((metric, subject) for subject in whole)
        yield from ((metric, subject) for metric, subject, _ in self._series)

    def tracks(
        self, period: Period, devices: Collection[DeviceId] | None = None
    ) -> tuple[Track, ...]:
        """Return the tracks that have a step in the period.

        Args:
            period: its step length must be the one that the points were recorded in.
            devices: only these and their boards; None means all.
        """
        wanted = None if devices is None else {*devices, *(one.board for one in devices)}
        return tuple(
            Track(subject.device, column.signal, column.metric, subject.labels, steps)
            for column in self._columns(period)
            for subject, steps in column.series
            if wanted is None or subject.device in wanted
        )

    def screened(self, period: Period) -> tuple[Column, ...]:
        """Return what a `Screen` of the period consists of, in columns."""
        before = replace(period, first=period.first - _COMPARED)
        return tuple(
            [
                one
                for one in self._columns(period)
                if use_of(one.signal) in {Use.PRIMARY, Use.ACTIVITY}
            ]
            + [
                _moving(one, period)
                for one in self._columns(before)
                if use_of(one.signal) is Use.LIVENESS
            ]
        )

    def _columns(self, period: Period) -> Iterator[Column]:
        """Yield every metric's series; one that also has a track of flawed values comes twice."""
        for field, whole in self._whole.values():
            yield Column(field.signal, field.metric, _within(whole, period))
        first, last = period.first, period.last
        found: dict[tuple[Signal, str], list[tuple[Subject, Steps]]] = {}
        joined: dict[tuple[Signal, str, Subject], list[Steps]] = {}
        for (metric, subject, flawed), peaks in self._series.items():
            field, steps = peaks.field, peaks.within(first, last)
            if field.joined and not flawed:
                joined.setdefault((field.signal, field.joined, subject), []).append(steps)
            elif steps:
                found.setdefault((field.signal, metric), []).append((subject, steps))
        for (signal, name, subject), parts in joined.items():
            if sums := _sums(parts):
                found.setdefault((signal, name), []).append((subject, sums))
        for (signal, metric), series in found.items():
            yield Column(signal, metric, series)


def _within(whole: Mapping[Subject, Steps], period: Period) -> list[tuple[Subject, Steps]]:
    """Return the parts of series that lie in a period; most lie in it as they are."""
    first, last = period.first, period.last
    distinct = {id(steps): steps for steps in whole.values()}
    if all(first <= steps[0][0] and steps[-1][0] <= last for steps in distinct.values()):
        return list(whole.items())
    cut = {
        key: tuple(one for one in steps if first <= one[0] <= last)
        for key, steps in distinct.items()
    }
    return [(subject, inside) for subject, steps in whole.items() if (inside := cut[id(steps)])]


def _moving(column: Column, period: Period) -> Column:
    """Return a column of peaks, from some steps before a period on, as movement in the period.

    Values of two series are never compared.
    """
    series = []
    for subject, steps in column.series:
        valid = [one for one in steps if one[1] >= 0]
        told = tuple(
            (step, float(value != before))
            for (_, before), (step, value) in pairwise(valid)
            if step >= period.first
        )
        if told:
            series.append((subject, told))
    return Column(column.signal, column.metric, agreeing(series), moves=True)


def agreeing(series: Iterable[tuple[Subject, Steps]]) -> list[tuple[Subject, Steps]]:
    """Return series of movement as a column has them: a device moved where one of its series did.

    An exporter that is scraped twice, once by a target that is stuck, moves.
    """
    known = list(series)
    moved: dict[DeviceId, set[int]] = {}
    for subject, steps in known:
        moved.setdefault(subject.device, set()).update(step for step, one in steps if one)
    return [
        (subject, tuple((step, float(step in moved[subject.device])) for step, _ in steps))
        for subject, steps in known
    ]


def _sums(parts: Iterable[Steps]) -> Steps:
    """Return the sum of several series in each step in which one of them has a value."""
    sums: dict[int, float] = {}
    for step, value in chain.from_iterable(parts):
        sums[step] = sums.get(step, 0.0) + value
    return tuple(sorted(sums.items()))

"""Screens made of tracks, as a source makes them of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import groupby

from gpu_pruner.decide.signals import SIGNALS, Role
from gpu_pruner.model.signals import Column, DeviceId, Period, SeriesLabels, Steps, Subject, Track
from gpu_pruner.model.telemetry import Screen

LOOKBACK = 300.0
"""Seconds for which Prometheus shows the newest sample of a series."""

_ROLES = {Role.PRIMARY, Role.ACTIVITY}


@lru_cache(maxsize=4096)
def subject(device: DeviceId, labels: SeriesLabels) -> Subject:
    """Return the one subject of a label set."""
    return Subject(device, labels)


def screen_of(tracks: Iterable[Track], period: Period, *, scrape_seconds: float = 30.0) -> Screen:
    """Return the screen of a period that shows these tracks.

    Args:
        tracks: they may begin before the period; what came within `LOOKBACK` before it tells
            whether the first step moved.
        period: what the screen covers.
        scrape_seconds: estimated time between samples.
    """

    def metric(track: Track) -> tuple[str, str]:
        return track.signal.value, track.metric

    columns = []
    for _, group in groupby(sorted(tracks, key=metric), key=metric):
        found = list(group)
        signal, name = found[0].signal, found[0].metric
        if SIGNALS[signal].role in _ROLES:
            series = [
                (subject(one.device, one.labels), inside)
                for one in found
                if (inside := tuple(step for step in one.steps if step[0] >= period.first))
            ]
            columns.append(Column(signal, name, series))
        elif SIGNALS[signal].role is Role.LIVENESS:
            columns.append(Column(signal, name, _moves(found, period), moves=True))
    return Screen(period=period, columns=tuple(columns), scrape_interval_seconds=scrape_seconds)


def peaks_of(screen: Screen) -> list[Track]:
    """Return the tracks of peaks that a screen shows."""
    return [
        Track(one.device, column.signal, column.metric, one.labels, steps)
        for column in screen.columns
        if not column.moves
        for one, steps in column.series
    ]


def _moves(tracks: Iterable[Track], period: Period) -> list[tuple[Subject, Steps]]:
    """Return in which steps each device moved, as instant values five minutes old tell it."""
    known = [(subject(one.device, one.labels), dict(one.steps)) for one in tracks]
    told = [(who, moves_of(values, period)) for who, values in known]
    moved = {(who.device, step) for who, steps in told for step, one in steps if one}
    return [
        (who, tuple((step, float((who.device, step) in moved)) for step, _ in steps))
        for who, steps in told
    ]


def moves_of(values: Mapping[int, float], period: Period) -> Steps:
    """Return in which steps of a period a value differs from that of the step before."""
    back = int(LOOKBACK // period.step_seconds)
    moved: list[tuple[int, float]] = []
    seen_at, newest, before = 0, None, None
    for step in range(period.first - back, period.last + 1):
        value = values.get(step)
        if value is not None:
            seen_at, newest = step, value
        elif newest is not None and step - seen_at >= back:
            newest = None
        if step >= period.first and newest is not None and before is not None:
            moved.append((step, float(newest != before)))
        before = newest
    return tuple(moved)

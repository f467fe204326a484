"""How far back a screen asks for what. Pure.

Primary signals are asked for over the whole slice, so that late samples are seen after all. Of the
rest, which is there to keep a workload and not to convict it, a steady screen asks for what is new;
what comes later is seen by verify.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from gpu_pruner.model.signals import Column, Period
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.observe.prometheus_probe import Ask

SHORTEST_SCREEN: Seconds = 3 * MINUTE
"""A screen covers at least this, or three scrapes, so that late samples are seen after all."""


def slice_seconds(interval: Seconds) -> Seconds:
    """Return the length of a steady slice.

    Args:
        interval: time between two samples of a series.
    """
    return max(SHORTEST_SCREEN, 3 * interval)


class Slices:
    """Remembers what the last complete screen covered."""

    def __init__(self, *, brief: bool = False) -> None:
        """Begin with nothing asked.

        Args:
            brief: whether from the first screen on only peaks are asked for over the whole period:
                who holds which device and how well it is covered shows in them.
        """
        self._brief = brief
        self._until: Timestamp | None = None
        self._late = False

    def of(self, ask: Ask, period: Period, *, interval: Seconds) -> Period:
        """Return the part of a screen's period that is asked for.

        Movement is told of the step before the newest, in which almost every sample has arrived,
        and where a step may have one sample only, once more of the step before that; where samples
        come so late that most devices stand still in it, it is told of the whole period from then
        on.

        Args:
            ask: what a field is asked for.
            period: of the screen.
            interval: time between two samples of a series.
        """
        step, until = period.step_seconds, self._until
        # One more: so far back lie the last success and two scrapes that take a step each.
        steady = math.ceil(slice_seconds(interval) / step) + 1
        if self._brief and ask is not Ask.PEAKS:
            return replace(period, first=max(period.first, period.last + 1 - steady))
        if ask is Ask.PEAKS or until is None or period.steps > steady:
            return period
        if ask is Ask.WORK:
            first = math.floor((until - 2 * interval) / step)
            return replace(period, first=min(max(period.first, first), period.last))
        if self._late:
            return period
        last = period.last - 1
        again = 1 if 2 * interval > step else 0
        first = min(round(until / step) - 1, last) - again
        return replace(period, first=max(period.first, first), last=last)

    def done(self, period: Period, columns: Iterable[Column]) -> None:
        """Take note of a complete screen.

        Args:
            period: that it covers.
            columns: its movement; those of peaks are left out.
        """
        self._until = period.end
        series = [steps for one in columns if one.moves for _, steps in one.series if steps]
        moved = sum(any(value for _, value in steps) for steps in series)
        self._late = self._late or 2 * moved < len(series)

"""Whether a device drew more power than doing nothing explains.

It answers how much a device drew on average, by its energy counter: over the whole period, and over
every stretch in which its primary signal was not seen. Work that fits into a few missed minutes
shows in no sample, but the counter went on. It never proves idleness: little power proves nothing,
and neither does the power of a board that several share. `evidence` measures with it, and `device`
asks it last, about devices that would otherwise be idle.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from gpu_pruner.decide.signals import SIGNALS
from gpu_pruner.decide.wording import clock_time
from gpu_pruner.model.signals import DeviceEvidence, Draw, Period, Signal, Track
from gpu_pruner.model.units import Timestamp

IDLE_WATTS = {"A100": 110.0, "A40": 140.0, "H100": 160.0, "L4": 45.0, "L40S": 130.0}
"""Word in a model's name to the most that it draws without work, watts.

Above what was read in public from boards with a loaded context and no work (A100 68, A40 110, H100
125, L4 37, L40S 100), with a fifth to spare for board, temperature and driver. Where nobody
published such a reading there is no figure, and nothing is concluded.
"""

_MOST_WATTS = 2000.0
"""More than any board can draw: what is above it was counted in another unit."""

_WORDS = re.compile(r"[A-Za-z0-9]+")


@lru_cache(maxsize=256)
def idle_watts(model: str) -> float | None:
    """Return the most that this model draws without work, watts; None where nobody knows.

    Args:
        model: as the exporter names it, for example ``NVIDIA H100 80GB HBM3``.
    """
    return next((IDLE_WATTS[word] for word in _WORDS.findall(model) if word in IDLE_WATTS), None)


def overdrawn(evidence: DeviceEvidence, *, now: Timestamp) -> str | None:
    """Say that a device drew more than idleness explains, or return None where it did not.

    Args:
        evidence: of the device; the power of a slice or of a shared device is its board's, and says
            nothing about it.
        now: Unix seconds, for the words.
    """
    draw, most = evidence.draw, idle_watts(evidence.model)
    if draw is None or most is None or draw.watts <= most:
        return None
    if evidence.shared or evidence.device.mig_instance:
        return None
    told = f"it drew {draw.watts:.0f} W on average from {clock_time(draw.begin, now=now)} to "
    return told + f"{clock_time(draw.end, now=now)}, and without work its model draws {most:.0f}"


def highest_draw(
    energy: Iterable[Track], primary: Iterable[Track], *, period: Period
) -> Draw | None:
    """Return the highest mean power over the period, and over its stretches without primary signal.

    Args:
        energy: all series of the device's energy counter, joules. They are read as one, because a
            restarted exporter goes on with the same counter; where they disagree, none is believed.
        primary: all series of the signal that would have to prove idleness.
        period: what is judged; the step before it serves as the begin of a stretch.
    """
    rule, around = SIGNALS[Signal.ENERGY], range(period.first - 1, period.last + 1)
    joules: dict[int, float] = {}
    for track in energy:
        for step, value in track.steps:
            if step in around and rule.lowest <= value <= rule.highest:
                known = joules.get(step, value)
                if abs(value - known) > _MOST_WATTS * period.step_seconds:
                    return None
                joules[step] = max(value, known)
    counted = sorted(joules.items())
    seen = sorted({step for track in primary for step, _ in track.steps if step in around})
    unseen = [(before, after) for before, after in pairwise(seen) if after - before > 1]
    draws = [
        draw
        for before, after in [(period.first, period.last), *unseen]
        if (draw := _mean(counted, before, after, width=period.step_seconds)) is not None
    ]
    return max(draws, key=lambda one: one.watts, default=None)


def _mean(counted: list[tuple[int, float]], first: int, last: int, *, width: float) -> Draw | None:
    """Return the mean power between two steps, as far as the counter was read around them.

    A sample may lie anywhere in its step, so the stretch is taken at its longest: the true mean is
    never lower. A counter that fell began anew at 0.
    """
    steps = [step for step, _ in counted]
    begin, end = max(0, bisect_right(steps, first) - 1), bisect_left(steps, last)
    read = counted[begin : end + 1]
    if len(read) < 2:  # noqa: PLR2004 - one reading has no difference
        return None
    joules = 0.0
    for (step, before), (next_step, after) in pairwise(read):
        rise = after - before if after >= before else after
        if rise > _MOST_WATTS * (next_step - step + 1) * width:
            return None
        joules += rise
    start, stop = read[0][0], read[-1][0] + 1
    return Draw(watts=joules / ((stop - start) * width), begin=start * width, end=stop * width)

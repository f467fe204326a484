"""Times, counts and sentences as people read them. Only words; no rule lives here."""

from __future__ import annotations

from gpu_pruner.model.plan import DeviceFinding
from gpu_pruner.model.signals import Period
from gpu_pruner.model.units import HOUR, MINUTE, Seconds, Timestamp, rfc3339
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import PodRecord

Why = tuple[Reason, str]
"""A reason, and the sentence that goes with it."""

_SAME_DAY: Seconds = 20 * HOUR
"""A time of day alone would be taken for today's when it is older than this."""


def clock_time(moment: Timestamp, *, now: Timestamp) -> str:
    """Write a moment as UTC time of day, with the date where that alone would mislead.

    Args:
        moment: Unix seconds.
        now: Unix seconds; what the reader's clock says.
    """
    if abs(now - moment) > _SAME_DAY:
        return rfc3339(moment)[:16].replace("T", " ") + " UTC"
    minutes = int(moment // MINUTE) % 1440
    return f"{minutes // 60:02d}:{minutes % 60:02d} UTC"


def minutes(seconds: Seconds) -> int:
    """Return a length of time in whole minutes."""
    return round(seconds / MINUTE)


def seen(steps: int, period: Period) -> str:
    """Say how much of a period has samples, for example ``18 of 35 minutes seen``."""
    width = period.step_seconds
    return f"{minutes(steps * width)} of {minutes(period.steps * width)} minutes seen"


def about(pod: PodRecord, finding: DeviceFinding) -> str:
    """Name a device and its pod before what was found on it."""
    return f"{finding.evidence.device} of pod {pod.name}: {finding.detail}"


def with_rule(reason: Reason, sentence: str) -> str:
    """Put a reason's rule behind what was seen."""
    return f"{sentence}. {reason.rule}" if sentence else reason.rule

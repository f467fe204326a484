"""What the GPUs of a race really do. Made first; telemetry is made from it, and may then lie.

A GPU works in spans. The truth about a workload is asked of these spans alone, never of a metric.
Spans are no shorter than one poll of the exporter, and what touches a window by less than a poll
counts for neither side: nobody could see it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

MINUTE = 60.0
WINDOW = 35 * MINUTE
SETTLE = 5 * MINUTE
MUST_FIND = 2 * WINDOW + 10 * MINUTE
"""Without work for this long, and as old, a workload has to be found, whatever it exports."""

DRAM_WORK = 0.005
"""Share of time with memory traffic that is more than the driver's own."""


@dataclass(frozen=True)
class Span:
    """Steady work of one GPU."""

    begin: float
    end: float
    engine: float = 0.0
    """Share of time that the engine was busy."""
    encoder: float = 0.0
    """Percent."""
    dram: float = 0.0
    """Share of time; in addition to what the engine causes."""

    def is_work(self, threshold: float) -> bool:
        """Whether it is more than the threshold calls idle."""
        return self.engine >= threshold or self.encoder > 0 or self.dram >= DRAM_WORK


Work = tuple[Span, ...]


def worked(work: Work, begin: float, end: float, *, threshold: float, poll: float) -> bool:
    """Whether a GPU worked between two moments, by more than a poll at their edges."""
    return any(
        span.is_work(threshold) and span.end > begin + poll and span.begin < end - poll
        for span in work
    )


@dataclass(frozen=True)
class Times:
    """When a world ends, and the grain of its work."""

    begin: float
    end: float
    poll: float
    """Seconds between two readings that can be told apart."""

    def span(self, start_minutes: float, length_minutes: float, **work: float) -> Span:
        """Return work that begins so many minutes before the end, on the grain."""
        begin = self.end - round(start_minutes * MINUTE / self.poll) * self.poll
        length = max(1, round(length_minutes * MINUTE / self.poll)) * self.poll
        return Span(begin, min(begin + length, self.end), **work)

    def always(self, **work: float) -> Work:
        """Return work from the first moment to the last."""
        return (Span(self.begin, self.end, **work),)


def idle(_: Times, __: Random) -> Work:
    """Do nothing at all."""
    return ()


def early(times: Times, rng: Random) -> Work:
    """Work until well before two windows ago."""
    last = rng.uniform(MUST_FIND / MINUTE + 3, MUST_FIND / MINUTE + 12)
    whole = (times.end - times.begin) / MINUTE
    return (times.span(whole, whole - last, engine=rng.uniform(0.3, 0.95)),)


def recent(times: Times, rng: Random) -> Work:
    """Work until some minutes ago: on its way to idle, but not there."""
    whole, last = (times.end - times.begin) / MINUTE, rng.uniform(3, 28)
    return (times.span(whole, whole - last, engine=rng.uniform(0.3, 0.95)),)


def busy(times: Times, rng: Random) -> Work:
    """Train."""
    return times.always(engine=rng.uniform(0.3, 0.99))


def light(times: Times, rng: Random) -> Work:
    """Answer a request now and then, all the time: real work below one percent."""
    return times.always(engine=rng.uniform(0.0022, 0.0089))


def bursty(times: Times, rng: Random) -> Work:
    """Work for moments within the last window."""
    starts = [rng.uniform(6, 32) for _ in range(rng.randint(1, 3))]
    return tuple(
        times.span(start, rng.uniform(0.5, 4), engine=rng.uniform(0.1, 0.9)) for start in starts
    )


def woke(times: Times, rng: Random) -> Work:
    """Be idle until the very last minutes, between the warning and the pause."""
    return (times.span(rng.uniform(3.5, 4.4), 10, engine=rng.uniform(0.2, 0.9)),)


def encoding(times: Times, rng: Random) -> Work:
    """Encode video, which hardly moves the engine."""
    return times.always(engine=rng.uniform(0, 0.0006), encoder=float(rng.randint(8, 90)))


def copying(times: Times, rng: Random) -> Work:
    """Stage weights: memory traffic without compute."""
    return times.always(dram=rng.uniform(0.012, 0.1))


LOUD = (busy, bursty)
"""Behaviours that even a coarse signal shows."""


def any_worked(works: Iterable[Work], now: float, *, threshold: float, poll: float) -> bool:
    """Whether any of these GPUs worked in the window before a moment."""
    return any(worked(one, now - WINDOW, now, threshold=threshold, poll=poll) for one in works)

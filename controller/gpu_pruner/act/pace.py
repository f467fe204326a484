"""How fast we write: at most two GPUWorkload writes a second, over all.

Answers: when may the next write go out. Never drops one. Called by `act.books`.
"""

from __future__ import annotations

from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import Seconds

WRITES_PER_SECOND = 2.0
"""Bookkeeping must stay unnoticed by an API server that serves a whole cluster."""

BURST = 10
"""Writes that may go out at once after a quiet time, so that a small cluster never waits."""


class WritePace:
    """A token bucket in the time of a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._interval: Seconds = 1.0 / WRITES_PER_SECOND
        self._seen_at = clock.now()
        self._settled_at = self._seen_at
        """When every write so far is paid for, at the steady rate."""

    async def turn(self) -> None:
        """Wait until one more write may go out, and count it."""
        now = self._clock.now()
        if now < self._seen_at:  # a clock that was set back must not stop the writes
            self._settled_at -= self._seen_at - now
        self._seen_at = now
        self._settled_at = max(self._settled_at, now) + self._interval
        wait = self._settled_at - now - BURST * self._interval
        if wait > 0:
            await self._clock.sleep(wait)

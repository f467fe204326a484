"""The simulated present, and things that happen later.

Wraps the `Clock` that the cluster was given. While the world is being built the present can be
moved into the past, and what would happen later then happens at once, with the later time on it.
Called by the controllers, the kubelet and `cluster`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import Seconds, Timestamp


class Moments:
    """Tells the time of the simulated cluster and runs its timers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fixed: Timestamp | None = None
        self._timers: set[asyncio.Task[None]] = set()

    def now(self) -> Timestamp:
        """Return Unix seconds, UTC."""
        return self._clock.now() if self._fixed is None else self._fixed

    @contextmanager
    def at(self, moment: Timestamp) -> Iterator[None]:
        """Pretend that it is another moment, within a ``with`` block that does not await."""
        before, self._fixed = self._fixed, moment
        try:
            yield
        finally:
            self._fixed = before

    def after(self, seconds: Seconds, act: Callable[[], None]) -> None:
        """Do something after so many simulated seconds; at once, if the present is pretended."""
        if self._fixed is not None:
            with self.at(self._fixed + seconds):
                act()
            return
        timer = asyncio.create_task(self._wait(seconds, act))
        self._timers.add(timer)
        timer.add_done_callback(self._timers.discard)

    async def _wait(self, seconds: Seconds, act: Callable[[], None]) -> None:
        await self._clock.sleep(seconds)
        act()

    async def close(self) -> None:
        """Forget what was to happen later."""
        timers = tuple(self._timers)
        for timer in timers:
            timer.cancel()
        await asyncio.gather(*timers, return_exceptions=True)

"""Time as something that is passed in, so that tests and the demo can own it."""

from __future__ import annotations

from typing import Protocol

from gpu_pruner.model.units import Seconds, Timestamp


class Clock(Protocol):
    """Tells the time and waits. The one real implementation lives in `settings.clock`."""

    def now(self) -> Timestamp:
        """Return the wall-clock time: Unix seconds, UTC."""
        ...

    async def sleep(self, seconds: Seconds) -> None:
        """Wait for this many seconds *of this clock*."""
        ...

"""Whether the API server as a whole was away, so that whoever waits goes on once it is back.

Each reflector waits longer after each failure of its own. After an outage they would come back one
by one, within half a minute, and until the last of them did, a cycle would see one kind as it is
and another as it was. The first good answer to anybody is therefore told to all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gpu_pruner.model.units import Seconds

_AWAY: Seconds = 3.0
"""Without a good answer to anybody for so long, a failure was the server's and not one watch's."""


@dataclass(slots=True)
class Outage:
    """Told by the client of each answer and each failure to get one. Real seconds."""

    monotonic: Callable[[], Seconds] = time.monotonic
    _has_failed: bool = False
    """Since the last good answer."""
    _answered_at: Seconds = field(init=False)
    _back: asyncio.Event = field(init=False, default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Count from now on."""
        self._answered_at = self.monotonic()

    def failed(self) -> None:
        """Note that no usable answer came."""
        self._has_failed = True

    def answered(self) -> None:
        """Note that the server answered; if it had been away, let everybody go on."""
        now = self.monotonic()
        if self._has_failed and now - self._answered_at >= _AWAY:
            self._back.set()
            self._back = asyncio.Event()
        self._has_failed, self._answered_at = False, now

    async def over(self) -> None:
        """Wait for the end of an outage: of one that is on, or of the next."""
        await self._back.wait()

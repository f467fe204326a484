"""A clock that a test moves by hand: whoever waits on it wakes in the order of their moments."""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass, field

from support.manual_clock import NOON

_TURNS = 30
"""Turns of the event loop in which everything that reacts to a moment has reacted."""


@dataclass(slots=True)
class SteppedClock:
    at: float = NOON
    _waiting: list[tuple[float, int, asyncio.Future[None]]] = field(default_factory=list)
    _count: int = 0

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.at + seconds, self._count, woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Move on, stopping at every moment that somebody waits for."""
        target = self.at + seconds
        await self.settle()
        while self._waiting and self._waiting[0][0] <= target:
            moment, _, woken = heapq.heappop(self._waiting)
            self.at = max(self.at, moment)
            if not woken.done():
                woken.set_result(None)
            await self.settle()
        self.at = target

    async def settle(self) -> None:
        """Let everything that is due happen, without moving on."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)

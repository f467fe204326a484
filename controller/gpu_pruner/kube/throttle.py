"""How fast we may talk to the API server.

Holds the number of requests per second down, whoever asks. It never drops a request and never
decides what is worth asking. `kube.client` takes one token per request. Times are real seconds:
what it protects is a real server, whatever the program's own clock says.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gpu_pruner.model.units import Seconds

Sleep = Callable[[Seconds], Awaitable[None]]
"""Waits for real seconds; a test may pass its own."""


@dataclass(slots=True)
class TokenBucket:
    """Lets `burst` requests through at once, then `per_second`."""

    per_second: float = 20.0
    burst: float = 40.0
    sleep: Sleep = asyncio.sleep
    monotonic: Callable[[], Seconds] = time.monotonic
    _tokens: float = field(init=False)
    _filled_at: Seconds = field(init=False)

    def __post_init__(self) -> None:
        """Start full."""
        self._tokens = self.burst
        self._filled_at = self.monotonic()

    async def take(self) -> None:
        """Take one token; wait until there is one.

        Tokens may be owed, so that waiting callers are let through in the order of their asking.
        """
        now = self.monotonic()
        self._tokens = min(self.burst, self._tokens + (now - self._filled_at) * self.per_second)
        self._filled_at = now
        self._tokens -= 1
        if self._tokens < 0:
            await self.sleep(-self._tokens / self.per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a reflector waits before it tries again. Real seconds."""

    first: Seconds = 0.5
    """After the first failure; doubled after each further one."""
    longest: Seconds = 30.0
    patience: int = 3
    """Failures in a row after which a first look is given up, and a watch begins with a list."""
    absent: Seconds = 60.0
    """Between looks for a kind that is not installed, or not allowed."""
    silence: Seconds = 90.0
    """A watch without a byte for so long is taken for dead; above the server's bookmark period."""
    watch: Seconds = 290.0
    """How long the server is asked to keep a watch open."""
    brief: Seconds = 1.0
    """A watch that ended without a word and sooner than this counts as a failure: no hot loop."""
    sleep: Sleep = asyncio.sleep
    jitter: Callable[[], float] = random.random
    """Returns a number between 0 and 1."""

    def failure(self, failures: int, *, at_least: Seconds = 0.0) -> Seconds:
        """Return the wait after so many failures in a row, spread over its upper half.

        Args:
            failures: 1 for the first.
            at_least: what the server asked for (``Retry-After``).
        """
        ceiling = min(self.longest, self.first * 2.0 ** min(failures - 1, 16))
        return max(at_least, ceiling * (0.5 + 0.5 * self.jitter()))

    def spread(self, seconds: Seconds) -> Seconds:
        """Return up to a fifth less, so that reflectors do not act in step."""
        return seconds * (1.0 - 0.2 * self.jitter())

"""The real clock, and a faster one for the demo and the tests.

Product code is handed a `model.clock.Clock`; only `cli` chooses which.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.units import Seconds, Timestamp

if TYPE_CHECKING:
    from gpu_pruner.model.clock import Clock

ENVIRONMENT = "GPU_PRUNER_CLOCK"
"""``<real origin>:<simulated origin>:<speed>``; set by the demo for the controller it starts."""


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The computer's own clock."""

    def now(self) -> Timestamp:
        """Return Unix seconds, UTC."""
        return time.time()

    async def sleep(self, seconds: Seconds) -> None:
        """Wait for real seconds."""
        await asyncio.sleep(max(0.0, seconds))


@dataclass(frozen=True, slots=True)
class ScaledClock:
    """A clock that runs fast, alike in every process that knows its three numbers."""

    real_origin: Timestamp
    """Real moment at which this clock showed `simulated_origin`."""
    simulated_origin: Timestamp
    speed: float
    """Simulated seconds per real second; above 0."""

    def now(self) -> Timestamp:
        """Return simulated Unix seconds, UTC."""
        return self.simulated_origin + (time.time() - self.real_origin) * self.speed

    async def sleep(self, seconds: Seconds) -> None:
        """Wait for simulated seconds."""
        await asyncio.sleep(max(0.0, seconds) / self.speed)

    def environment(self) -> dict[str, str]:
        """Return the environment variable that gives another process this clock."""
        return {ENVIRONMENT: f"{self.real_origin!r}:{self.simulated_origin!r}:{self.speed!r}"}


def clock_from_environment() -> Clock:
    """Return the clock that this process was given: the system's unless told otherwise.

    Raises:
        ConfigurationError: the variable is set and not three numbers with a positive speed.
    """
    text = os.environ.get(ENVIRONMENT)
    if not text:
        return SystemClock()
    try:
        real, simulated, speed = (float(part) for part in text.split(":"))
    except ValueError as error:
        raise ConfigurationError("is not three numbers", path=ENVIRONMENT) from error
    if not speed > 0:
        raise ConfigurationError("the speed must be above 0", path=ENVIRONMENT)
    return ScaledClock(real, simulated, speed)

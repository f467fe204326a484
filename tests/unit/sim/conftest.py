"""Fixtures of the simulated cluster's own tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from support.simulated import SMALL_WORLD, Simulation


@pytest.fixture
async def simulation() -> AsyncIterator[Simulation]:
    async for one in Simulation.of(SMALL_WORLD):
        yield one

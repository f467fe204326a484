"""Cycle after cycle, until told to stop. The one place that catches everything.

A cycle that fails is logged, counted and followed by the next one: a daemon that died of bad
telemetry would be alive and doing nothing, and one that retried without pause would be a storm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gpu_pruner.errors import PrunerError
from gpu_pruner.loop.cycle import Cycle
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import Seconds, Timestamp

_log = structlog.get_logger(__name__)


async def run_forever(
    cycle: Cycle,
    *,
    clock: Clock,
    every: Seconds,
    news: asyncio.Event | None = None,
    before: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run cycles on a grid of `every` seconds; a late cycle shortens the wait, never doubles up.

    Args:
        cycle: what to run.
        clock: paces the loop.
        every: seconds from the start of one cycle to the start of the next.
        news: set when the next cycle should begin at once: this replica has come to lead.
        before: run before every cycle; it raises nothing.
    """
    news = news or asyncio.Event()
    while True:
        news.clear()
        if before is not None:
            await before()
        started_at = clock.now()
        await run_guarded(cycle, started_at)
        spent = max(0.0, clock.now() - started_at)  # a clock that was set back is no debt
        await _rest(clock, max(every - spent, every / 10), news)


async def _rest(clock: Clock, seconds: Seconds, news: asyncio.Event) -> None:
    """Wait so long, or until there is news."""
    waits = (asyncio.ensure_future(clock.sleep(seconds)), asyncio.ensure_future(news.wait()))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()


async def run_guarded(cycle: Cycle, started_at: Timestamp) -> None:
    """Run one cycle; whatever goes wrong in it is logged and counted, and ends with it."""
    try:
        await cycle.run()
    except asyncio.CancelledError:
        raise
    except PrunerError as error:
        cycle.failed(started_at, str(error))
        _log.error("cycle failed", error=str(error))
    except Exception as error:  # noqa: BLE001 - the daemon outlives its own bugs, visibly
        cycle.failed(started_at, f"{type(error).__name__}; the log has the trace")
        _log.exception("cycle failed unexpectedly")

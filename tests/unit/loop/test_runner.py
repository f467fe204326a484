from __future__ import annotations

import asyncio

import pytest
from support.manual_clock import NOON, ManualClock
from support.stepped_clock import SteppedClock

from gpu_pruner.errors import ClusterError
from gpu_pruner.loop.runner import run_forever, run_guarded


class Cycles:
    """Stands for `Cycle`: runs as told, and remembers what it was told of failures."""

    def __init__(self, clock, *troubles):
        self.clock = clock
        self.troubles = list(troubles)
        self.started = []
        self.failures = []

    async def run(self):
        self.started.append(self.clock.at)
        trouble = self.troubles.pop(0) if self.troubles else asyncio.CancelledError()
        if isinstance(trouble, BaseException):
            raise trouble
        self.clock.at += trouble

    def failed(self, started_at, failure):
        self.failures.append(failure)


async def test_cycles_start_on_a_grid_and_a_late_one_is_followed_soon():
    clock = ManualClock()
    cycles = Cycles(clock, 5.0, 90.0, 0.0)
    with pytest.raises(asyncio.CancelledError):
        await run_forever(cycles, clock=clock, every=60.0)
    assert [at - NOON for at in cycles.started] == [0.0, 60.0, 156.0, 216.0]


async def test_what_is_to_be_done_before_a_cycle_is_done_before_every_one():
    clock = ManualClock()
    cycles = Cycles(clock, 0.0, ClusterError("gone"), 0.0)
    seen = []

    async def look():
        seen.append(len(cycles.started))

    with pytest.raises(asyncio.CancelledError):
        await run_forever(cycles, clock=clock, every=60.0, before=look)
    assert seen == [0, 1, 2, 3]


async def test_a_failure_ends_with_its_cycle_and_is_recorded():
    clock = ManualClock()
    cycles = Cycles(clock, ClusterError("the API server went away"), 0.0)
    with pytest.raises(asyncio.CancelledError):
        await run_forever(cycles, clock=clock, every=60.0)
    assert cycles.failures == ["the API server went away"]
    assert len(cycles.started) == 3


async def test_a_bug_of_ours_is_recorded_without_its_words_and_the_daemon_lives():
    cycles = Cycles(ManualClock(), ValueError("token=canary"))
    await run_guarded(cycles, NOON)
    assert cycles.failures == ["ValueError; the log has the trace"]


async def test_being_stopped_is_no_failure():
    cycles = Cycles(ManualClock())
    with pytest.raises(asyncio.CancelledError):
        await run_guarded(cycles, NOON)
    assert cycles.failures == []


async def test_a_clock_that_is_set_back_does_not_stop_the_cycles():
    clock = ManualClock()
    cycles = Cycles(clock, -3600.0, 0.0)
    with pytest.raises(asyncio.CancelledError):
        await run_forever(cycles, clock=clock, every=60.0)
    assert clock.waits == [60.0, 60.0]


async def test_news_begin_the_next_cycle_at_once():
    news, clock = asyncio.Event(), SteppedClock()
    cycles = Cycles(clock, 0.0, 0.0, 0.0)
    running = asyncio.create_task(run_forever(cycles, clock=clock, every=60.0, news=news))
    await clock.advance(10)
    assert [at - NOON for at in cycles.started] == [0.0]
    news.set()
    await clock.settle()
    assert [at - NOON for at in cycles.started] == [0.0, 10.0]
    await clock.advance(59)
    assert len(cycles.started) == 2, "once"
    await clock.advance(1)
    assert [at - NOON for at in cycles.started] == [0.0, 10.0, 70.0]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

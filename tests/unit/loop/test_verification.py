"""A full-window check reaches to the moment at which it is made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest
from support.manual_clock import ManualClock
from support.story import Story
from support.telling_time import START
from support.world import World

from gpu_pruner.decide.plan import plan
from gpu_pruner.loop.verification import verify
from gpu_pruner.model.plan import Action
from gpu_pruner.model.signals import DeviceId, Period, SeriesLabels, Signal, Track
from gpu_pruner.model.telemetry import Screen


@dataclass
class Source:
    """One device, idle but for the newest step that it is asked for."""

    newest: float
    asked: list[Period] = field(default_factory=list)

    async def start(self) -> None:
        pass

    async def screen(self, *, now: float, back_to: float) -> Screen:
        raise AssertionError(now)

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        self.asked.append(period)
        steps = [(step, 0.0) for step in range(period.first, period.last)]
        steps.append((period.last, self.newest))
        (device,) = devices
        return (Track(device, Signal.ENGINE, "engine", SeriesLabels(), tuple(steps)),)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("later", [0.5, 20.0, 59.0, 75.0])
async def test_work_of_the_last_seconds_is_heard(later: float) -> None:
    story = Story(
        World(
            {"train": {"book": {"phase": "Nominated", "confirmations": 1, "nominated_at": "-1m"}}}
        )
    )
    wanted = plan(story.snapshot(START), story.rules).with_action(Action.VERIFY)
    (asked,) = (one.verify for one in wanted)
    assert asked is not None
    source = Source(newest=0.4)
    found = await verify(wanted, source, clock=ManualClock(START + later), rules=story.rules)
    assert [(one.first, one.end - START - later > 0) for one in source.asked] == [
        (asked.first, True)
    ]
    ((evidence,),) = (one.evidence for one in found.values())
    engine = evidence.of(Signal.ENGINE)
    assert engine is not None
    assert (engine.last_active_at, engine.peak) == (START + later, 0.4)
    assert evidence.period == asked
    assert engine.seen_steps == asked.steps

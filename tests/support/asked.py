"""What `explain` answers of a told world: the real snapshot, verification, plan and rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from support.manual_clock import ManualClock
from support.story import Story
from support.telling_time import START
from support.world import World

from gpu_pruner.errors import PrometheusError
from gpu_pruner.loop.explaining import Answer, Question, answered
from gpu_pruner.model.signals import DeviceId, Period, Track


@dataclass
class Source:
    """Measures a told world."""

    world: World
    failure: str = ""
    asked: list[Period] = field(default_factory=list)

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        self.asked.append(period)
        if self.failure:
            raise PrometheusError(self.failure)
        wanted = {*devices, *(one.board for one in devices)}
        return tuple(
            track
            for device in self.world.devices()
            for track in device.tracks(period.first - 1, period.last)
            if track.device in wanted
        )


async def asked(
    story: Story, question: Question, *, now: float = START, failure: str = "", later: float = 2.0
) -> Answer:
    """Ask a controller that looked at a moment about something, a little later."""
    return await answered(
        question,
        story.snapshot(now),
        story.world.view(),
        source=Source(story.world, failure),
        clock=ManualClock(now + later),
        rules=story.rules,
    )

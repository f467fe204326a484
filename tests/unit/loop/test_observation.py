from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest
from support.manual_clock import NOON
from support.screens import screen_of
from support.story import told_rules

from gpu_pruner.loop.observation import Observer
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.signals import DeviceId, Period, SeriesLabels, Signal, Track
from gpu_pruner.model.telemetry import Screen

DEVICE = DeviceId("GPU-x")
MINUTE = 60.0
RULES = told_rules()


@dataclass
class Source:
    """One idle device that is silent for a while; what it had to say comes later."""

    interval: float = 30.0
    step: float = MINUTE
    silent: Collection[float] = ()
    """Moments at which nothing newer than `silent_from` is answered."""
    silent_from: float = 0.0
    asked: list[float] = field(default_factory=list)

    async def start(self) -> None:
        pass

    async def screen(self, *, now: float, back_to: float) -> Screen:
        self.asked.append(now - back_to)
        period = Period.ending(now, length=now - back_to, step_seconds=self.step)
        last = period.last
        if now in self.silent:
            last = int(self.silent_from // self.step) - 1
        steps = tuple((step, 0.0) for step in range(period.first, last + 1))
        track = Track(DEVICE, Signal.ENGINE, "engine", SeriesLabels(), steps)
        return screen_of([track], period, scrape_seconds=self.interval)

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        raise AssertionError(devices)

    async def close(self) -> None:
        pass


class Cluster:
    def view(self) -> ClusterView:
        return ClusterView()


def seen(observer: Observer, now: float) -> int:
    evidence = observer.reading(now, honor_labels=None).evidence
    return evidence[DEVICE].signals[0].seen_steps


async def test_what_came_late_is_asked_for_once_when_the_device_is_back() -> None:
    moments = [NOON + minute * MINUTE for minute in range(20)]
    source = Source(silent=moments[5:15], silent_from=moments[4])
    observer = Observer(source, Cluster(), RULES)
    for moment in moments[:16]:
        await observer.look(moment)
    assert seen(observer, moments[15]) < 33
    await observer.look(moments[16])
    assert seen(observer, moments[16]) == 35
    await observer.look(moments[17])
    usual = source.asked[1]
    assert [span > usual for span in source.asked[15:18]] == [False, True, False]


@pytest.mark.parametrize(("interval", "step"), [(61.0, 60.0), (75.0, 90.0), (120.0, 120.0)])
async def test_the_window_is_read_in_the_steps_of_the_source(interval: float, step: float) -> None:
    observer = Observer(Source(interval=interval, step=step), Cluster(), RULES)
    await observer.look(NOON)
    reading = observer.reading(NOON, honor_labels=None)
    assert reading.period.step_seconds == step
    assert reading.evidence.keys() == {DEVICE}

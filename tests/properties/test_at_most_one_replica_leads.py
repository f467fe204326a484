"""At most one replica leads at any time, however they are stopped, delayed and misinformed.

Three replicas with clocks and settings of their own compete for one Lease. Each call to the server
stops before and after it is carried out; at each stop any time may pass, as for a process that is
stopped (SIGSTOP), a slow network, or a slow server; calls fail, and answers are lost.
"""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from support.lease_server import LeaseServer, Steps
from support.manual_clock import NOON, ManualClock

from gpu_pruner.kube.lease_elector import Elector
from gpu_pruner.settings.lease import LeaseSettings

REPLICAS = 3
SETTINGS = (
    LeaseSettings(),
    LeaseSettings(duration_seconds=5, renew_deadline_seconds=4.9, retry_seconds=1),
    LeaseSettings(duration_seconds=60, renew_deadline_seconds=40),
)
WELL, DOWN, LOSING, CYCLE, RELEASE = range(5)
EVENTS = (WELL,) * 30 + (DOWN, LOSING, CYCLE, RELEASE)
STEPS = 150


class Race:
    def __init__(self, ahead: list[float], settings: list[LeaseSettings]) -> None:
        self.at = 0.0
        self.server = LeaseServer(stops=True)
        self.electors = [
            Elector(
                self.server.lease(),
                told,
                identity=f"replica-{number}",
                clock=ManualClock(NOON + clock),
                monotonic=lambda: self.at,
            )
            for number, (clock, told) in enumerate(zip(ahead, settings, strict=True))
        ]
        self.steps = [Steps() for _ in self.electors]
        self.over: list[object] = []

    def check(self) -> None:
        terms = [one.term for one in self.electors if one.term is not None]
        assert len(terms) <= 1
        assert sum(one.seconds_left() > 0 for one in self.electors) <= len(terms)
        assert not any(term is one for term in terms for one in self.over), "a term came back"

    def step(self, who: int, pause: float, event: int) -> None:
        before = [one.term for one in self.electors]
        self.at += pause
        self.check()
        elector = self.electors[who]
        self.server.down, self.server.losing = event == DOWN, event == LOSING
        if event == CYCLE and (term := elector.begin_cycle()):
            elector.complete_cycle(term, NOON + self.at)
        elif event == RELEASE and self.steps[who].idle:
            self.steps[who].go_on(elector.release)
        else:
            self.steps[who].go_on(elector.attempt)
        self.over += [
            old
            for old, one in zip(before, self.electors, strict=True)
            if old is not None and old is not one.term
        ]
        self.check()


@given(st.integers(0, 2**32))
def test_at_most_one_replica_leads(seed):
    """Mostly everybody takes small steps; now and then some are stopped for a while."""
    draw = random.Random(seed)  # noqa: S311 - chance, not secrets
    race = Race(
        [draw.choice((-3600.0, 0.0, 30.0)) for _ in range(REPLICAS)],
        [draw.choice(SETTINGS) for _ in range(REPLICAS)],
    )
    moving, quick = list(range(REPLICAS)), True
    for _ in range(STEPS):
        if draw.random() < 0.1:
            moving = draw.sample(range(REPLICAS), draw.randint(1, REPLICAS))
            quick = draw.random() < 0.7
        pause = draw.choice((0.0, 0.1, 0.5)) if quick else draw.uniform(0.0, 9.0)
        race.step(draw.choice(moving), pause, draw.choice(EVENTS))


def test_they_do_come_to_lead_in_turn() -> None:
    """What the property says of leaders must not hold because nobody ever leads."""
    race = Race([0.0] * REPLICAS, [LeaseSettings()] * REPLICAS)
    led = set()
    for number in range(900):
        stopped = number // 100 % REPLICAS
        if number % REPLICAS != stopped:
            race.step(number % REPLICAS, 0.5, WELL)
        led |= {one.identity for one in race.electors if one.term is not None}
    assert len(led) == REPLICAS

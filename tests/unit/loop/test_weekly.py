from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs
from support.manual_clock import NOON, ManualClock

from gpu_pruner.errors import LedgerError, NotificationError
from gpu_pruner.loop.weekly import LATEST, LOOK_SECONDS, WeeklyReport

WEEK = 7 * 86_400.0


@dataclass
class Desk:
    """Remembers what was posted; may fail in each of its steps."""

    claims: list[bool | None] = field(default_factory=list)
    """What claims are answered with, one after the other; then: ours, until it is noted."""
    failures: dict[str, list[Exception]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    noted: set[float] = field(default_factory=set)

    def claim(self, due_at: float, *, now: float) -> bool | None:
        self._step("claim")
        if self.claims:
            return self.claims.pop(0)
        return None if due_at in self.noted else True

    def post(self, due_at: float) -> None:
        self._step("post")

    def note(self, due_at: float, *, now: float) -> None:
        self._step("note")
        self.noted.add(due_at)

    def give_up(self, due_at: float) -> None:
        self._step("give up")

    def _step(self, name: str) -> None:
        self.told.append(name)
        if self.failures.get(name):
            raise self.failures[name].pop(0)


@dataclass
class Stage:
    desk: Desk = field(default_factory=Desk)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOON - 90))
    leads: bool = True

    def __post_init__(self) -> None:
        self.weekly = WeeklyReport(
            last_due=lambda now: NOON + (now - NOON) // WEEK * WEEK,
            desk=self.desk,
            clock=self.clock,
            leads=lambda: self.leads,
        )

    async def look_until(self, end: float) -> list[str]:
        """Look every half minute, and return the steps that were taken."""
        self.desk.told.clear()
        while self.clock.at < end:
            self.clock.at += LOOK_SECONDS
            await self.weekly.attempt()
        return self.desk.told


async def test_what_is_due_is_posted_once_and_noted() -> None:
    stage = Stage()
    assert await stage.look_until(NOON - 1 - LOOK_SECONDS) == []
    assert await stage.look_until(NOON) == ["claim", "post", "note"]
    assert await stage.look_until(NOON + LATEST) == []
    assert await stage.look_until(NOON + 2 * WEEK) == ["claim", "post", "note"] * 2


async def test_a_replica_that_does_not_lead_posts_nothing() -> None:
    stage = Stage(leads=False)
    assert await stage.look_until(NOON + 3600) == []
    stage.leads = True
    assert await stage.look_until(NOON + 3630) == ["claim", "post", "note"]


async def test_what_another_posted_or_is_posting_is_left_to_it() -> None:
    stage = Stage(Desk(claims=[False, False, None]))
    assert await stage.look_until(NOON + LATEST) == ["claim"] * 3


async def test_a_moment_that_passed_while_nobody_ran_is_made_up_for_a_day() -> None:
    late, too_late = Stage(), Stage()
    late.clock.at, too_late.clock.at = NOON + LATEST - LOOK_SECONDS, NOON + LATEST
    assert await late.look_until(NOON + LATEST) == ["claim", "post", "note"]
    assert await too_late.look_until(NOON + WEEK - 60) == []


async def test_what_was_not_taken_is_given_up_and_tried_again_ever_less_often() -> None:
    stage = Stage(Desk(failures={"post": [NotificationError("no_service")] * 3}))
    with capture_logs() as logs:
        told = await stage.look_until(NOON + 3600)
    assert told == ["claim", "post", "give up"] * 3 + ["claim", "post", "note"]
    lines = [(one["event"], one.get("again_in_seconds")) for one in logs]
    assert lines == [
        ("weekly report not posted", 60.0),
        ("weekly report not posted", 120.0),
        ("weekly report not posted", 240.0),
        ("weekly report posted", None),
    ]


async def test_a_channel_that_is_gone_is_asked_about_hourly_for_a_day() -> None:
    stage = Stage(Desk(failures={"post": [NotificationError("no_service")] * 100}))
    assert 24 < (await stage.look_until(NOON + WEEK - 60)).count("post") < 34


async def test_a_database_that_is_away_keeps_the_report_waiting() -> None:
    stage = Stage(Desk(failures={"claim": [LedgerError("away")] * 2}))
    assert await stage.look_until(NOON + 600) == ["claim"] * 3 + ["post", "note"]


async def test_what_was_posted_and_not_noted_is_only_noted_later() -> None:
    stage = Stage(Desk(failures={"note": [LedgerError("away")] * 2}))
    assert await stage.look_until(NOON + 600) == ["claim", "post"] + ["note"] * 3


@pytest.mark.parametrize("step", ["give up"])
async def test_what_cannot_even_be_given_up_tells_of_the_first_failure(step: str) -> None:
    failures = {"post": [NotificationError("no_service")], step: [LedgerError("away")]}
    stage = Stage(Desk(failures=failures))
    with capture_logs() as logs:
        await stage.look_until(NOON)
    assert [one["error"] for one in logs] == ["no_service"]

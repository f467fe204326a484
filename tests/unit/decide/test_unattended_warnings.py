"""Time in which no replica led is no notice: the deadline moves by it, or the warning is void."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.story import CYCLE, Story
from support.telling_time import START, moment
from support.world import World

from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.orders import MessageKind
from gpu_pruner.model.plan import Action, Decision
from gpu_pruner.model.snapshot import Snapshot
from gpu_pruner.model.units import MINUTE
from gpu_pruner.model.verdict import Reason
from gpu_pruner.notify.messages import occasion

WARNED = Book(
    phase=Phase.WARNED,
    warned_at=moment("-60m"),
    warned_via=("event",),
    warned_mode="scale-down",
    pause_at=moment("-45m"),
    resource_version="1",
)


class Away(Story):
    """A world that nobody looked after from a moment until the first cycle."""

    since = 0.0

    def snapshot(self, now: float) -> Snapshot:
        unattended = {self.world.root("train").uid: self.since} if now <= START else {}
        return replace(super().snapshot(now), unattended=unattended)


def away(since: str, **changes: object) -> Away:
    it = Away(World({"train": {}}))
    it.since = moment(since)
    it.world.books[it.world.root("train").uid] = replace(WARNED, **changes)  # type: ignore[arg-type]  # one table for fields of many types
    return it


def lived(it: Story, cycles: int) -> Decision:
    return it.run(until=it.now + cycles * CYCLE).decisions[0]


def test_a_deadline_ahead_moves_by_the_time_away() -> None:
    back = lived(away("-10m", pause_at=moment("2m")), 1)
    assert (back.book.phase, back.book.pause_at) == (Phase.WARNED, moment("12m"))
    assert back.book.frozen_since is None
    assert back.action is Action.NONE


def test_a_deadline_that_passed_while_nobody_was_there_is_still_ahead() -> None:
    it = away("-10m", pause_at=moment("-5m"))
    assert lived(it, 1).book.pause_at == moment("5m")
    assert lived(it, 4).action is Action.NONE
    assert lived(it, 1).action is Action.PAUSE


def test_a_deadline_that_had_passed_before_is_due_at_once() -> None:
    assert lived(away("-10m", pause_at=moment("-11m")), 1).action is Action.PAUSE


@pytest.mark.parametrize("minutes", [36, 60, 600])
def test_an_absence_of_more_than_a_window_voids_the_warning_and_it_is_given_anew(
    minutes: int,
) -> None:
    warned_at = moment(f"-{minutes + 10}m")
    it = away(f"-{minutes}m", warned_at=warned_at, pause_at=warned_at + 15 * MINUTE)
    back = lived(it, 1)
    assert (back.reason, back.book.phase) == (Reason.WARNING_VOID, Phase.NOMINATED)
    assert f"stood still for {minutes} minutes" in back.message
    again = [lived(it, 1).action for _ in range(20)]
    assert [one for one in again if one is not Action.NONE] == [Action.WARN, Action.PAUSE]


def test_a_warning_given_anew_is_told_anew() -> None:
    it = away("-60m", warned_at=moment("-70m"), pause_at=moment("-55m"))
    root = it.world.root("train")
    it.world.books[root.uid] = replace(it.world.books[root.uid], nominated_at=moment("-72m"))
    before = occasion(it.run(until=START).decisions[0], MessageKind.CANCELLED)
    voided = it.world.books[root.uid].nominated_at
    anew = next(one for _ in range(5) if (one := lived(it, 1)).action is Action.WARN)
    assert occasion(anew, MessageKind.WARNING) != before
    assert anew.book.nominated_at == voided == START


def test_an_absence_with_an_end_in_doubt_goes_on_as_a_freeze_from_its_begin() -> None:
    it = away("-10m", pause_at=moment("2m"))
    it.breakers = ("ScreenFailed",)
    back = lived(it, 1)
    assert (back.reason, back.book.frozen_since) == (Reason.CLOCK_FROZEN, moment("-10m"))


def test_an_absence_within_a_freeze_changes_nothing() -> None:
    it = away("-10m", pause_at=moment("2m"), frozen_since=moment("-12m"))
    assert lived(it, 1).book.pause_at == moment("14m")


def test_a_clock_of_another_replica_that_is_ahead_takes_nothing_from_the_notice() -> None:
    assert lived(away("1m", pause_at=moment("2m")), 1).book.pause_at == moment("2m")

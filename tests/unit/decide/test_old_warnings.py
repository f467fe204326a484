"""A warning that nobody can still have in mind, or that nobody gave, leads to no pause."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from support.story import CYCLE, Story, told_rules
from support.telling_time import START, moment
from support.world import World

from gpu_pruner.decide.plan import plan
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.plan import Action, Decision, Verification
from gpu_pruner.model.verdict import Reason

WINDOW = 35
WARNED = Book(
    phase=Phase.WARNED,
    warned_at=moment("-20m"),
    warned_via=("event",),
    warned_mode="scale-down",
    pause_at=moment("-1m"),
    resource_version="1",
)


class Doubting(Story):
    """A world whose full-window checks bring garbage, for as long as `doubts` is set."""

    doubts = True

    def verification(self, decision: Decision) -> Verification:
        made = super().verification(decision)
        if not self.doubts:
            return made
        garbled = tuple(
            structs.replace(
                one, signals=tuple(replace(signal, invalid_steps=1) for signal in one.signals)
            )
            for one in made.evidence
        )
        return replace(made, evidence=garbled)


def story(book: Book, kind: type[Story] = Story) -> Story:
    it = kind(World({"train": {}}))
    it.world.books[it.world.root("train").uid] = book
    return it


def lived(it: Story, cycles: int) -> Decision:
    return it.run(until=it.now + cycles * CYCLE).decisions[0]


def test_a_deadline_that_passed_a_while_ago_is_still_one() -> None:
    assert lived(story(replace(WARNED, pause_at=moment("-5m"))), 1).action is Action.PAUSE


@pytest.mark.parametrize("lasting", [2, WINDOW, WINDOW + 2, 600])
def test_a_check_that_fails_freezes_the_deadline_and_in_the_end_voids_the_warning(
    lasting: int,
) -> None:
    it = story(WARNED)
    it.failure = "the server is busy"
    first = lived(it, 1)
    assert (first.reason, first.book.frozen_since) == (Reason.VERIFY_FAILED, START)
    lived(it, lasting)
    it.failure = ""
    assert (lived(it, 1).action is Action.PAUSE) is (lasting < WINDOW)


@pytest.mark.parametrize("lasting", [2, WINDOW, WINDOW + 2, 600])
def test_a_check_that_doubts_freezes_the_deadline_though_the_screen_reads_idle(
    lasting: int,
) -> None:
    it = story(WARNED, Doubting)
    assert lived(it, 1).reason is Reason.CLOCK_FROZEN
    lived(it, 1)
    assert it.world.books[it.world.root("train").uid].frozen_since == START
    lived(it, lasting - 1)
    it.doubts = False
    assert (lived(it, 1).action is Action.PAUSE) is (lasting < WINDOW)


def test_a_clock_that_stood_still_moves_the_deadline_once_the_check_agrees() -> None:
    it = story(WARNED)
    it.failure = "the server is busy"
    lived(it, 3)
    it.failure = ""
    done = lived(it, 1)
    assert (done.action, done.book.frozen_since) == (Action.PAUSE, None)
    assert done.book.pause_at == moment("2m")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"warned_via": ()}, "nobody is known to have received it"),
        ({"warned_at": moment("-10m")}, "its notice is shorter than the settings ask for"),
        ({"warned_at": moment("90m"), "pause_at": moment("-1m")}, "it is dated ahead of time"),
        ({"warned_at": -62_104_060_800.0}, "it is too old"),
        ({"warned_at": moment("-5d")}, "it is too old"),
        ({"warned_mode": ""}, "it was given in mode unknown"),
        ({"warned_at": None}, "its times are not in the book"),
        ({"pause_at": None}, "its times are not in the book"),
    ],
)
def test_a_book_that_tells_of_no_warning_of_ours_is_void(
    changes: dict[str, object], why: str
) -> None:
    book = replace(WARNED, **changes)  # type: ignore[arg-type]  # one table for fields of many types
    decision = lived(story(book), 1)
    assert (decision.reason, decision.action) == (Reason.WARNING_VOID, Action.NONE)
    assert why in decision.message


def test_no_book_makes_the_measurement_longer_than_a_few_days() -> None:
    it = story(replace(WARNED, warned_at=moment("-50h"), pause_at=moment("-1m")))
    wanted = plan(it.snapshot(START), it.rules).decisions[0].verify
    assert wanted is not None
    assert wanted.steps == 50 * 60
    it = story(replace(WARNED, warned_at=moment("-80h")))
    assert plan(it.snapshot(START), it.rules).decisions[0].verify is None


def test_a_nomination_dated_ahead_of_time_confirms_nothing_less_and_nothing_later() -> None:
    ahead = Book(phase=Phase.NOMINATED, confirmations=1, nominated_at=moment("900h"))
    it = story(ahead)
    assert [lived(it, 1).action for _ in range(2)] == [Action.NONE, Action.WARN]


def test_times_of_pauses_that_lie_ahead_do_not_use_up_the_hour() -> None:
    it = Story(
        World(
            {"victim": {}}
            | {f"w-{n}": {"namespace": "team-b", "gpus": ["busy"]} for n in range(30)}
        ),
        told_rules(),
    )
    for number in range(30):
        uid = it.world.root(f"w-{number}").uid
        it.world.books[uid] = Book(paused_at=START + 1e9, resource_version="1")
    it.run(until=START + 20 * CYCLE)
    assert it.paused() == {"victim"}


@pytest.mark.parametrize("second", [1, 30, 59])
def test_work_in_the_unfinished_minute_is_heard_before_the_pause(second: int) -> None:
    it = Story(World({"train": {"gpus": [{"engine": "0.95 from 16m"}]}}))
    it.now += second
    it.run(until=START + 20 * CYCLE)
    assert it.world.books[it.world.root("train").uid].phase is Phase.WATCHING
    assert it.paused() == set()

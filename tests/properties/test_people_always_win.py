"""S12: whoever asked to be left alone, in whatever words and place, is left alone."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import BOOKS, HOSTILE_TEXT, wishes
from support.story import CYCLE, Story, told_rules
from support.telling_time import START
from support.world import World

from gpu_pruner.model.annotations import EXEMPT
from gpu_pruner.model.book import Phase
from gpu_pruner.model.plan import Action
from gpu_pruner.model.units import parse_rfc3339

ACTS = {Action.WARN, Action.PAUSE}
MODES = st.sampled_from(["scale-down", "dry-run"])


def cycles(story: Story, count: int) -> None:
    for number in range(count):
        for one in story.cycle(START + number * CYCLE).decisions:
            assert one.action not in ACTS, one.message
            assert one.book.phase not in {Phase.PAUSING, Phase.PAUSED}


@given(wishes(), BOOKS, MODES)
def test_a_wish_is_stronger_than_any_deadline(
    wish: dict[str, Any], book: dict[str, Any], mode: str
) -> None:
    workload: dict[str, Any] = {"gpus": 1} | wish["workload"]
    if book:
        workload["book"] = book
    world = World({"w-0": workload}, namespaces={"team-a": wish["namespace"]})
    cycles(Story(world, told_rules({"mode": mode})), 2)


@given(HOSTILE_TEXT, BOOKS)
def test_an_exemption_that_cannot_be_read_is_an_exemption(text: str, book: dict[str, Any]) -> None:
    assume(text.strip().lower() != "false")
    try:
        past = parse_rfc3339(text.strip()) <= START + CYCLE
    except (ValueError, OverflowError):
        past = False
    assume(not past)
    workload: dict[str, Any] = {"gpus": 1, "owner": {"annotations": {EXEMPT: text}}}
    if book:
        workload["book"] = book
    cycles(Story(World({"w-0": workload})), 2)


@given(wishes())
def test_a_wish_that_comes_in_the_last_minute_wins(wish: dict[str, Any]) -> None:
    workload: dict[str, Any] = {"gpus": 1}
    world = World({"w-0": workload})
    story = Story(world, told_rules({"notice_seconds": "3m"}))
    last = story.run(until=START + 3 * CYCLE)
    assert last.decisions[0].book.phase is Phase.WARNED
    workload |= wish["workload"]
    world.namespaces["team-a"] = wish["namespace"]
    plan = story.cycle(START + 4 * CYCLE)
    assert {one.action for one in plan.decisions} <= {Action.NONE, Action.CANCEL}

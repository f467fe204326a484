"""S6: while telemetry as a whole cannot be trusted nothing is done; and it ends again."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st
from strategies import idle_worlds
from support.story import CYCLE, Story
from support.telling_time import START
from support.world import World

from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.model.book import Phase
from gpu_pruner.model.plan import Action

NOTHING = {Action.NONE}
LASTING = st.integers(min_value=1, max_value=5)


@given(
    idle_worlds(most=8),
    st.sampled_from(["ScreenFailed", "ClockSkew", "ApiStale", "BooksUnavailable", "DataLost"]),
    LASTING,
)
def test_while_a_breaker_is_open_nobody_is_warned_or_paused_and_no_deadline_comes_nearer(
    workloads: dict[str, Any], name: str, lasting: int
) -> None:
    story = Story(World(workloads), breakers=(name,))
    before = {one.root.uid: one.book for one in story.world.view().books.values()}
    for minute in range(lasting):
        plan = story.cycle(START + minute * CYCLE)
        assert {one.action for one in plan.decisions} <= NOTHING
        for one in plan.decisions:
            was = before.get(one.workload.root.uid)
            if one.book.phase is Phase.WARNED and was is not None:
                assert one.book.frozen_since == START
                assert one.book.pause_at == was.pause_at
    story.breakers = ()
    thawed = story.cycle(START + lasting * CYCLE)
    for one in thawed.decisions:
        was = before.get(one.workload.root.uid)
        if was is None or was.pause_at is None or one.book.pause_at is None:
            continue
        if was.phase is Phase.WARNED and one.book.phase is Phase.WARNED:
            # What has no room now keeps the moment from which its deadline moves.
            stood = 0.0 if one.book.frozen_since is None else thawed.at - one.book.frozen_since
            assert one.book.pause_at + stood == was.pause_at + lasting * CYCLE


@given(
    st.integers(min_value=1, max_value=6),
    st.integers(min_value=0, max_value=24),
    st.integers(min_value=0, max_value=1),
    st.integers(min_value=1, max_value=3),
)
def test_losing_a_fifth_of_the_devices_stops_everything_until_they_are_back(
    lost: int, others: int, begin: int, lasting: int
) -> None:
    gap = {"gap": f"{begin}m to {begin + lasting + 2}m"}
    workloads: dict[str, Any] = {"lost": {"gpus": [gap] * lost}, "quiet": {"namespace": "team-b"}}
    if others:
        workloads["rest"] = {"namespace": "team-c", "gpus": ["busy"] * others}
    story = Story(World(workloads))
    for minute in range(begin + 2):
        story.cycle(START + minute * CYCLE)
    is_many = lost >= max(2, 0.2 * (lost + 1 + others))
    event("many" if is_many else "few")
    for minute in range(begin + 2, begin + lasting + 2):
        plan = story.cycle(START + minute * CYCLE)
        assert {one.name for one in plan.breakers} == ({"DataLost"} if is_many else set())
        if is_many:
            assert {one.action for one in plan.decisions} <= NOTHING
    back = story.cycle(START + (begin + lasting + 3) * CYCLE)
    assert back.breakers == ()


@given(
    st.lists(st.integers(min_value=1, max_value=4), min_size=1, max_size=4),
    st.integers(min_value=0, max_value=30),
    st.integers(min_value=2, max_value=3),
)
def test_a_crowd_that_fell_quiet_at_once_is_never_called_idle_for_a_window_more(
    sizes: list[int], others: int, ends_at: int
) -> None:
    quiet = {"engine": f"0.9 until {ends_at}m"}
    workloads: dict[str, Any] = {
        f"w-{number}": {"namespace": f"team-{number}", "gpus": [quiet] * size}
        for number, size in enumerate(sizes)
    }
    if others:
        # One of them tells, all of them count: what is allocated is what the pods request.
        rest = {"gpus": ["busy"], "requests": {"nvidia.com/gpu": others}}
        workloads["rest"] = {"namespace": "team-r", "pods": [rest]}
    story = Story(World(workloads))
    story.run(until=START + (ends_at + 3) * CYCLE)
    crowd = sum(sizes)
    is_crowd = crowd >= 8 and len(sizes) >= 3 and crowd >= 0.3 * (crowd + others)
    event("crowd" if is_crowd else "no crowd")
    assert len(story.snapshots[-1].silenced) == (crowd if is_crowd else 0)
    for minute in (35, 69, 70):
        story.table = ScreenTable()
        plan = story.cycle(START + (ends_at + minute) * CYCLE)
        idle = {one.verdict.value for one in plan.decisions if one.workload.root.name != "rest"}
        assert idle == ({"unknown"} if is_crowd and minute < 70 else {"idle"})

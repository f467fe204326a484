"""S5: neither what is paused nor the deadlines that are promised exceed the budget."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from strategies import idle_worlds
from support.story import CYCLE, Story, told_rules
from support.telling_time import START
from support.world import World

from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.model.plan import Action, Decision
from gpu_pruner.model.rules import Rules

HOUR = 3600.0


def check_cycle(acts: tuple[Decision, ...], rules: Rules, *, allocated: int) -> None:
    assert len(acts) <= rules.budget_workloads_per_cycle
    spaces = Counter(one.workload.root.namespace for one in acts)
    assert max(spaces.values(), default=0) <= rules.budget_per_namespace_per_cycle
    gpus = sum(one.workload.gpus for one in acts)
    assert len(acts) <= 1 or gpus <= rules.budget_gpu_ratio_per_cycle * allocated


@given(
    idle_worlds(most=8),
    st.integers(min_value=1, max_value=6),
    st.sampled_from([0.1, 0.3, 0.9]),
    st.integers(min_value=0, max_value=5),
)
def test_no_cycle_and_no_hour_pauses_more_than_the_budget(
    workloads: dict[str, Any], per_hour: int, ratio: float, restart_at: int
) -> None:
    rules = told_rules(
        {
            "budget_per_hour": per_hour,
            "budget_ratio_per_hour": 0.0,
            "budget_gpu_ratio_per_cycle": ratio,
            "budget_workloads_per_cycle": 3,
            "notice_seconds": "2m",
        }
    )
    story = Story(World(workloads), rules)
    acted = [
        book.book.paused_at
        for book in story.world.view().books.values()
        if book.book.paused_at is not None
    ]
    for number in range(6):
        now = START + number * CYCLE
        if number == restart_at:
            story.table = ScreenTable()
        acts = story.cycle(now).with_action(Action.PAUSE)
        check_cycle(acts, rules, allocated=story.snapshots[-1].allocated_gpus)
        recent = [at for at in acted if at > now - HOUR]
        if acts:
            assert len(recent) + len(acts) <= rules.budget_per_hour
        acted += [now for _ in acts]


@given(idle_worlds(), st.integers(min_value=2, max_value=12))
def test_deadlines_that_are_promised_together_fit_the_budget(
    workloads: dict[str, Any], per_hour: int
) -> None:
    rules = told_rules({"budget_per_hour": per_hour, "budget_ratio_per_hour": 0.0})
    for spec in workloads.values():
        if spec.get("book", {}).get("phase") == "Warned":
            del spec["book"]
    story = Story(World(workloads), rules)
    story.cycle(START)
    plan = story.cycle(START + CYCLE)
    warned = [one for one in plan.decisions if one.action is Action.WARN]
    paused = [
        one.workload.book.paused_at
        for one in plan.decisions
        if one.workload.book.paused_at is not None
    ]
    slots: dict[int, list[Decision]] = {}
    for one in warned:
        assert one.book.pause_at is not None
        assert one.book.pause_at >= START + CYCLE + rules.notice_seconds
        slots.setdefault(int(one.book.pause_at // CYCLE), []).append(one)
    allocated = story.snapshots[-1].allocated_gpus
    for together in slots.values():
        check_cycle(tuple(together), rules, allocated=allocated)
    times = sorted([one.book.pause_at for one in warned if one.book.pause_at] + paused)
    for place in range(len(times) - per_hour):
        hour = times[place : place + per_hour + 1]
        assert hour[-1] - hour[0] >= HOUR or hour[-1] <= START + CYCLE

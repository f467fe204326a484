"""Whoever asks is told what the controller's own full-window check says, and what it would do."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import event, example, given
from strategies import worlds
from support.asked import asked
from support.story import Story
from support.telling_time import START
from support.world import World

from gpu_pruner.decide.plan import plan
from gpu_pruner.loop.explaining import Examined, Question
from gpu_pruner.model.plan import Action, Decision
from gpu_pruner.model.verdict import Verdict


def decided(story: Story) -> dict[str, Decision]:
    """Decide as a cycle does: on a measurement where it asks for one."""
    snapshot = story.snapshot(START)
    wanted = plan(snapshot, story.rules).with_action(Action.VERIFY)
    story.now = START
    found = {one.workload.root.uid: story.verification(one) for one in wanted}
    done = plan(snapshot, story.rules, verifications=found)
    return {one.workload.root.ref: one for one in done.decisions}


def explained(story: Story, ref: str) -> Examined:
    root = next(
        root for name in story.world.workloads if (root := story.world.root(name)).ref == ref
    )
    answer = asyncio.run(asked(story, Question(root=root), later=0.0))
    (one,) = answer.examined
    return one


@given(worlds())
def test_explain_agrees_with_the_check_before_a_warning_or_an_act(
    workloads: dict[str, Any],
) -> None:
    story = Story(World(workloads))
    for ref, decision in decided(story).items():
        one = explained(Story(World(workloads)), ref)
        event(f"{decision.verdict} {'checked' if decision.verified_at else 'screened'}")
        if decision.verified_at is not None:
            told = (one.decision.verdict, one.decision.reason, one.decision.action)
            assert told == (decision.verdict, decision.reason, decision.action), ref
            assert one.decision.findings == decision.findings
            # A warning tells its deadline, and others that are warned at once may come before it.
            if decision.action is not Action.WARN:
                assert one.decision.message == decision.message


WORK_BEFORE_THE_WINDOW_OF_A_SHARE = {
    "w-0": {
        "kind": "Deployment",
        "namespace": "team-a",
        "pods": [
            {
                "gpus": [{"util": "0.5 from -36m to -35m", "engine": "absent", "replica": "0"}],
                "node": "node-1",
            }
        ],
    }
}


@given(worlds())
@example(WORK_BEFORE_THE_WINDOW_OF_A_SHARE)
def test_what_the_screen_knows_to_work_is_explained_as_working(workloads: dict[str, Any]) -> None:
    story = Story(World(workloads))
    for ref, decision in decided(story).items():
        one = explained(Story(World(workloads)), ref)
        if one.screened.verdict is Verdict.ACTIVE:
            assert one.decision.verdict is Verdict.ACTIVE
        if one.decision.verdict is Verdict.IDLE:
            assert {found.verdict for found in one.decision.findings} == {Verdict.IDLE}
        if decision.action in {Action.WARN, Action.PAUSE}:
            assert one.decision.action is decision.action

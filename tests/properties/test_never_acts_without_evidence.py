"""S1, S2: whoever is warned or paused is idle by every device, in truth and not only as judged."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given
from strategies import DUE, devices, worlds
from support.story import Story
from support.telling_time import START
from support.truth import is_provably_idle
from support.world import World

from gpu_pruner.model.plan import Action, Plan
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.model.workload import PodPhase

ACTS = {Action.WARN, Action.PAUSE}


def acted_on(story: Story, plan: Plan) -> set[str]:
    roots = {one.workload.root for one in plan.decisions if one.action in ACTS}
    return {name for name in story.world.workloads if story.world.root(name) in roots}


@given(worlds())
def test_whoever_is_acted_on_is_provably_idle(workloads: dict[str, Any]) -> None:
    story = Story(World(workloads))
    before = {name: dict(spec) for name, spec in workloads.items()}
    acted = acted_on(story, story.cycle(START))
    event("acted" if acted else "did nothing")
    truth = World(before)
    for name in acted:
        assert is_provably_idle(truth, name, story.rules, now=START), name


@given(worlds())
def test_every_act_rests_on_a_fresh_full_window_check_that_says_idle(
    workloads: dict[str, Any],
) -> None:
    story = Story(World(workloads))
    for one in story.cycle(START).decisions:
        if one.action in ACTS:
            assert one.verdict is Verdict.IDLE
            assert one.verified_at is not None
            assert START - one.verified_at <= story.rules.verify_max_age_seconds
            assert {found.verdict for found in one.findings} == {Verdict.IDLE}
            running = [
                pod.record for pod in one.workload.pods if pod.record.phase is PodPhase.RUNNING
            ]
            assert len(one.findings) == sum(pod.gpus for pod in running)


@given(devices())
def test_the_one_device_that_is_provably_idle_is_acted_on(spec: dict[str, Any]) -> None:
    """Without this, the promise above could be kept by never doing anything."""
    stopping = {"previous", "replica", "node", "util"} & set(spec)
    if "until" in str(spec.get("energy")):
        stopping.add("energy")
    workload = {"pods": [{"gpus": [spec]}], "book": DUE}
    story = Story(World({"w-0": workload}))
    truth = World({"w-0": dict(workload)})
    idle = is_provably_idle(truth, "w-0", story.rules, now=START)
    acted = acted_on(story, story.cycle(START))
    if not stopping:
        assert bool(acted) is idle

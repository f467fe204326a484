"""S1 for what was given back: known, and without work since, in truth and not only as judged."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import event, given
from strategies import worlds
from support.story import Story
from support.telling_time import START, moment
from support.truth import is_alive, is_covered, is_quiet
from support.world import World

from gpu_pruner.model.plan import Action
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import Signal
from gpu_pruner.model.verdict import Reason

RELEASED = {"released": "-20s", "release_by": "ada"}
LAST_MINUTE = 60.0


def all_released(workloads: dict[str, Any]) -> dict[str, Any]:
    return {
        name: spec | {"intent": spec.get("intent", {}) | RELEASED}
        for name, spec in workloads.items()
    }


def is_known_and_quiet(world: World, name: str, rules: Rules) -> bool:
    """Whether every device is measured, and did nothing in the minute of the release."""
    for device in world.devices():
        if not device.id.uuid.startswith(f"GPU-{name}-"):
            continue
        window = rules.window_seconds * (1 if Signal.ENGINE in device.readings else 2)
        if not (
            device.spec.get("labels", "exported") != "none"
            and is_quiet(device, rules, now=START, back=LAST_MINUTE)
            and is_covered(device, now=START, back=window)
            and is_alive(device, now=START, back=window)
        ):
            return False
    return True


@given(worlds())
def test_whoever_is_paused_on_a_release_is_measured_and_did_nothing_since(
    workloads: dict[str, Any],
) -> None:
    truth = World(all_released(copy.deepcopy(workloads)))  # the story changes its world
    story = Story(World(all_released(workloads)))
    for one in story.cycle(START).decisions:
        if one.action is not Action.PAUSE or one.reason is not Reason.RELEASED:
            continue
        event("paused")
        name = next(
            key for key in story.world.workloads if story.world.root(key) == one.workload.root
        )
        assert is_known_and_quiet(truth, name, story.rules), (name, one.message)
        assert one.verified_at is not None
        assert START - one.verified_at <= story.rules.verify_max_age_seconds
        assert one.workload.vetoes == ()
        assert one.workload.obstacle is None
        for pod in one.workload.pods:
            assert not pod.record.terminating
            assert pod.record.created_at < moment("-20s")

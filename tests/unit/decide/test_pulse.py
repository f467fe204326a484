"""Losses and silences that concern many devices at once, told minute by minute."""

from __future__ import annotations

from typing import Any

import pytest
from support.story import CYCLE, Story
from support.telling_time import START
from support.world import World

from gpu_pruner.decide.pulse import Pulse
from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.model.plan import Plan
from gpu_pruner.model.verdict import Reason


def at(minute: int) -> float:
    return START + minute * CYCLE


def spread(count: int, spec: Any, *, roots: int) -> dict[str, Any]:
    """So many devices alike, over so many workloads of as many namespaces."""
    sizes = [count // roots + (number < count % roots) for number in range(roots)]
    return {
        f"w-{number}": {"namespace": f"team-{number}", "gpus": [dict(spec) for _ in range(size)]}
        for number, size in enumerate(sizes)
    }


def breakers(plan: Plan) -> list[str]:
    return [one.name for one in plan.breakers]


def reasons(plan: Plan) -> set[Reason]:
    return {one.reason for one in plan.decisions}


def device_reasons(plan: Plan) -> set[Reason]:
    return {found.reason for one in plan.decisions for found in one.findings}


LOST = {"gap": "from 3m"}
"""No sample from the third minute on: lost when the newest one is 90 s old."""


@pytest.mark.parametrize(
    ("lost", "others", "opens"), [(2, 0, True), (1, 3, False), (2, 8, True), (2, 9, False)]
)
def test_many_losses_at_once_open_the_breaker(
    lost: int,
    others: int,
    opens: bool,  # noqa: FBT001 - a column of the table above
) -> None:
    story = Story(World({"lost": {"gpus": [LOST] * lost}, "rest": {"gpus": ["busy"] * others}}))
    if not others:
        del story.world.workloads["rest"]
    assert breakers(story.run(until=at(4))) == []
    assert breakers(story.run(until=at(5))) == (["DataLost"] if opens else [])


def test_a_loss_is_structural_after_one_window_and_over_when_the_data_is_back() -> None:
    workloads = {"lost": {"gpus": [LOST, LOST]}, "back": {"gpus": [{"gap": "3m to 9m"}] * 2}}
    story = Story(World(workloads))
    assert breakers(story.run(until=at(5))) == ["DataLost"]
    assert breakers(story.run(until=at(39))) == ["DataLost"]
    assert breakers(story.run(until=at(40))) == []


def test_losses_of_pods_that_went_or_of_nodes_that_are_down_do_not_count() -> None:
    gone: dict[str, Any] = {"gone": {"gpus": [LOST] * 3}, "rest": {"namespace": "team-b"}}
    story = Story(World(gone))
    story.run(until=at(4))
    story.world.workloads["gone"]["pods"] = []
    assert breakers(story.run(until=at(5))) == []
    story = Story(World({"down": {"gpus": [LOST] * 3}}, nodes={"node-1": {}}))
    story.run(until=at(4))
    story.world.nodes["node-1"]["ready"] = False
    assert breakers(story.run(until=at(5))) == []


@pytest.mark.parametrize(
    "structural",
    [
        {"replica": "0"},
        {"slice": "1", "uuid": "GPU-x", "engine": "absent"},
        {"engine": "absent", "util": "absent"},
    ],
)
def test_devices_that_never_had_data_to_judge_by_never_count(structural: dict[str, Any]) -> None:
    story = Story(World({"w": {"gpus": [structural | LOST] * 2}}))
    assert breakers(story.run(until=at(6))) == []


def test_a_cold_start_finds_nothing_lost_and_nothing_silenced() -> None:
    story = Story(World(spread(12, {"engine": "0.9 until -10m"}, roots=3)))
    story.run(until=at(30))
    assert story.snapshots[-1].silenced == {}
    story = Story(World({"w": {"gpus": [{"gap": "from -10m"}] * 4}}))
    assert breakers(story.run(until=at(0))) == []


BUSY_UNTIL_5 = {"engine": "0.9 until 5m"}


@pytest.mark.parametrize(
    ("devices", "roots", "others", "held"),
    [(8, 3, 0, 8), (7, 3, 0, 0), (8, 2, 0, 0), (8, 3, 18, 8), (8, 3, 19, 0)],
)
def test_a_crowd_that_falls_quiet_at_once_is_held(
    devices: int, roots: int, others: int, held: int
) -> None:
    workloads = spread(devices, BUSY_UNTIL_5, roots=roots)
    if others:
        workloads["rest"] = {"namespace": "team-r", "gpus": ["busy"] * others}
    story = Story(World(workloads))
    story.run(until=at(8))
    assert len(story.snapshots[-1].silenced) == held


def test_a_crowd_is_held_for_one_window_more_and_then_released() -> None:
    story = Story(World(spread(9, BUSY_UNTIL_5, roots=3)))
    assert reasons(story.run(until=at(39))) == {Reason.GPU_ACTIVE}
    assert reasons(story.run(until=at(40))) == {Reason.SUDDEN_SILENCE}
    assert reasons(story.run(until=at(74))) == {Reason.SUDDEN_SILENCE}
    assert reasons(story.run(until=at(75))) == {Reason.CONFIRMING}


def test_devices_that_fall_quiet_one_after_another_are_not_a_crowd() -> None:
    workloads = {
        f"w-{number}": {
            "namespace": f"team-{number}",
            "gpus": [{"engine": f"0.9 until {2 + 3 * number}m"}] * 3,
        }
        for number in range(4)
    }
    story = Story(World(workloads))
    story.run(until=at(20))
    assert story.snapshots[-1].silenced == {}


def test_one_of_the_crowd_that_works_again_is_no_longer_held() -> None:
    workloads = spread(9, BUSY_UNTIL_5, roots=3)
    story = Story(World(workloads))
    story.run(until=at(8))
    story.world.workloads["w-0"]["gpus"][0] = {"engine": "0.9 from 9m to 10m"}
    story.run(until=at(12))
    assert len(story.snapshots[-1].silenced) == 8


def test_a_failed_screen_changes_nothing_of_what_is_remembered() -> None:
    story = Story(World({"w": {"gpus": [LOST, LOST]}}))
    story.run(until=at(5))
    before = story.pulse
    story.blind = True
    assert breakers(story.run(until=at(8))) == ["DataLost"]
    assert story.pulse is before


def test_a_meter_that_was_seen_at_work_stays_proven() -> None:
    other = {"model": "NVIDIA GB10", "engine": "0.9 from 1m to 2m"}
    story = Story(World({"w": {"gpus": [{"model": "NVIDIA GB10"}]}, "one": {"gpus": [other]}}))
    assert Reason.UNPROVEN_METER in device_reasons(story.run(until=at(0)))
    assert Reason.UNPROVEN_METER not in device_reasons(story.run(until=at(3)))
    story.world.workloads["one"]["gpus"] = ["idle"]
    story.table = ScreenTable()
    assert Reason.UNPROVEN_METER not in device_reasons(story.run(until=at(4)))
    story.pulse, story.table = Pulse(), ScreenTable()
    assert Reason.UNPROVEN_METER in device_reasons(story.run(until=at(5)))

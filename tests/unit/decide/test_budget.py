from __future__ import annotations

from typing import Any

import pytest
from support.story import told_rules
from support.telling_time import START, moment
from support.world import World

from gpu_pruner.decide.budget import Budget
from gpu_pruner.model.signals import Period
from gpu_pruner.model.snapshot import Snapshot, Workload
from gpu_pruner.resolve.assemble import Reading, assemble

NOTICE = 900.0


def snapshot(workloads: dict[str, Any], rules: dict[str, Any]) -> Snapshot:
    reading = Reading(period=Period(0, 34, 60.0), scrape_interval_seconds=30.0)
    view = World(workloads).view()
    return assemble(view, reading, now=START, rules=told_rules(rules))


def many(count: int, *, gpus: int = 1, spaces: int = 1000) -> dict[str, Any]:
    return {f"w-{n:04d}": {"gpus": gpus, "namespace": f"team-{n % spaces}"} for n in range(count)}


def reserved(workloads: dict[str, Any], **rules: Any) -> list[float]:
    taken = snapshot(workloads, rules)
    budget = Budget(taken, told_rules(rules))
    earliest = START + NOTICE
    return [budget.reserve(one, earliest=earliest) - earliest for one in taken.workloads]


def test_a_slot_takes_five_workloads() -> None:
    found = reserved(many(7), budget_gpu_ratio_per_cycle=1.0)
    assert found == [0, 0, 0, 0, 0, 60, 60]


def test_a_slot_takes_one_workload_of_a_namespace() -> None:
    assert reserved(many(3, spaces=1), budget_gpu_ratio_per_cycle=1.0) == [0, 60, 120]
    two = reserved(many(3, spaces=1), budget_gpu_ratio_per_cycle=1.0,
                   budget_per_namespace_per_cycle=2)  # fmt: skip
    assert two == [0, 0, 60]


def test_a_slot_takes_a_tenth_of_the_gpus_or_one_workload() -> None:
    assert reserved(many(4, gpus=2)) == [0, 60, 120, 180]
    assert reserved(many(20, gpus=1))[:4] == [0, 0, 60, 60]


def test_a_small_workload_goes_into_the_slot_that_a_large_one_left() -> None:
    told = {
        "a": {"gpus": 3, "namespace": "team-1"},
        "b": {"gpus": 3, "namespace": "team-2"},
        "c": {"gpus": 1, "namespace": "team-2"},
    }
    assert reserved(told, budget_gpu_ratio_per_cycle=0.6) == [0, 60, 0]


def test_an_hour_takes_twenty_workloads_or_two_percent() -> None:
    found = reserved(many(45, spaces=45), budget_gpu_ratio_per_cycle=1.0)
    assert max(found[:20]) == 180
    assert (found[20], found[39], found[40]) == (3600, 3780, 7200)
    wide = reserved(many(1500), budget_gpu_ratio_per_cycle=1.0)
    assert (max(wide[:30]), wide[30]) == (300, 3600)


def test_what_others_were_promised_is_taken() -> None:
    told = many(1) | {
        "x": {
            "namespace": "team-0",
            "book": {"phase": "Warned", "pause_at": "15m", "warned_at": "-1m"},
        }
    }
    assert reserved(told, budget_gpu_ratio_per_cycle=1.0)[0] == 60


def test_a_frozen_promise_is_taken_where_it_moved_to() -> None:
    frozen = {"phase": "Warned", "pause_at": "5m", "warned_at": "-1m", "frozen_since": "-10m"}
    told = many(1) | {"x": {"namespace": "team-0", "book": frozen}}
    assert reserved(told, budget_gpu_ratio_per_cycle=1.0)[0] == 60


def test_a_deadline_is_a_whole_second() -> None:
    found = reserved(many(3, spaces=1), cycle_seconds=7.3, budget_gpu_ratio_per_cycle=1.0)
    assert all(one == int(one) for one in found)
    assert found == sorted(set(found))


def admitted(told: dict[str, Any], **rules: Any) -> list[Workload]:
    taken = snapshot(told, rules)
    budget = Budget(taken, told_rules(rules))
    return [one for one in taken.workloads if budget.admit(one)]


def test_a_cycle_admits_what_a_slot_takes() -> None:
    assert len(admitted(many(200))) == 5
    assert len(admitted(many(3, spaces=1))) == 1
    assert len(admitted(many(30, gpus=2))) == 3
    assert len(admitted(many(1, gpus=8))) == 1


@pytest.mark.parametrize(("ago", "count"), [("-59m", 1), ("-60m", 2)])
def test_an_hour_counts_every_pause_whatever_became_of_it(ago: str, count: int) -> None:
    told = many(4, spaces=4)
    told["w-0000"]["book"] = {"phase": "Watching", "paused_at": ago}
    rules = {"budget_per_hour": 2, "budget_ratio_per_hour": 0.0, "budget_gpu_ratio_per_cycle": 1.0}
    assert len(admitted(told, **rules)) == count
    assert moment(ago) < START

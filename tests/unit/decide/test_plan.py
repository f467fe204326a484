from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs
from support.story import CYCLE, Story, told_rules
from support.telling_time import START
from support.world import World

from gpu_pruner.decide.plan import plan
from gpu_pruner.model.plan import Action, Decision, Plan, Verification
from gpu_pruner.model.signals import Period
from gpu_pruner.model.verdict import Reason

DUE = {"phase": "Warned", "warned_at": "-20m", "pause_at": "-1m", "warned_mode": "scale-down"}
NOMINATED = {"phase": "Nominated", "confirmations": 1, "nominated_at": "-5m"}


def story(**workloads: dict[str, Any]) -> Story:
    told = Story(World(dict(workloads)))
    told.now = START
    return told


def only(found: Plan) -> Decision:
    (decision,) = found.decisions
    return decision


def test_a_first_plan_asks_for_the_whole_window() -> None:
    told = story(train={"book": NOMINATED})
    decision = only(plan(told.snapshot(START), told.rules))
    assert (decision.action, decision.reason) == (Action.VERIFY, Reason.CONFIRMING)
    assert decision.verify == Period.ending(START, length=2100, step_seconds=60)


def test_the_check_before_the_act_covers_all_the_time_since_the_warning() -> None:
    told = story(train={"book": DUE | {"warned_at": "-50m"}})
    decision = only(plan(told.snapshot(START), told.rules))
    assert decision.verify == Period.ending(START, length=3000, step_seconds=60)


def test_a_utilisation_only_device_is_checked_over_twice_the_window() -> None:
    told = story(train={"book": NOMINATED, "gpus": [{"engine": "absent"}]})
    decision = only(plan(told.snapshot(START), told.rules))
    assert decision.verify == Period.ending(START, length=4200, step_seconds=60)


def test_a_check_that_is_too_old_is_asked_for_again() -> None:
    told = story(train={"book": DUE})
    snapshot = told.snapshot(START)
    wanted = only(plan(snapshot, told.rules))
    for age, action in ((15.0, Action.PAUSE), (15.1, Action.VERIFY), (-2.0, Action.PAUSE)):
        made = replace(told.verification(wanted), at=START - age)
        found = only(plan(snapshot, told.rules, verifications={wanted.workload.root.uid: made}))
        assert found.action is action


def test_a_check_that_does_not_reach_back_far_enough_proves_nothing() -> None:
    told = story(train={"book": DUE | {"warned_at": "-50m"}})
    snapshot = told.snapshot(START)
    wanted = only(plan(snapshot, told.rules))
    short = structs.replace(wanted, verify=Period.ending(START, length=2100, step_seconds=60))
    made = {wanted.workload.root.uid: told.verification(short)}
    found = only(plan(snapshot, told.rules, verifications=made))
    assert (found.action, found.reason) == (Action.NONE, Reason.VERIFY_FAILED)


def test_a_check_without_evidence_proves_nothing() -> None:
    told = story(train={"book": DUE, "gpus": 2})
    snapshot = told.snapshot(START)
    wanted = only(plan(snapshot, told.rules))
    whole = told.verification(wanted)
    for evidence in ((), whole.evidence[:1]):
        made = Verification(at=START, evidence=evidence)
        found = only(plan(snapshot, told.rules, verifications={wanted.workload.root.uid: made}))
        assert (found.action, found.reason) == (Action.NONE, Reason.CLOCK_FROZEN)
        assert "NoSeries" in found.message


def test_a_warning_and_its_pause_carry_the_same_id() -> None:
    told = story(train={"gpus": 1})
    told.now = START - CYCLE
    warned = only(told.run(until=START + CYCLE))
    assert (warned.action, len(warned.decision_id)) == (Action.WARN, 12)
    due = only(told.run(until=START + 16 * CYCLE))
    assert (due.action, due.decision_id) == (Action.PAUSE, warned.decision_id)


def test_a_cancellation_carries_the_id_of_its_warning() -> None:
    told = story(train={"gpus": [{"engine": "0.9 from 5m"}]})
    told.now = START - CYCLE
    warned = only(told.run(until=START + CYCLE))
    cancelled = only(told.run(until=START + 6 * CYCLE))
    assert (cancelled.action, cancelled.decision_id) == (Action.CANCEL, warned.decision_id)


def test_without_a_warning_there_is_no_id() -> None:
    told = story(train={"gpus": 1})
    assert only(told.cycle(START)).decision_id == ""


def test_decisions_are_sorted_by_root_and_acts_by_deadline() -> None:
    told = story(
        c={"namespace": "team-c", "book": DUE | {"pause_at": "-3m"}},
        a={"namespace": "team-a", "book": DUE | {"pause_at": "-1m"}},
        b={"namespace": "team-b", "gpus": ["busy"] * 20},
        d={"namespace": "team-d", "book": DUE | {"pause_at": "-2m"}},
    )
    told.rules = told_rules({"budget_gpu_ratio_per_cycle": 1.0})
    found = told.cycle(START)
    names = [one.workload.root.name for one in found.decisions]
    assert names == ["c", "b", "d", "a"]
    assert [one.workload.root.name for one in found.with_action(Action.PAUSE)] == ["c", "d", "a"]


def test_what_the_budget_has_no_room_for_is_not_measured() -> None:
    told = story(a={"book": DUE}, b={"book": DUE}, c={"book": DUE, "namespace": "team-b"})
    told.rules = told_rules({"budget_gpu_ratio_per_cycle": 1.0})
    found = plan(told.snapshot(START), told.rules)
    reasons = [(one.action, one.reason) for one in found.decisions]
    assert reasons == [
        (Action.VERIFY, Reason.WARNED),
        (Action.NONE, Reason.OVER_BUDGET),
        (Action.VERIFY, Reason.WARNED),
    ]


def test_an_empty_cluster_has_an_empty_plan() -> None:
    assert story().cycle(START).decisions == ()

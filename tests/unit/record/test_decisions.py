from __future__ import annotations

import json

from structlog.testing import capture_logs
from support.decisions import NOTEBOOK, a_decision, a_finding
from support.manual_clock import NOON

from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.model.plan import Action, Decision, Plan
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.record.decisions import MOST_DEVICES, DecisionLog

NOMINATED = a_decision(reason=Reason.CONFIRMING, book=Book(phase=Phase.NOMINATED))
WARNED = a_decision(book=Book(phase=Phase.WARNED, pause_at=NOON + 900))


def lines_of(log: DecisionLog, *decisions: Decision) -> list[dict[str, object]]:
    with capture_logs() as lines:
        written = log.record(Plan(at=NOON, decisions=decisions))
    assert written == len(lines)
    return [dict(line) for line in lines]


def test_a_change_is_said_once_and_not_repeated() -> None:
    log = DecisionLog()
    assert len(lines_of(log, NOMINATED)) == 1
    assert lines_of(log, NOMINATED) == []
    (line,) = lines_of(log, WARNED)
    assert (line["phase"], line["was"]) == ("Warned", "Nominated/idle/Confirming")
    assert line["pause_at"] == "2026-01-31T12:15:00Z"


def test_a_change_of_reason_or_verdict_alone_is_a_change() -> None:
    log = DecisionLog()
    lines_of(log, WARNED)
    frozen = a_decision(
        verdict=Verdict.UNKNOWN,
        reason=Reason.CLOCK_FROZEN,
        book=Book(phase=Phase.WARNED, pause_at=NOON + 900),
    )
    (line,) = lines_of(log, frozen)
    assert (line["verdict"], line["reason"]) == ("unknown", "ClockFrozen")


def test_an_act_is_said_even_if_the_standing_stays() -> None:
    log = DecisionLog()
    lines_of(log, WARNED)
    again = a_decision(book=Book(phase=Phase.WARNED), action=Action.PAUSE)
    assert [line["action"] for line in lines_of(log, again)] == ["pause"]


def test_only_the_workload_that_changed_is_said() -> None:
    log = DecisionLog()
    other = a_decision(NOTEBOOK)
    lines_of(log, NOMINATED, other)
    assert [line["ref"] for line in lines_of(log, WARNED, other)] == ["deployment/team-a/server"]


def test_a_workload_that_left_and_came_back_is_new() -> None:
    log = DecisionLog()
    lines_of(log, NOMINATED)
    assert lines_of(log) == []
    (line,) = lines_of(log, NOMINATED)
    assert line["was"] is None


def test_the_line_has_the_evidence_in_numbers() -> None:
    decision = a_decision(findings=(a_finding(peak=0.004),))
    (line,) = lines_of(DecisionLog(), decision)
    assert line["evidence"] == [
        {
            "device": "GPU-1",
            "verdict": "idle",
            "reason": "Idle",
            "detail": "engine peak",
            "metric": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            "peak": 0.004,
            "seen_steps": 35,
            "steps": 35,
            "active_steps": 0,
            "newest_age_seconds": 30,
            "changes": {"energy": 34},
        }
    ]
    assert json.dumps(line)


def test_many_devices_are_counted_and_not_all_written_out() -> None:
    decision = a_decision(findings=(a_finding(),) * 100)
    (line,) = lines_of(DecisionLog(), decision)
    assert line["devices"] == 100
    evidence = line["evidence"]
    assert isinstance(evidence, list)
    assert len(evidence) == MOST_DEVICES


def test_the_busy_device_is_among_those_written_out() -> None:
    busy = a_finding(verdict=Verdict.ACTIVE, peak=0.9)
    decision = a_decision(verdict=Verdict.ACTIVE, findings=(*(a_finding(),) * 100, busy))
    (line,) = lines_of(DecisionLog(), decision)
    evidence = line["evidence"]
    assert isinstance(evidence, list)
    assert any(one["verdict"] == "active" for one in evidence)


def test_an_order_that_fails_alike_in_every_cycle_is_said_once() -> None:
    log, root = DecisionLog(), WARNED.workload.root
    refused = Outcome(root=root, action="pause", result=Result.REFUSED, detail="kept")
    done = Outcome(root=root, action="write-book", result=Result.DONE)
    with capture_logs() as lines:
        written = [log.record_troubles(one) for one in ([refused, done], [refused], [], [refused])]
    assert written == [1, 0, 0, 1]
    assert (lines[0]["log_level"], lines[0]["ref"]) == ("warning", root.ref)

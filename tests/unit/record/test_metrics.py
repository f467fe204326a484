from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.decisions import NOTEBOOK, SERVER, a_decision, a_pod, a_report
from support.manual_clock import NOON

from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.orders import Delivery, Failure, MessageKind, Outcome, Result
from gpu_pruner.model.plan import Action
from gpu_pruner.model.snapshot import Breaker
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import Intent, RootRef
from gpu_pruner.record.board import Board
from gpu_pruner.record.metrics import METRICS, exposition
from gpu_pruner.record.report import Counts, CycleReport

RUST_NAMES = {
    "gpu_pruner_query_successes_total",
    "gpu_pruner_query_failures_total",
    "gpu_pruner_query_candidates_total",
    "gpu_pruner_query_shutdown_events_total",
    "gpu_pruner_scale_successes_total",
    "gpu_pruner_scale_failures_total",
    "gpu_pruner_scales_total",
    "gpu_pruner_idle_gpus",
    "gpu_pruner_pods_checked_total",
    "gpu_pruner_acknowledged_workloads",
    "gpu_pruner_acknowledgments_total",
    "gpu_pruner_scaledowns_prevented_total",
}


def value(board: Board, name: str, /, **labels: str) -> float | None:
    for family in text_string_to_metric_families(exposition(board).decode()):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return None


def published(*reports: CycleReport) -> Board:
    board = Board()
    for report in reports:
        board.publish(report)
    return board


def test_the_names_of_the_rust_tool_are_kept() -> None:
    assert {one.name for one in METRICS} >= RUST_NAMES


def test_no_metric_is_defined_twice_and_each_has_a_sentence() -> None:
    names = [one.name for one in METRICS]
    assert len(names) == len(set(names))
    assert all(one.meaning.endswith(".") for one in METRICS)


def test_no_label_can_name_a_workload_a_pod_or_a_device() -> None:
    labels = {label for one in METRICS for label in one.labels}
    bounded = {"kind", "reason", "result", "channel", "verdict", "state"}
    assert labels <= {*bounded, "namespace", "name"}
    named = [one.name for one in METRICS if "name" in one.labels]
    assert named == ["gpu_pruner_breaker"]


@pytest.mark.parametrize("board", [Board(), published(a_report(a_decision()))])
def test_what_is_exposed_is_what_is_defined(board: Board) -> None:
    text = exposition(board).decode()
    for one in METRICS:
        assert f"# HELP {one.name} {one.meaning}\n" in text
        assert f"# TYPE {one.name} {one.kind}\n" in text


def test_idle_gpus_really_counts_gpus() -> None:
    board = published(
        a_report(
            a_decision(pods=(a_pod("server-1", gpus=4), a_pod("server-2", gpus=4))),
            a_decision(NOTEBOOK, verdict=Verdict.ACTIVE, pods=(a_pod("notebook-1-0", gpus=1),)),
        )
    )
    assert value(board, "gpu_pruner_idle_gpus") == 8
    assert value(board, "gpu_pruner_pods_checked_total") == 3
    assert value(board, "gpu_pruner_query_candidates_total") == 2
    assert value(board, "gpu_pruner_workloads", verdict="idle") == 1
    assert value(board, "gpu_pruner_workloads", verdict="unknown") == 0


def test_only_a_pause_that_was_carried_out_is_a_scale() -> None:
    ended = [Outcome(root=SERVER, action="pause", result=result) for result in Result]
    ended.append(Outcome(root=SERVER, action="restore", result=Result.DONE))
    board = published(a_report(outcomes=ended))
    assert value(board, "gpu_pruner_scale_successes_total") == 1
    assert value(board, "gpu_pruner_scale_failures_total") == 1
    assert value(board, "gpu_pruner_scales_total", kind="Deployment", namespace="team-a") == 1
    assert value(board, "gpu_pruner_actions_total", kind="pause", result="refused") == 1
    assert value(board, "gpu_pruner_actions_total", kind="restore", result="done") == 1


def test_queries_decisions_and_messages_add_up_over_cycles() -> None:
    told = Delivery(root=SERVER, kind=MessageKind.WARNING, via=("event",))
    unheard = Delivery(root=SERVER, kind=MessageKind.WARNING)
    counts = Counts(query_successes=2, query_failures=1)
    board = published(
        a_report(a_decision(), counts=counts, deliveries=[told]),
        a_report(a_decision(), number=2, counts=counts, deliveries=[unheard]),
    )
    assert value(board, "gpu_pruner_query_successes_total") == 4
    assert value(board, "gpu_pruner_query_failures_total") == 2
    assert value(board, "gpu_pruner_decisions_total", reason="Warned") == 2
    assert value(board, "gpu_pruner_messages_total", kind="warning", channel="event") == 1
    assert value(board, "gpu_pruner_messages_total", kind="warning", channel="none") == 1


def test_every_try_that_a_channel_did_not_confirm_counts_and_a_repeat_is_no_new_message() -> None:
    deaf = {"failures": (Failure(channel="ops-mail", why="refuses connections"),)}
    told = Delivery(root=SERVER, kind=MessageKind.PAUSED, via=("event",), **deaf)
    again = Delivery(root=SERVER, kind=MessageKind.PAUSED, is_repeat=True, **deaf)
    board = published(
        a_report(a_decision(), deliveries=[told]),
        a_report(a_decision(), number=2, deliveries=[again]),
    )
    failed = value(board, "gpu_pruner_message_failures_total", kind="paused", channel="ops-mail")
    assert failed == 2
    assert value(board, "gpu_pruner_messages_total", kind="paused", channel="event") == 1
    assert value(board, "gpu_pruner_messages_total", kind="paused", channel="none") is None


def test_a_deadline_that_passed_in_dry_run_counts_once_however_long_it_stays() -> None:
    due = a_decision(book=Book(phase=Phase.WOULD_PAUSE))
    board = published(*(a_report(due, number=number) for number in (1, 2, 3)))
    assert value(board, "gpu_pruner_query_shutdown_events_total") == 1


def test_a_deadline_whose_pause_is_refused_counts_once_while_it_waits_its_turn() -> None:
    warned = Book(phase=Phase.WARNED)
    tried = a_decision(reason=Reason.REFUSED, action=Action.PAUSE, book=warned)
    waits = a_decision(reason=Reason.OVER_BUDGET, book=warned)
    cycles = enumerate((waits, tried, waits, tried), start=1)
    board = published(*(a_report(one, number=number) for number, one in cycles))
    assert value(board, "gpu_pruner_query_shutdown_events_total") == 1


def test_keeps_count_when_they_are_given_and_not_when_they_are_found() -> None:
    plain = a_decision()
    kept = a_decision(intent=Intent(keep_until=NOON + 3600))
    longer = a_decision(intent=Intent(keep_until=NOON + 7200))
    board = published(a_report(kept))
    assert value(board, "gpu_pruner_acknowledged_workloads") == 1
    assert value(board, "gpu_pruner_acknowledgments_total") == 0
    board.publish(a_report(longer, number=2))
    board.publish(a_report(longer, number=3))
    assert value(board, "gpu_pruner_acknowledgments_total") == 1
    board.publish(a_report(plain, number=4))
    board.publish(a_report(kept, number=5))
    assert value(board, "gpu_pruner_acknowledgments_total") == 2


def test_a_keep_that_is_over_is_not_in_force() -> None:
    board = published(a_report(a_decision(intent=Intent(keep_until=NOON - 1))))
    assert value(board, "gpu_pruner_acknowledged_workloads") == 0


@pytest.mark.parametrize(
    ("reason", "action", "prevented"),
    [
        (Reason.KEPT, Action.CANCEL, 1),
        (Reason.EXEMPT, Action.CANCEL, 1),
        (Reason.GPU_ACTIVE, Action.CANCEL, 0),
        (Reason.KEPT, Action.RESTORE, 1),
        (Reason.KEPT, Action.NONE, 0),
    ],
)
def test_only_what_people_stopped_counts_as_prevented(
    reason: Reason, action: Action, prevented: int
) -> None:
    board = published(a_report(a_decision(reason=reason, action=action)))
    assert value(board, "gpu_pruner_scaledowns_prevented_total") == prevented


def test_a_restore_that_did_not_happen_prevented_nothing() -> None:
    board = published(a_report(a_decision(reason=Reason.REFUSED, action=Action.RESTORE)))
    assert value(board, "gpu_pruner_scaledowns_prevented_total") == 0


def test_gpu_time_goes_to_the_state_and_paused_time_is_what_was_given_back() -> None:
    idle = a_decision(pods=(a_pod("server-1", gpus=4),))
    paused = a_decision(NOTEBOOK, book=Book(phase=Phase.PAUSED, gpus=2), pods=())
    board = published(a_report(idle, paused), a_report(idle, paused, number=2))
    assert value(board, "gpu_pruner_gpu_seconds_total", state="idle", namespace="team-a") == 240
    assert value(board, "gpu_pruner_gpu_seconds_total", state="paused", namespace="team-b") == 120


def test_time_that_nobody_observed_is_not_guessed() -> None:
    idle = a_decision()
    for gap in (61, 10_000, -3):
        board = published(a_report(idle), a_report(idle, number=1 + gap))
        seen = value(board, "gpu_pruner_gpu_seconds_total", state="idle", namespace="team-a")
        assert seen is None


def test_a_breaker_is_one_while_it_holds_and_zero_after() -> None:
    board = published(a_report(breakers=[Breaker(name="ScreenFailed", message="no answer")]))
    assert value(board, "gpu_pruner_breaker", name="ScreenFailed") == 1
    board.publish(a_report(number=2))
    assert value(board, "gpu_pruner_breaker", name="ScreenFailed") == 0


def test_cycle_durations_are_a_histogram_that_adds_up() -> None:
    board = published(*(a_report(seconds=seconds) for seconds in (0.05, 0.5, 0.5, 90.0)))
    name = "gpu_pruner_cycle_duration_seconds"
    assert value(board, f"{name}_bucket", le="0.1") == 1
    assert value(board, f"{name}_bucket", le="0.5") == 3
    assert value(board, f"{name}_bucket", le="60.0") == 3
    assert value(board, f"{name}_bucket", le="+Inf") == 4
    assert value(board, f"{name}_count") == 4
    assert value(board, f"{name}_sum") == pytest.approx(91.05)


def test_a_failed_cycle_counts_and_leaves_what_was_known() -> None:
    board = published(a_report(a_decision()))
    board.publish(
        replace(a_report(number=2), plan=None, failure="no answer", telemetry_available=False)
    )
    assert value(board, "gpu_pruner_cycle_failures_total") == 1
    assert value(board, "gpu_pruner_idle_gpus") == 4
    assert value(board, "gpu_pruner_last_cycle_timestamp_seconds") == NOON + 60.5


def test_the_number_of_series_does_not_grow_with_the_workloads() -> None:
    def series(count: int) -> int:
        roots = [RootRef("Deployment", "team-a", f"w-{n}", "apps", f"u-{n}") for n in range(count)]
        reports = [a_report(*map(a_decision, roots), number=number) for number in (1, 2)]
        return len(exposition(published(*reports)).splitlines())

    assert series(1) == series(200)

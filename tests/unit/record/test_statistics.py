from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from support.decisions import SERVER, a_decision, a_pod, a_report
from support.manual_clock import NOON

from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.record.board import Board
from gpu_pruner.record.statistics import Window, statistics, summary

HOUR = 3600.0
DAY = 24 * HOUR
PAUSED = Outcome(root=SERVER, action="pause", result=Result.DONE)


def paused_at(*moments: float) -> Board:
    board = Board()
    for moment in moments:
        report = a_report(a_decision(pods=(a_pod("a"), a_pod("b"))), outcomes=[PAUSED])
        board.publish(replace(report, started_at=moment, finished_at=moment))
    return board


def test_the_summary_has_the_rust_tools_shape() -> None:
    board = paused_at(NOON)
    assert msgspec.to_builtins(summary(board, now=NOON + 30)) == {
        "scale_downs": {"lifetime": 1},
        "idle_workloads": {"current": 1},
        "pods_checked": 2,
        "updated_at": "2026-01-31T12:00:00Z",
    }


def test_the_statistics_have_the_rust_tools_shape() -> None:
    board = paused_at(NOON)
    assert msgspec.to_builtins(statistics(board, now=NOON + 30)) == {
        "scale_downs": {"lifetime": 1, "in_window": 1, "window": "7d"},
        "idle_workloads": {"current": 1},
        "prometheus_available": True,
        "pods_checked": 2,
        "updated_at": "2026-01-31T12:00:00Z",
    }


@pytest.mark.parametrize(
    ("window", "in_window"), [(Window.HOUR, 1), (Window.WEEK, 2), (Window.MONTH, 3)]
)
def test_a_window_counts_what_lies_in_it(window: Window, in_window: int) -> None:
    now = NOON + 40 * DAY
    board = paused_at(NOON, now - 20 * DAY, now - 2 * DAY, now - HOUR / 2)
    counted = statistics(board, window, now=now).scale_downs
    assert (counted.lifetime, counted.in_window) == (4, in_window)


def test_before_the_first_cycle_everything_is_zero_and_telemetry_is_not_claimed() -> None:
    told = statistics(Board(), now=NOON)
    assert told.scale_downs.lifetime == 0
    assert told.pods_checked == 0
    assert not told.prometheus_available
    assert told.updated_at == "2026-01-31T12:00:00Z"


def test_telemetry_that_failed_in_the_last_cycle_is_not_available() -> None:
    board = paused_at(NOON)
    board.publish(replace(a_report(number=2), telemetry_available=False))
    assert not statistics(board, now=NOON).prometheus_available

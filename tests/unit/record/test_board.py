from __future__ import annotations

from dataclasses import replace

from support.decisions import a_decision, a_report
from support.manual_clock import NOON

from gpu_pruner.model.snapshot import Breaker
from gpu_pruner.record.board import Board

BREAKER = Breaker(name="ScreenFailed", message="Prometheus does not answer")


def test_before_the_first_cycle_nothing_is_known_and_nothing_is_ready() -> None:
    board = Board()
    assert (board.latest, board.planned, board.last_cycle_at) == (None, None, None)
    assert board.breakers == ()
    assert not board.ready
    assert board.waiting_for


def test_a_cycle_with_a_plan_makes_it_ready_even_under_a_breaker() -> None:
    board = Board()
    report = a_report(a_decision(), breakers=[BREAKER])
    board.publish(report)
    assert board.ready
    assert board.latest is report
    assert board.planned is report
    assert board.breakers == (BREAKER,)
    assert board.last_cycle_at == NOON + 0.5


def test_a_failed_cycle_is_the_latest_but_does_not_wipe_what_was_planned() -> None:
    board = Board()
    good = a_report(a_decision())
    board.publish(good)
    board.publish(replace(a_report(number=2), plan=None, failure="the API server is silent"))
    assert not board.ready
    assert board.planned is good
    assert board.latest is not None
    assert board.latest.failure == "the API server is silent"
    board.publish(a_report(a_decision(), number=3))
    assert board.ready


def test_a_clock_set_back_makes_no_negative_duration() -> None:
    report = replace(a_report(), finished_at=NOON - 100)
    assert report.duration_seconds == 0

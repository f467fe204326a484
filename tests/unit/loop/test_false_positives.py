"""A pause that was called wrong counts once: in the cycle that writes down that it was heard."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from support.decisions import SERVER, a_decision, a_report
from support.manual_clock import NOON

from gpu_pruner.model.book import Book
from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.workload import Complaint, Intent
from gpu_pruner.record.aftermath import turned_out
from gpu_pruner.record.board import Board
from gpu_pruner.record.metrics import exposition

BEFORE = Book(resource_version="7", object_name="w")


def heard(pause: str = "d-1", *, before: Book = BEFORE) -> Decision:
    said = Complaint(pause=pause, at=NOON, by="ada", reason="it was training")
    book = replace(before, counted_wrong=pause)
    return a_decision(before=before, book=book, intent=Intent(complaint=said))


def counted(board: Board) -> float:
    name = b"gpu_pruner_false_positives_total "
    [line] = [one for one in exposition(board).splitlines() if one.startswith(name)]
    return float(line.split()[1])


def test_there_is_a_zero_before_the_first_one() -> None:
    assert counted(Board()) == 0


def test_it_counts_when_it_is_written_down_and_not_again() -> None:
    board = Board()
    board.publish(a_report(heard()))
    board.publish(a_report(heard(before=replace(BEFORE, counted_wrong="d-1")), number=2))
    assert counted(board) == 1


def test_another_pause_of_the_same_workload_counts_too() -> None:
    board = Board()
    board.publish(a_report(heard()))
    again = heard("d-2", before=replace(BEFORE, counted_wrong="d-1"))
    board.publish(a_report(again, number=2))
    assert counted(board) == 2


def test_a_process_that_starts_later_does_not_count_what_is_counted() -> None:
    board = Board()
    board.publish(a_report(heard(before=replace(BEFORE, counted_wrong="d-1"))))
    assert counted(board) == 0


def test_one_that_could_not_be_written_down_counts_when_it_can() -> None:
    board = Board()
    report = a_report(heard())
    assert report.plan is not None
    failed = Outcome(root=SERVER, action="write-book", result=Result.CONFLICT, detail="changed")
    board.publish(replace(report, plan=turned_out(report.plan, [failed], [])))
    assert counted(board) == 0
    board.publish(a_report(heard(), number=2))
    assert counted(board) == 1


@pytest.mark.parametrize("leading", [True, False])
def test_only_the_leader_counts(leading: bool) -> None:  # noqa: FBT001 - a case
    board = Board()
    board.publish(replace(a_report(heard()), leading=leading))
    assert counted(board) == int(leading)


def test_a_restore_whose_book_was_not_told_does_not_count_twice() -> None:
    board = Board()
    for number in (1, 2):
        board.publish(a_report(structs.replace(heard()), number=number))
    assert counted(board) == 1

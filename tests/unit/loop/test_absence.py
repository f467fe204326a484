from __future__ import annotations

from dataclasses import dataclass, replace

from support.manual_clock import NOON

from gpu_pruner.loop.absence import Absence
from gpu_pruner.loop.alone import Alone
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.cluster import Bookkeeping, ClusterView
from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.model.workload import RootRef

ROOT = RootRef(kind="Deployment", namespace="team-a", name="train", group="apps", uid="u")


@dataclass
class Term:
    began_at: float = NOON
    last_cycle_at: float | None = NOON - 300


def view(*, warned_at: float | None = NOON - 600, phase: Phase = Phase.WARNED) -> ClusterView:
    book = Book(phase=phase, warned_at=warned_at)
    return ClusterView(books={"u": Bookkeeping(root=ROOT, book=book)})


def outcome(result: Result) -> Outcome:
    return Outcome(root=ROOT, action="write-book", result=result)


def test_a_warning_from_before_the_term_is_unattended_since_the_last_cycle():
    assert Absence().unattended(view(), Term()) == {"u": NOON - 300}


def test_a_warning_from_after_the_last_stamp_is_unattended_since_it_was_given():
    assert Absence().unattended(view(warned_at=NOON - 200), Term()) == {"u": NOON - 200}


def test_where_nobody_knows_of_a_cycle_it_is_since_the_warning():
    term = Term(last_cycle_at=None)
    assert Absence().unattended(view(), term) == {"u": NOON - 600}


def test_what_was_warned_in_this_term_or_was_not_warned_is_attended():
    absence, term = Absence(), Term()
    assert absence.unattended(view(warned_at=NOON), term) == {}
    assert absence.unattended(view(warned_at=None), term) == {}
    assert absence.unattended(view(phase=Phase.NOMINATED), term) == {}


def test_it_lasts_until_the_book_was_written_and_begins_anew_with_another_term():
    absence, term = Absence(), Term()
    absence.unattended(view(), term)
    absence.remember([outcome(Result.FAILED), outcome(Result.CONFLICT)])
    assert absence.unattended(view(), term) == {"u": NOON - 300}
    absence.remember([outcome(Result.DONE)])
    assert absence.unattended(view(), term) == {}
    later = replace(term, began_at=NOON + 900, last_cycle_at=NOON + 60)
    assert absence.unattended(view(), later) == {"u": NOON + 60}


def test_a_replica_that_only_looks_on_attends_to_nothing_and_says_so_of_nothing():
    assert Absence().unattended(view(), None) == {}


def test_time_between_single_passes_is_notice_but_not_the_time_since_a_controller_ended():
    assert Absence().unattended(view(), Alone().begin_cycle()) == {}
    ended = Alone(last_cycle_at=NOON - 300).begin_cycle()
    assert Absence().unattended(view(), ended) == {"u": NOON - 300}
    assert Absence().unattended(view(warned_at=NOON - 100), ended) == {}

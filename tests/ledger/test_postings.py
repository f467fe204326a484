from __future__ import annotations

import threading

import pytest
from support.ledgers import DAY, a_keeper, cycle, rows
from support.manual_clock import NOON

from gpu_pruner.errors import LedgerError
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.record.ledger.postings import CLAIM_SECONDS, Claim, Postings
from gpu_pruner.settings.ledger import LedgerSettings


def postings(settings: LedgerSettings) -> Postings:
    return Postings(Database(settings))


def test_a_report_is_claimed_by_one_and_posted_once(ledger_settings: LedgerSettings) -> None:
    first, second = postings(ledger_settings), postings(ledger_settings)
    assert first.claim(NOON, now=NOON + 1) is Claim.OURS
    assert second.claim(NOON, now=NOON + 2) is Claim.TAKEN
    assert first.claim(NOON, now=NOON + 3) is Claim.TAKEN  # a process asks once
    first.note(NOON, now=NOON + 4)
    for one in (first, second, postings(ledger_settings)):
        assert one.claim(NOON, now=NOON + DAY) is Claim.POSTED
    assert second.claim(NOON + 7 * DAY, now=NOON + 7 * DAY) is Claim.OURS
    found = [(one["due_at"], one["posted_at"]) for one in rows(ledger_settings, "postings")]
    assert found == [(NOON, NOON + 4), (NOON + 7 * DAY, None)]


def test_a_claim_of_the_dead_is_taken_over_when_it_is_old(ledger_settings: LedgerSettings) -> None:
    assert postings(ledger_settings).claim(NOON, now=NOON) is Claim.OURS
    heirs = [postings(ledger_settings) for _ in range(2)]
    assert heirs[0].claim(NOON, now=NOON + CLAIM_SECONDS - 1) is Claim.TAKEN
    assert heirs[0].claim(NOON, now=NOON + CLAIM_SECONDS) is Claim.OURS
    assert heirs[1].claim(NOON, now=NOON + CLAIM_SECONDS + 1) is Claim.TAKEN


def test_what_was_given_up_is_anybodys(ledger_settings: LedgerSettings) -> None:
    first, second = postings(ledger_settings), postings(ledger_settings)
    first.claim(NOON, now=NOON)
    first.give_up(NOON)
    assert second.claim(NOON, now=NOON + 1) is Claim.OURS


def test_of_many_who_claim_at_once_one_gets_it(ledger_settings: LedgerSettings) -> None:
    a_keeper(ledger_settings).take(cycle(at=NOON))
    found: list[Claim] = []
    together = threading.Barrier(8)

    def try_it() -> None:
        mine = postings(ledger_settings)
        together.wait()
        found.append(mine.claim(NOON, now=NOON))

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [Claim.OURS] + [Claim.TAKEN] * 7


def test_old_postings_are_forgotten_with_the_rest(ledger_settings: LedgerSettings) -> None:
    postings(ledger_settings).claim(NOON, now=NOON)
    a_keeper(ledger_settings).take(cycle(at=NOON + 100 * DAY))
    assert rows(ledger_settings, "postings") == []


def test_a_database_that_is_away_is_told(tmp_path) -> None:
    away = LedgerSettings(directory=tmp_path, dsn="sqlite:////no/such/place/x")
    with pytest.raises(LedgerError):
        postings(away).claim(NOON, now=NOON)

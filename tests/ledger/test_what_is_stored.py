from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text
from support.decisions import NOTEBOOK, SERVER, a_decision
from support.ledgers import DAY, a_keeper, cycle, cycles, holding, rows
from support.manual_clock import NOON

from gpu_pruner.errors import LedgerError
from gpu_pruner.model.book import Book, PauseRecord, Phase
from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.model.plan import Action
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.record.ledger.keeper import Keeper
from gpu_pruner.record.ledger.scribe import Scribe
from gpu_pruner.record.ledger.tables import METADATA
from gpu_pruner.settings.ledger import LedgerSettings


def test_a_decision_is_read_back_with_its_evidence(ledger_settings: LedgerSettings) -> None:
    keeper = a_keeper(ledger_settings)
    keeper.take(cycle(holding(SERVER, 2), at=NOON))
    (row,) = rows(ledger_settings, "decisions")
    assert (row["kind"], row["namespace"], row["name"]) == ("Deployment", "team-a", "server")
    assert (row["verdict"], row["reason"], row["at"]) == ("idle", "Idle", NOON)
    assert [one["device"] for one in json.loads(row["evidence"])] == ["GPU-0", "GPU-1"]
    assert keeper.state.last_success_at == NOON + 1


def test_what_does_not_change_is_stored_once(ledger_settings: LedgerSettings) -> None:
    keeper = a_keeper(ledger_settings)
    for report in cycles(holding(SERVER, 2), begin=NOON, count=5):
        keeper.take(report)
    assert len(rows(ledger_settings, "cycles")) == 5
    assert len(rows(ledger_settings, "decisions")) == 1
    assert sum(one["seconds"] for one in rows(ledger_settings, "gpu_time")) == 2 * 4 * 60


def test_a_new_process_does_not_tell_what_is_known_again(ledger_settings: LedgerSettings) -> None:
    a_keeper(ledger_settings, "one").take(cycle(holding(SERVER, 2), at=NOON))
    a_keeper(ledger_settings, "two").take(
        cycle(holding(SERVER, 2), holding(NOTEBOOK, 1), at=NOON + 60)
    )
    assert [one["name"] for one in rows(ledger_settings, "decisions")] == ["server", "notebook-1"]


def test_a_change_during_a_restart_is_told(ledger_settings: LedgerSettings) -> None:
    a_keeper(ledger_settings, "one").take(cycle(holding(SERVER, 2), at=NOON))
    busy = holding(SERVER, 2, verdict=Verdict.ACTIVE)
    a_keeper(ledger_settings, "two").take(cycle(busy, at=NOON + 60))
    a_keeper(ledger_settings, "zero").take(cycle(holding(SERVER, 2), at=NOON + 120))
    told = sorted((one["at"], one["verdict"]) for one in rows(ledger_settings, "decisions"))
    assert [verdict for _, verdict in told] == ["idle", "active", "idle"]


def test_a_batch_that_comes_twice_counts_once(ledger_settings: LedgerSettings) -> None:
    scribe, database = Scribe("one"), Database(ledger_settings)
    batches = [scribe.batch(one) for one in cycles(holding(SERVER, 3), begin=NOON, count=3)]
    for batch in [*batches, *batches, *reversed(batches)]:
        assert batch is not None
        database.store(batch)
    assert sum(one["seconds"] for one in rows(ledger_settings, "gpu_time")) == 3 * 2 * 60
    assert len(rows(ledger_settings, "decisions")) == 1


def test_a_pause_is_stored_with_what_would_be_given_back(ledger_settings: LedgerSettings) -> None:
    record = PauseRecord(
        lever="Deployment", replicas=3, uid="u", generation=7, at=NOON, decision="d-1", why="idle"
    )
    paused = a_decision(
        reason=Reason.PAUSED,
        action=Action.PAUSE,
        book=Book(phase=Phase.PAUSED, gpus=4, pause=record),
    )
    done = Outcome(root=SERVER, action="pause", result=Result.DONE, detail="it had 3 replicas")
    book = Outcome(root=SERVER, action="write-book", result=Result.DONE)
    a_keeper(ledger_settings).take(cycle(paused, at=NOON, outcomes=[book, done]))
    (row,) = rows(ledger_settings, "actions")
    assert (row["action"], row["result"], row["decision_id"]) == ("pause", "done", "d-1")
    assert json.loads(row["former"])["replicas"] == 3
    (told,) = rows(ledger_settings, "decisions")
    assert json.loads(told["former"])["generation"] == 7


def test_a_cycle_that_failed_is_stored_with_why(ledger_settings: LedgerSettings) -> None:
    failed = replace(cycle(at=NOON), plan=None, failure="the API server is away")
    a_keeper(ledger_settings).take(failed)
    assert [one["failure"] for one in rows(ledger_settings, "cycles")] == [failed.failure]


def test_another_replicas_cycle_is_its_own_to_store(ledger_settings: LedgerSettings) -> None:
    keeper = a_keeper(ledger_settings)
    keeper.take(replace(cycle(holding(SERVER, 2), at=NOON), leading=False))
    assert rows(ledger_settings, "cycles") == []


def test_text_of_strangers_stops_nothing(ledger_settings: LedgerSettings) -> None:
    hostile = "a\x00b'; DROP TABLE cycles; -- \ud800 \N{PILE OF POO}" + "x" * 10_000
    decision = a_decision(replace(SERVER, name=hostile[:40]), message=hostile)
    keeper = a_keeper(ledger_settings)
    keeper.take(cycle(decision, at=NOON))
    (row,) = rows(ledger_settings, "decisions")
    assert row["message"].startswith("a?b'; DROP TABLE cycles; -- ? \N{PILE OF POO}xx")
    assert keeper.state.failures == keeper.state.lost == 0


def test_what_is_old_is_forgotten(ledger_settings: LedgerSettings) -> None:
    keeper = a_keeper(ledger_settings)
    for begin in (NOON, NOON + 100 * DAY):
        for report in cycles(holding(SERVER, 2), begin=begin, count=2):
            keeper.take(replace(report, number=report.number + int(begin - NOON)))
    assert {one["hour"] for one in rows(ledger_settings, "gpu_time")} == {NOON + 100 * DAY}
    assert len(rows(ledger_settings, "cycles")) == 2


def test_the_migrations_make_what_the_queries_name(ledger_settings: LedgerSettings) -> None:
    a_keeper(ledger_settings).take(cycle(at=NOON))
    database = Database(ledger_settings)
    with database.reading() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
    assert differences == []


def test_a_newer_schema_is_refused_with_a_sentence(ledger_settings: LedgerSettings) -> None:
    keeper = a_keeper(ledger_settings)
    keeper.take(cycle(at=NOON))
    with Database(ledger_settings)._engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'r9999'"))
    with pytest.raises(LedgerError, match=r"schema is r9999, newer than this version"):
        rows(ledger_settings, "cycles")
    later = a_keeper(ledger_settings)
    later.take(cycle(holding(SERVER, 2), at=NOON + 60))
    assert later.state.backlog == 1
    assert later.state.in_memory == 0


def test_a_database_without_a_ledger_is_told(ledger_settings: LedgerSettings) -> None:
    with pytest.raises(LedgerError, match=r"no ledger"):
        rows(ledger_settings, "cycles")


def test_replicas_that_start_at_once_make_the_tables_once(
    ledger_settings: LedgerSettings,
) -> None:
    keepers = [a_keeper(ledger_settings, f"replica-{number}") for number in range(12)]
    together = threading.Barrier(len(keepers))

    def begin(keeper: Keeper) -> None:
        together.wait()
        keeper.take(cycle(holding(SERVER, 1), at=NOON))

    threads = [threading.Thread(target=begin, args=[keeper]) for keeper in keepers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.state.failures for one in keepers] == [0] * 12
    assert len(rows(ledger_settings, "cycles")) == 12


def test_a_file_that_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    settings = LedgerSettings(directory=tmp_path)
    assert settings.file is not None
    # Reserved for writing before the write-ahead log is on: SQLite refuses the change of mode at
    # once, whatever the busy timeout.
    with closing(sqlite3.connect(settings.file, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = threading.Timer(0.3, other.rollback)
        done.start()
        keeper = a_keeper(settings)
        keeper.take(cycle(holding(SERVER, 1), at=NOON))
        done.join()
    assert keeper.state.failures == 0
    assert len(rows(settings, "cycles")) == 1

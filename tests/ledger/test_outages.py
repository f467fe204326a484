from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from support.decisions import NOTEBOOK, SERVER
from support.ledgers import a_keeper, cycle, cycles, holding, limit_pages, rows
from support.manual_clock import NOON
from support.postgres import PASSWORD, PostgresServer

from gpu_pruner.errors import LedgerError
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.record.report import CycleReport
from gpu_pruner.settings.ledger import LedgerSettings


def changing(count: int) -> list[CycleReport]:
    """Return so many cycles, a minute apart, in each of which something changes."""
    verdicts = (Verdict.IDLE, Verdict.ACTIVE)
    return [
        cycle(holding(SERVER, 2, verdict=verdicts[n % 2]), at=NOON + 60 * n, number=n + 1)
        for n in range(count)
    ]


def whole(settings: LedgerSettings, count: int) -> bool:
    spent = sum(one["seconds"] for one in rows(settings, "gpu_time"))
    return (len(rows(settings, "decisions")), spent) == (count, 2 * 60 * (count - 1))


@contextmanager
def full_disk(largest: int = 0) -> Iterator[None]:
    """Have the kernel refuse to make any file of this process larger than so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_server_that_is_away_for_ten_minutes_loses_no_decision(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    settings = LedgerSettings(directory=tmp_path, dsn=SecretStr(postgres.new_database()))
    keeper = a_keeper(settings)
    told = changing(15)
    with capture_logs() as logs:
        for report in told[:2]:
            keeper.take(report)
        postgres.stop()
        try:
            for report in told[2:12]:
                keeper.take(report)
            away = keeper.state
        finally:
            postgres.start()
        for report in told[12:]:
            keeper.take(report)
    assert (away.backlog, away.in_memory, away.failures, away.lost) == (10, 0, 10, 0)
    assert away.last_success_at == NOON + 61
    assert (keeper.state.backlog, keeper.state.lost) == (0, 0)
    assert whole(settings, 15)
    assert [one["log_level"] for one in logs] == ["error", "info"]
    assert PASSWORD not in str(logs)


def test_a_server_that_is_not_there_at_the_start_loses_nothing(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    settings = LedgerSettings(directory=tmp_path, dsn=SecretStr(postgres.new_database()))
    postgres.stop()
    try:
        first = a_keeper(settings, "first")
        first.take(changing(1)[0])
    finally:
        postgres.start()
    a_keeper(settings, "second").settle(now=NOON + 60)
    assert whole(settings, 1)


def test_a_wrong_password_is_told_without_it(postgres: PostgresServer, tmp_path: Path) -> None:
    wrong = SecretStr(postgres.dsn("postgres", password="not-this-one"))
    with capture_logs() as logs:
        a_keeper(LedgerSettings(directory=tmp_path, dsn=wrong)).take(changing(1)[0])
    (line,) = logs
    assert "authentication failed" in line["error"]
    assert "not-this-one" not in str(logs)


def test_the_password_comes_from_its_file(postgres: PostgresServer, tmp_path: Path) -> None:
    dsn = postgres.new_database()
    secret = tmp_path / "password"
    settings = LedgerSettings(
        directory=tmp_path, dsn=SecretStr(dsn.replace(f":{PASSWORD}@", "@")), password_file=secret
    )
    keeper = a_keeper(settings)
    secret.write_text("old\n", encoding="utf-8")
    keeper.take(changing(1)[0])
    assert keeper.state.backlog == 1
    secret.write_text(f"{PASSWORD}\n", encoding="utf-8")  # as a rotated Secret changes
    keeper.settle(now=NOON + 60)
    assert keeper.state.backlog == 0
    assert whole(settings, 1)


def test_a_database_that_is_full_loses_nothing(tmp_path: Path) -> None:
    settings = LedgerSettings(directory=tmp_path)
    keeper = a_keeper(settings)
    keeper.take(changing(1)[0])
    pages = (tmp_path / "ledger.sqlite").stat().st_size // 4096
    limit_pages(keeper._database._engine, pages)
    many = [holding(SERVER, 2)] + [
        holding(type(NOTEBOOK)("Notebook", "team-b", f"n-{n}", "kubeflow.org", f"uid-{n}"), 1)
        for n in range(300)
    ]
    with capture_logs() as logs:
        for report in cycles(*many, begin=NOON + 60, count=3):
            keeper.take(replace(report, number=report.number + 1))
    assert keeper.state.in_memory == 0
    assert keeper.state.backlog > 0
    assert [one["error"] for one in logs] == ["OperationalError: database or disk is full"]
    later = a_keeper(settings)
    later.settle(now=NOON + 600)
    assert later.state.backlog == later.state.lost == 0
    assert len(rows(settings, "decisions")) == 301


def test_a_full_disk_loses_nothing_while_memory_has_room(tmp_path: Path) -> None:
    settings = LedgerSettings(directory=tmp_path)
    keeper = a_keeper(settings)
    told = changing(12)
    keeper.take(told[0])
    with capture_logs() as logs, full_disk():
        for report in told[1:11]:
            keeper.take(report)
        full = keeper.state
    assert (full.backlog, full.in_memory, full.lost) == (10, 10, 0)
    assert [one["event"] for one in logs] == [
        "the ledger cannot be written; history is kept aside",
        "the spool cannot be written either",
    ]
    keeper.take(told[11])
    assert (keeper.state.backlog, keeper.state.lost) == (0, 0)
    assert whole(settings, 12)


def test_what_finds_no_room_at_all_is_counted_and_said(tmp_path: Path) -> None:
    settings = LedgerSettings(directory=tmp_path)
    keeper = a_keeper(settings, most_in_memory=2_000)
    told = changing(30)
    keeper.take(told[0])
    with capture_logs() as logs, full_disk():
        for report in told[1:29]:
            keeper.take(report)
    assert 0 < keeper.state.lost < 28
    assert [one["event"] for one in logs].count("history is lost") == 1
    keeper.take(told[29])
    assert len(rows(settings, "cycles")) == 30 - keeper.state.lost


def test_what_a_full_disk_tore_is_cut_off(tmp_path: Path) -> None:
    settings = LedgerSettings(directory=tmp_path, dsn=SecretStr("sqlite:////no/such/place/x"))
    keeper = a_keeper(settings)
    told = changing(3)
    keeper.take(told[0])
    size = (tmp_path / "ledger.spool").stat().st_size
    with full_disk(size + 40):
        keeper.take(told[1])
    assert (tmp_path / "ledger.spool").stat().st_size == size
    keeper.take(told[2])
    assert (keeper.state.backlog, keeper.state.in_memory) == (3, 0)


def test_a_batch_that_no_database_takes_keeps_nothing_waiting(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """A name longer than Kubernetes has them: SQLite does not mind, PostgreSQL does."""
    settings = LedgerSettings(directory=tmp_path, dsn=SecretStr(postgres.new_database()))
    keeper = a_keeper(settings)
    endless = type(SERVER)("Deployment", "team-a", "x" * 300, "apps", "uid-x")
    with capture_logs() as logs:
        keeper.take(cycle(holding(endless, 1), at=NOON))
        keeper.take(cycle(holding(SERVER, 2), at=NOON + 60, number=2))
    assert (keeper.state.backlog, keeper.state.lost) == (0, 1)
    assert [one["event"] for one in logs] == ["history is lost"]
    assert len(rows(settings, "decisions")) == 1


def test_reading_waits_for_no_writer(tmp_path: Path) -> None:
    settings = LedgerSettings(directory=tmp_path)
    keeper = a_keeper(settings)
    keeper.take(changing(1)[0])
    with Database(settings).reading():
        keeper.take(changing(2)[1])
    assert keeper.state.failures == 0


def test_a_closed_file_is_told_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no ledger at .*ledger\.sqlite"):
        rows(LedgerSettings(directory=tmp_path), "cycles")

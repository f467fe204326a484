"""Ledgers and what is in them, for the tests of history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Engine, event, select
from support.decisions import a_decision, a_pod, a_report

from gpu_pruner.model.plan import Decision, DeviceFinding
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import RootRef
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.record.ledger.keeper import Keeper
from gpu_pruner.record.ledger.scribe import Scribe
from gpu_pruner.record.ledger.spool import Spool
from gpu_pruner.record.ledger.tables import METADATA
from gpu_pruner.record.report import CycleReport
from gpu_pruner.settings.ledger import LedgerSettings

DAY = 86_400.0
H100 = "NVIDIA H100 80GB HBM3"
A100 = "NVIDIA A100-SXM4-80GB"


def a_keeper(settings: LedgerSettings, process: str = "", **more: Any) -> Keeper:
    spool = Spool(settings.spool) if settings.spool else None
    return Keeper(
        Database(settings), spool, retention_seconds=90 * DAY, scribe=Scribe(process), **more
    )


def rows(settings: LedgerSettings, table: str) -> list[dict[str, Any]]:
    """Return everything in a table, by its primary key."""
    database = Database(settings)
    found = METADATA.tables[table]
    with database.reading() as connection:
        result = connection.execute(select(found).order_by(*found.primary_key.columns))
        answer = [dict(one._mapping) for one in result]
    database.close()
    return answer


def a_device(number: int, model: str, *, mig: str = "", shared: bool = False) -> DeviceFinding:
    evidence = DeviceEvidence(
        DeviceId(f"GPU-{number}", mig), Period(0, 34, 60.0), (), model=model, shared=shared
    )
    return DeviceFinding(evidence=evidence, verdict=Verdict.IDLE, reason=Reason.IDLE, detail="")


def holding(
    root: RootRef, gpus: int, *, model: str = H100, verdict: Verdict = Verdict.IDLE
) -> Decision:
    """Return the decision about a workload with so many GPUs of one model."""
    reason = {Verdict.IDLE: Reason.IDLE, Verdict.ACTIVE: Reason.GPU_ACTIVE}
    return a_decision(
        root,
        verdict=verdict,
        reason=reason.get(verdict, Reason.NO_SERIES),
        pods=(a_pod("pod-1", gpus=gpus),),
        findings=tuple(a_device(number, model) for number in range(gpus)),
    )


def cycle(*decisions: Decision, at: float, number: int = 1, **more: Any) -> CycleReport:
    report = a_report(*decisions, number=number, **more)
    assert report.plan is not None
    plan = replace(report.plan, at=at)
    return replace(report, started_at=at, finished_at=at + 1, plan=plan)


def cycles(
    *decisions: Decision, begin: float, count: int, every: float = 60
) -> Sequence[CycleReport]:
    """Return so many cycles, a minute apart or as told, which all decide the same."""
    return [cycle(*decisions, at=begin + every * index, number=index + 1) for index in range(count)]


def limit_pages(engine: Engine, pages: int) -> None:
    """Have every new connection to an SQLite database find the disk full after so many pages."""

    @event.listens_for(engine, "connect")
    def _limit(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count={pages}")

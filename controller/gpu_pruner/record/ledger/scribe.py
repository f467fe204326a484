"""Cycle reports to batches: what of a cycle is worth keeping.

Transitions only, so that a quiet cluster costs one row per cycle and one per workload and hour.
Remembers the standings and the begin of the cycle before, and which pauses were called wrong. Reads
no clock. Called by the ledger's writer, in its thread.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import msgspec

from gpu_pruner.model.orders import Outcome
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.units import Timestamp
from gpu_pruner.model.workload import Complaint
from gpu_pruner.record.decisions import told_evidence
from gpu_pruner.record.ledger.entries import (
    ActionEntry,
    Batch,
    DecisionEntry,
    FalsePositive,
    fit,
)
from gpu_pruner.record.ledger.gpu_time import LONGEST_NAME, gpu_time, who, who_of
from gpu_pruner.record.report import CycleReport
from gpu_pruner.record.standings import Standing, Standings, standing

_ACTS = frozenset({"pause", "restore"})
"""`Outcome.action` of what changes a workload; the others are bookkeeping."""


class Scribe:
    """Makes the batches of one process."""

    def __init__(self, process: str = "") -> None:
        """Begin with nothing known.

        Args:
            process: unique name of this process; a random one where it is empty.
        """
        self._process = process or uuid.uuid4().hex
        self._standings = Standings()
        self._since: Timestamp | None = None
        self._called_wrong: set[tuple[str, str]] = set()
        """Root uid and pause of what this process has told; the database knows of the others."""

    def batch(self, report: CycleReport) -> Batch | None:
        """Return what to keep of a cycle; None where another replica led, which keeps it."""
        if not report.leading:
            self._since = None
            return None
        since, self._since = self._since, report.started_at
        return Batch(
            cycle_id=f"{self._process}-{report.number}",
            started_at=report.started_at,
            finished_at=report.finished_at,
            workloads=len(report.decisions),
            failure=fit(report.failure),
            breakers=tuple(fit(f"{one.name}: {one.message}") for one in report.breakers),
            decisions=tuple(self._decisions(report)),
            actions=tuple(_actions(report)),
            gpu_time=gpu_time(report.plan, since=since, until=report.started_at),
            false_positives=tuple(self._false_positives(report)),
        )

    def _decisions(self, report: CycleReport) -> Iterator[DecisionEntry]:
        if report.plan is None:
            return
        for decision, before in self._standings.changes(report.plan):
            yield _decision(decision, before, at=report.plan.at)

    def _false_positives(self, report: CycleReport) -> Iterator[FalsePositive]:
        """Yield what people call wrong, once in each process: the database takes it once."""
        for decision in report.decisions:
            said = decision.workload.intent.complaint
            key = (decision.workload.root.uid, said.pause if said else "")
            if said is not None and key not in self._called_wrong:
                self._called_wrong.add(key)
                yield _false_positive(decision, said)


def _false_positive(decision: Decision, said: Complaint) -> FalsePositive:
    """Return an entry; its evidence is our own record's as long as that is there."""
    record, evidence = decision.workload.book.pause, said.evidence
    if record is not None and record.decision == said.pause:
        evidence = record.why
    return FalsePositive(
        who=who(decision),
        decision_id=fit(said.pause)[:LONGEST_NAME],
        at=said.at,
        paused_at=said.paused_at,
        by=fit(said.by)[:LONGEST_NAME],
        reason=fit(said.reason),
        evidence=fit(evidence),
    )


def _decision(decision: Decision, before: Standing | None, *, at: Timestamp) -> DecisionEntry:
    phase, verdict, reason = standing(decision)
    return DecisionEntry(
        who=who(decision),
        at=at,
        decision_id=fit(decision.decision_id),
        phase=phase,
        verdict=verdict,
        reason=reason,
        was="/".join(before) if before else "",
        action=decision.action.value,
        message=fit(decision.message),
        gpus=decision.workload.gpus if decision.workload.pods else decision.book.gpus,
        evidence=_evidence(decision),
        former=_former(decision),
    )


def _actions(report: CycleReport) -> Iterator[ActionEntry]:
    decided = {one.workload.root: one for one in report.decisions}
    for outcome in report.outcomes:
        if outcome.action in _ACTS:
            yield _action(outcome, decided.get(outcome.root), at=report.finished_at)


def _action(outcome: Outcome, decision: Decision | None, *, at: Timestamp) -> ActionEntry:
    return ActionEntry(
        who=who(decision) if decision else who_of(outcome.root, owner=""),
        at=at,
        decision_id=fit(decision.decision_id) if decision else "",
        action=fit(outcome.action),
        result=outcome.result.value,
        detail=fit(outcome.detail),
        message=fit(decision.message) if decision else "",
        gpus=decision.workload.gpus if decision else 0,
        evidence=_evidence(decision) if decision else "[]",
        former=_former(decision) if decision else "",
    )


def _evidence(decision: Decision) -> str:
    return _json(told_evidence(decision))


def _former(decision: Decision) -> str:
    """Return what a restore gives back: the pause record, before there is one the size now."""
    record = decision.book.pause or decision.workload.book.pause
    if record is not None:
        return _json(record)
    owner = decision.workload.owner
    return _json({"replicas": owner.desired}) if owner and owner.desired is not None else ""


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()

"""The decision log: one structured line whenever a workload's standing changes.

Answers, months later: why was this workload warned or paused, on which evidence. Says nothing
while nothing changes, so its length does not grow with the number of cycles. Never decides; holds
no secrets, since messages and evidence have none. Called by `loop` once per cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import structlog

from gpu_pruner.model.orders import Outcome
from gpu_pruner.model.plan import Decision, DeviceFinding, Plan
from gpu_pruner.model.signals import Signal, SignalEvidence
from gpu_pruner.model.units import rfc3339
from gpu_pruner.record.aftermath import TROUBLE
from gpu_pruner.record.standings import Standing, Standings, standing

EVENT = "decision"
"""The line's event name."""

TROUBLE_EVENT = "not done"
"""The event name of an order that was not carried out."""

MOST_DEVICES = 16
"""Devices whose evidence is written out; the line says how many there are."""

Fields: TypeAlias = Mapping[str, object]
"""One JSON object of a log line."""


class DecisionLog:
    """Remembers each workload's standing, to tell a change from a repetition."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("gpu_pruner.decisions")
        self._standings = Standings()
        self._troubles: frozenset[Outcome] = frozenset()

    def record(self, plan: Plan) -> int:
        """Write a line for every workload that is new or stands elsewhere than before.

        Workloads that the plan no longer has are forgotten.

        Returns:
            How many lines were written.
        """
        lines = 0
        for decision, before in self._standings.changes(plan):
            self._log.info(EVENT, **fields(decision, before=before))
            lines += 1
        return lines

    def record_troubles(self, outcomes: Iterable[Outcome]) -> int:
        """Write a line for every order that was not carried out, unless the last cycle's was alike.

        Returns:
            How many lines were written.
        """
        before = self._troubles
        self._troubles = frozenset(one for one in outcomes if one.result in TROUBLE)
        news = sorted(self._troubles - before, key=lambda one: (one.root, one.action))
        for one in news:
            self._log.warning(
                TROUBLE_EVENT,
                ref=one.root.ref,
                uid=one.root.uid,
                order=one.action,
                result=one.result.value,
                detail=one.detail,
            )
        return len(news)


def fields(decision: Decision, *, before: Standing | None) -> Fields:
    """Return one line's fields.

    Args:
        decision: what was decided.
        before: where the workload stood in the cycle before; None where it is new.
    """
    phase, verdict, reason = standing(decision)
    moments = {"idle_since": decision.idle_since, "pause_at": decision.book.pause_at}
    return {
        "ref": decision.workload.root.ref,
        "uid": decision.workload.root.uid,
        "verdict": verdict,
        "reason": reason,
        "phase": phase,
        "was": "/".join(before) if before else None,
        "action": decision.action.value,
        "message": decision.message,
        "gpus": decision.workload.gpus,
        "decision_id": decision.decision_id,
        "devices": len(decision.findings),
        "evidence": told_evidence(decision),
        **{name: rfc3339(moment) for name, moment in moments.items() if moment is not None},
    }


def evidence(finding: DeviceFinding) -> Fields:
    """Return one device's evidence in short: the signal that weighs most, and its quality."""
    device = finding.evidence
    summary: dict[str, object] = {
        "device": str(device.device),
        "verdict": finding.verdict.value,
        "reason": finding.reason.value,
        "detail": finding.detail,
    }
    leading = _leading(device.signals)
    if leading is None:
        return summary
    summary |= {
        "metric": leading.metric,
        "peak": leading.peak,
        "seen_steps": leading.seen_steps,
        "steps": device.period.steps,
        "active_steps": leading.active_steps,
        "newest_age_seconds": device.period.end - leading.newest_at,
        "changes": {
            one.signal.value: one.changes
            for one in device.signals
            if one.signal in {Signal.ENERGY, Signal.POWER, Signal.TEMPERATURE}
        },
    }
    return summary


def told_evidence(decision: Decision) -> list[Fields]:
    """Return the evidence of a decision's devices, those first that made it what it is."""
    return [evidence(one) for one in _telling(decision)]


def _telling(decision: Decision) -> list[DeviceFinding]:
    """Return the findings to write out: those first that made the verdict what it is."""
    telling = sorted(decision.findings, key=lambda one: one.verdict is not decision.verdict)
    return telling[:MOST_DEVICES]


def _leading(signals: tuple[SignalEvidence, ...]) -> SignalEvidence | None:
    """Return the signal that shows work last, else the first in the order of `Signal`."""
    busy = [one for one in signals if one.last_active_at is not None]
    if busy:
        return max(busy, key=lambda one: one.last_active_at or 0.0)
    return signals[0] if signals else None

"""Decisions as rows for people and programs: the API and `once` show the same ones."""

from __future__ import annotations

import msgspec

from gpu_pruner.model.audience import Audience
from gpu_pruner.model.plan import Decision, DeviceFinding, Plan
from gpu_pruner.model.units import Timestamp, rfc3339


class BreakerRow(msgspec.Struct, frozen=True):
    """One breaker that is open: nothing is done in this cycle because of it."""

    name: str
    message: str


class DeviceRow(msgspec.Struct, frozen=True, rename="camel"):
    """One device of a workload, as judged."""

    device: str
    """UUID, with the MIG instance behind a slash."""
    node: str
    model: str
    verdict: str
    reason: str
    detail: str


class AudienceRow(msgspec.Struct, frozen=True):
    """Somebody who is told about a workload."""

    kind: str
    """email, slack-user, slack-group, name, or channel for the team's."""
    address: str
    found: str
    """Where it was found, in words."""


class WorkloadRow(msgspec.Struct, frozen=True, rename="camel"):
    """One workload, as decided in the latest cycle. Times are RFC 3339, UTC."""

    ref: str
    """``kind/namespace/name``."""
    verdict: str
    reason: str
    message: str
    """The sentence with the evidence."""
    state: str
    """Phase of its book: Watching, Nominated, Warned, Pausing, Paused, Restoring, WouldPause."""
    gpus: int
    """GPUs that its live pods request; while paused, those it gave back."""
    idle_since: str | None = None
    warned_at: str | None = None
    pause_at: str | None = None
    paused_at: str | None = None
    kept_until: str | None = None
    audience: tuple[AudienceRow, ...] = ()
    """Who is told about it: its people, then their team's channel."""
    devices: tuple[DeviceRow, ...] = ()


class PlanRow(msgspec.Struct, frozen=True):
    """What `once` prints and `GET /api/v1/workloads` answers."""

    workloads: tuple[WorkloadRow, ...]
    breakers: tuple[BreakerRow, ...]
    cycle: dict[str, str | int]


def plan_row(plan: Plan, *, number: int) -> PlanRow:
    """Return a whole plan as rows, sorted by reference.

    Args:
        plan: a finished plan.
        number: count of the cycle since start, from 1.
    """
    rows = sorted((workload_row(one) for one in plan.decisions), key=lambda row: row.ref)
    return PlanRow(
        workloads=tuple(rows),
        breakers=tuple(BreakerRow(one.name, one.message) for one in plan.breakers),
        cycle={"number": number, "at": rfc3339(plan.at)},
    )


def workload_row(decision: Decision) -> WorkloadRow:
    """Return one decision as a row."""
    workload, book = decision.workload, decision.book
    return WorkloadRow(
        ref=workload.root.ref,
        verdict=decision.verdict.value,
        reason=decision.reason.value,
        message=decision.message,
        state=book.phase.value,
        gpus=workload.gpus if workload.pods else book.gpus,
        idle_since=_time(decision.idle_since or book.idle_since),
        warned_at=_time(book.warned_at),
        pause_at=_time(book.pause_at),
        paused_at=_time(book.paused_at),
        kept_until=_time(workload.intent.keep_until),
        audience=audience_rows(workload.audience),
        devices=tuple(_device(one) for one in decision.findings),
    )


def audience_rows(audience: Audience) -> tuple[AudienceRow, ...]:
    """Return who is told, as rows."""
    people = tuple(
        AudienceRow(one.address.kind.value, one.address.text, one.found) for one in audience.people
    )
    team = audience.channel
    return people if team is None else (*people, AudienceRow("channel", team.name, team.found))


def _device(finding: DeviceFinding) -> DeviceRow:
    evidence = finding.evidence
    return DeviceRow(
        device=str(evidence.device),
        node=evidence.node,
        model=evidence.model,
        verdict=finding.verdict.value,
        reason=finding.reason.value,
        detail=finding.detail,
    )


def _time(moment: Timestamp | None) -> str | None:
    return None if moment is None else rfc3339(moment)

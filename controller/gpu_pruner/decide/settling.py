"""From ordered to done: a workload after its pause or restore was ordered.

It answers the next step of a workload that is pausing, paused or restoring. Success is what the
root object shows, never that a call returned. It never waits and never changes a size itself.
`plan` calls it.

Source: ARCHITECTURE section 5, "to act".
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from gpu_pruner.decide.contested import taken_back
from gpu_pruner.decide.standing import Standing, Step
from gpu_pruner.decide.wording import clock_time
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import Phase
from gpu_pruner.model.plan import Action
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.units import Seconds
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import OwnerObject, Veto
from gpu_pruner.resolve.annotations import is_record_of

_PATIENCE_CYCLES = 0.5
_LEAST_PATIENCE: Seconds = 30.0
"""How long an order may be on its way before its absence means that it never arrived: half a cycle,
and never less than a slow API server takes. An order that arrived later than that would have paused
what our book no longer knows of."""

_OURS = frozenset({"", "gpu-pruner"})
"""Writers of a size who are not known to be somebody else."""


def pausing(standing: Standing) -> Step:
    """Settle an ordered pause by what the root object shows."""
    owner = standing.workload.owner
    if owner is None:
        return _ordered(standing, "The root object is out of sight")
    if not owner.halted:
        return _not_halted(standing, owner)
    if not _is_ours(standing, owner):
        return _not_by_us(standing)
    wish = _unmet_wish(standing)
    if wish is not None:
        return _restore(standing, f"{wish.detail}: the pause is taken back")
    left = len(standing.workload.pods)
    if left:
        return _ordered(standing, f"{left} of its GPU pods are still there")
    return _idle(standing.enter(Phase.PAUSED, (Reason.PAUSED, _since(standing))))


def _unmet_wish(standing: Standing) -> Veto | None:
    """Return the wish that takes a pause back, or None where none does.

    A contest keeps us from pausing; it does not undo what a person ordered. In dry run nothing is
    given back either: the pause was a person's, or of another mode.
    """
    veto = standing.veto
    if veto is None or veto.reason is Reason.CONTESTED or standing.rules.mode is Mode.DRY_RUN:
        return None
    return veto


def paused(standing: Standing) -> Step:
    """Notice when somebody starts a paused workload."""
    owner = standing.workload.owner
    if owner is not None and owner.halted and owner.governor and owner.desired:
        return _held_in_vain(standing, owner)
    if owner is None or owner.halted:
        return _idle(standing.stay((Reason.PAUSED, _since(standing))))
    return taken_back(standing, owner)


def _held_in_vain(standing: Standing, owner: OwnerObject) -> Step:
    """Let go of a root that has a size although what owns that is told to hold it at zero.

    Older releases of KEDA scale up what they are told to hold (kedacore/keda#5165), and a person
    may have done so; either way our hold is of no use any more.
    """
    step = taken_back(standing, owner)
    book = replace(
        standing.book,
        reverted_by=step.book.reverted_by,
        contested_by=step.book.contested_by,
        contested_until=step.book.contested_until,
    )
    why = (step.reason, step.message)
    return standing.enter(Phase.RESTORING, why, action=Action.RESTORE, book=book)


def restoring(standing: Standing) -> Step:
    """Settle an ordered restore by what the root object shows."""
    owner = standing.workload.owner
    if owner is None:
        return standing.stay((Reason.RESTORING, "The root object is out of sight"))
    if owner.halted:
        if PAUSED in owner.annotations:
            return _restore(standing, "The pause record is still there: restoring again")
        return _idle(standing.enter(Phase.PAUSED, (Reason.PAUSED, _since(standing))))
    if _is_back(standing, owner):
        return standing.enter(Phase.WATCHING, (Reason.RESTORED, Reason.RESTORED.rule))
    return standing.stay((Reason.RESTORING, Reason.RESTORING.rule))


def _not_halted(standing: Standing, owner: OwnerObject) -> Step:
    """Tell a pause that never arrived from one that somebody undid."""
    if _is_on_its_way(standing):
        return _ordered(standing, "It does not show on the root object yet")
    if _is_ours(standing, owner):
        return taken_back(standing, owner)
    told = "The pause was ordered but never reached the root object"
    return _forgotten(standing.enter(Phase.WATCHING, (Reason.REFUSED, told)))


def _not_by_us(standing: Standing) -> Step:
    """Leave alone what somebody else shut down: a restore would bring back what they stopped."""
    if _is_on_its_way(standing):
        return _ordered(standing, "It does not show on the root object yet")
    told = "It is at zero, but our pause never reached it"
    return _forgotten(standing.enter(Phase.WATCHING, (Reason.ALREADY_ZERO, told)))


def _is_on_its_way(standing: Standing) -> bool:
    """Whether an order may yet show: it is fresh, or what we see cannot be trusted."""
    ordered_at = standing.book.paused_at
    patience = max(_LEAST_PATIENCE, _PATIENCE_CYCLES * standing.rules.cycle_seconds)
    fresh = ordered_at is not None and abs(standing.now - ordered_at) < patience
    return standing.breaker is not None or fresh


def _is_ours(standing: Standing, owner: OwnerObject) -> bool:
    """Whether the pause that we ordered is recorded on the root object: one patch did both."""
    order = standing.book.pause
    return is_record_of(
        owner.annotations.get(PAUSED),
        uid=owner.governor_uid or owner.root.uid,
        decision=None if order is None else order.decision,
    )


def _forgotten(step: Step) -> Step:
    """Take back that there was a pause: the hourly budget must not count it."""
    return structs.replace(step, book=replace(step.book, paused_at=None))


def _is_back(standing: Standing, owner: OwnerObject) -> bool:
    """Whether the former size is reached and every replica is Ready.

    Where somebody else owns the size (KEDA, Kueue) or has set another one since (an HPA), theirs
    counts: what we took was the lever, and that is given back.
    """
    if owner.is_ready is not None:
        return owner.is_ready
    record = standing.book.pause
    if owner.desired is not None:
        former = owner.desired
        if not owner.governor and owner.sized_by in _OURS and record and record.replicas:
            former = max(former, record.replicas)
        return owner.ready is not None and owner.ready >= former
    pods = standing.workload.pods
    return bool(pods) and all(pod.record.ready_since is not None for pod in pods)


def _restore(standing: Standing, why: str) -> Step:
    return standing.enter(Phase.RESTORING, (Reason.RESTORING, why), action=Action.RESTORE)


def _ordered(standing: Standing, detail: str) -> Step:
    return _idle(standing.stay((Reason.PAUSING, f"The pause was ordered. {detail}")))


def _idle(step: Step) -> Step:
    """Show what the pause rests on: a root without pods has no evidence of its own."""
    return structs.replace(step, verdict=Verdict.IDLE)


def _since(standing: Standing) -> str:
    at = standing.book.paused_at
    return Reason.PAUSED.rule if at is None else f"Paused at {clock_time(at, now=standing.now)}"

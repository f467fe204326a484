"""A plan as it turned out: every decision that could not be carried out says so.

Answers what others are shown of a cycle: nothing that was ordered is told as done, and what was
refused is told with its reason. Pure; changes no verdict and no evidence. Called by `loop` between
the act and the record of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from msgspec import structs

from gpu_pruner.model.orders import EVENT, Delivery, MessageKind, Outcome, Result
from gpu_pruner.model.plan import Action, Decision, Plan
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import RootRef

TROUBLE = frozenset({Result.REFUSED, Result.CONFLICT, Result.FAILED})
"""Results of orders that were not carried out."""

_ACTS = frozenset({Action.PAUSE, Action.RESTORE})


def turned_out(
    plan: Plan,
    outcomes: Iterable[Outcome],
    deliveries: Iterable[Delivery],
    *,
    counting: frozenset[str] = frozenset({EVENT}),
) -> Plan:
    """Return the plan with every decision as it turned out.

    Args:
        plan: what was decided.
        outcomes: how its orders ended; one per root.
        deliveries: how its messages ended.
        counting: channels whose confirmation means that somebody was reached.

    Returns:
        The plan; where an order or a warning failed, the decision has the book from before, for
        what it should have become was not written, and says what happened.
    """
    failed = {one.root: one for one in outcomes if one.result in TROUBLE}
    unheard = {
        one.root: one
        for one in deliveries
        if one.kind is MessageKind.WARNING and not one.is_repeat and not one.reached(counting)
    }
    if not failed and not unheard:
        return plan
    decisions = tuple(_as_it_is(one, failed, unheard) for one in plan.decisions)
    return replace(plan, decisions=decisions)


def _as_it_is(
    decision: Decision, failed: Mapping[RootRef, Outcome], unheard: Mapping[RootRef, Delivery]
) -> Decision:
    root, before = decision.workload.root, decision.workload.book
    if decision.action is Action.WARN and root in unheard:
        told = _sentence(decision.message, Reason.NOT_DELIVERED.rule, unheard[root].problem)
        return structs.replace(decision, book=before, reason=Reason.NOT_DELIVERED, message=told)
    outcome = failed.get(root)
    if outcome is None:
        return decision
    if decision.action in _ACTS:
        told = _sentence(f"The {outcome.action} did not happen ({outcome.result.value})")
        told = _sentence(told, outcome.detail, decision.message)
        return structs.replace(decision, book=before, reason=Reason.REFUSED, message=told)
    told = _sentence(decision.message, "This could not be remembered", outcome.detail)
    return structs.replace(decision, book=before, message=told)


def _sentence(*parts: str) -> str:
    return ". ".join(part.rstrip(".") for part in parts if part)

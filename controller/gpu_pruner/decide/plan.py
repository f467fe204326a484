"""The plan of a cycle: every workload's decision, in one deterministic value.

It answers what to do for each workload and why. It never acts, and the same snapshot, rules and
verifications give the same plan whatever the order of the input. `loop.cycle` calls it once with
what the screen knows, measures what it is asked to, and calls it again with the verifications.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from msgspec import structs

from gpu_pruner.decide import clock, settling
from gpu_pruner.decide.budget import Budget
from gpu_pruner.decide.device import Yardstick
from gpu_pruner.decide.idle import judge_workload
from gpu_pruner.decide.nodes import restless_nodes, suspect_nodes
from gpu_pruner.decide.release import given_back, with_release
from gpu_pruner.decide.standing import Standing, Step, written
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.plan import Action, Decision, Plan, Verification
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.snapshot import Snapshot, Workload
from gpu_pruner.model.units import Timestamp
from gpu_pruner.model.verdict import Reason

_STEP_OF = {
    Phase.WATCHING: clock.watching,
    Phase.NOMINATED: clock.nominated,
    Phase.WARNED: clock.warned,
    Phase.WOULD_PAUSE: clock.would_pause,
    Phase.PAUSING: settling.pausing,
    Phase.PAUSED: settling.paused,
    Phase.RESTORING: settling.restoring,
}

_NOTHING_VERIFIED: Mapping[str, Verification] = MappingProxyType({})


def plan(
    snapshot: Snapshot,
    rules: Rules,
    *,
    verifications: Mapping[str, Verification] = _NOTHING_VERIFIED,
    examined: frozenset[str] = frozenset(),
) -> Plan:
    """Decide for every workload of a snapshot.

    Args:
        snapshot: the cycle's view.
        rules: the numbers.
        verifications: full-window measurements by root uid. A root that needs one and has none
            (or one that is too old) is answered with `Action.VERIFY`.
        examined: uids of roots that somebody asks about: they are judged by their verification in
            every phase, and told what to measure where there is none.

    Returns:
        One decision per workload, sorted by root; those with an action take the places of those
        with an action in the order of their deadlines.
    """
    yardstick = Yardstick(
        rules=rules,
        at=snapshot.now,
        scrape_interval_seconds=snapshot.scrape_interval_seconds,
        suspect_nodes=suspect_nodes(snapshot),
        silenced=snapshot.silenced,
        proven=snapshot.proven,
    )
    yardstick = replace(yardstick, restless_nodes=restless_nodes(snapshot, yardstick))
    budget = Budget(snapshot, rules)
    breaker = min(snapshot.breakers, key=lambda one: (one.name, one.message), default=None)
    decisions: list[Decision] = []
    for workload in sorted(snapshot.workloads, key=_turn):
        standing = Standing(
            workload=workload,
            judgement=judge_workload(workload, yardstick),
            yardstick=yardstick,
            step_seconds=snapshot.period.step_seconds,
            budget=budget,
            breaker=breaker,
            verification=verifications.get(workload.root.uid),
            unattended_since=snapshot.unattended.get(workload.root.uid),
        )
        asked = workload.root.uid in examined
        decisions.append((_examined if asked else _decided)(standing))
    return Plan(
        at=snapshot.now,
        decisions=_in_order(decisions),
        breakers=tuple(sorted(snapshot.breakers, key=lambda one: (one.name, one.message))),
    )


def _decided(standing: Standing) -> Decision:
    step = given_back(standing)
    if step is None:
        step = with_release(standing, _STEP_OF[standing.book.phase](standing))
    return _decision(standing, step)


def _examined(standing: Standing) -> Decision:
    """Decide on the measurement alone, or say what has to be measured for that."""
    decision, check = _decided(standing.examined()), standing.look()
    if check.at is not None:
        return structs.replace(decision, verified_at=check.at)
    if decision.verify is not None:
        return decision
    return structs.replace(decision, verify=check.wanted, window=check.window)


def _turn(workload: Workload) -> tuple[bool, Timestamp, str, str, str, str, str]:
    """Order workloads for the budget: by deadline, then by root; what cannot be paused last."""
    return (workload.tried_last, _deadline(workload.book), *workload.root.order)


def _decision(standing: Standing, step: Step) -> Decision:
    book = written(standing, step)
    return Decision(
        workload=standing.workload,
        verdict=step.verdict,
        reason=step.reason,
        message=step.message,
        book=book,
        action=step.action,
        verify=step.verify,
        window=step.window,
        decision_id=_decision_id(standing.workload, book, step.reason),
        findings=step.judgement.findings,
        idle_since=step.judgement.idle_since if book.idle_since is None else book.idle_since,
        verified_at=step.verified_at,
    )


def _decision_id(workload: Workload, book: Book, reason: Reason) -> str:
    """Return the same name for the same root, warning and deadline; empty without a warning.

    A warning that ends in this cycle is still named by its own id, so that its cancellation can be
    matched with it. A pause on somebody's release is named by that.
    """
    told = book if book.warned_at is not None else workload.book
    release = workload.intent.release
    if reason is Reason.RELEASED and release is not None:
        moments = f"released\n{release.at!r}"
    elif told.warned_at is None:
        return ""
    else:
        moments = f"{told.warned_at!r}\n{told.pause_at!r}"
    text = f"{workload.root.uid}\n{workload.root.ref}\n{moments}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _in_order(decisions: list[Decision]) -> tuple[Decision, ...]:
    ordered = sorted(decisions, key=lambda one: one.workload.root.order)
    places = [place for place, one in enumerate(ordered) if one.action is not Action.NONE]
    acting = sorted((ordered[place] for place in places), key=lambda one: _deadline(one.book))
    for place, one in zip(places, acting, strict=True):
        ordered[place] = one
    return tuple(ordered)


def _deadline(book: Book) -> Timestamp:
    return float("inf") if book.pause_at is None else book.pause_at

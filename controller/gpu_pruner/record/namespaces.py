"""What each namespace holds, by one plan: the answer of ``/api/v1/namespaces``. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from gpu_pruner.model.book import Phase
from gpu_pruner.model.plan import Decision, Plan
from gpu_pruner.model.units import rfc3339
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.record.totals import gpu_state, is_kept


class NamespaceRow(msgspec.Struct, frozen=True, rename="camel"):
    """One namespace: GPUs by what was found of the workloads that hold them."""

    name: str
    workloads: int
    """With GPU pods, or paused."""
    active_gpus: int
    idle_gpus: int
    unknown_gpus: int
    """Nothing could be said of them: neither idle nor at work."""
    paused_gpus: int
    """Held before a pause, and given back by it."""
    warned_workloads: int
    paused_workloads: int
    kept_workloads: int


class NamespacesRow(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of ``/api/v1/namespaces``."""

    at: str
    """RFC 3339: the moment that the plan is of."""
    namespaces: tuple[NamespaceRow, ...]
    """Sorted by name."""


def namespaces(plan: Plan) -> NamespacesRow:
    """Return what each namespace of a plan holds."""
    parts: defaultdict[str, list[Decision]] = defaultdict(list)
    for decision in plan.decisions:
        parts[decision.workload.root.namespace].append(decision)
    rows = (_row(name, part, plan) for name, part in sorted(parts.items()))
    return NamespacesRow(at=rfc3339(plan.at), namespaces=tuple(rows))


def _row(name: str, decisions: list[Decision], plan: Plan) -> NamespaceRow:
    gpus: Counter[str] = Counter()
    for decision in decisions:
        state, held = gpu_state(decision)
        gpus[state] += held
    phases = Counter(one.book.phase for one in decisions)
    return NamespaceRow(
        name=name,
        workloads=len(decisions),
        active_gpus=gpus[Verdict.ACTIVE.value],
        idle_gpus=gpus[Verdict.IDLE.value],
        unknown_gpus=gpus[Verdict.UNKNOWN.value],
        paused_gpus=gpus["paused"],
        warned_workloads=phases[Phase.WARNED],
        paused_workloads=phases[Phase.PAUSED],
        kept_workloads=sum(is_kept(one, now=plan.at) for one in decisions),
    )

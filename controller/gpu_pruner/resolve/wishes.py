"""What people and the platform want of one workload, in order of weight.

It answers which vetoes stand now, each with its source in words. A broken wish of one workload
never touches another. It never decides what a veto does. `assemble` calls it once per root.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.model.annotations import ACK_UNTIL
from gpu_pruner.model.cluster import Bookkeeping
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import Intent, NamespaceRecord, PodRecord, Veto
from gpu_pruner.resolve.annotations import (
    AnnotatedKeep,
    Source,
    annotated_keep,
    exemptions,
    holds,
    shown,
)
from gpu_pruner.resolve.owners import Root

_WEIGHT = (
    Reason.PROTECTED_NAMESPACE,
    Reason.EXEMPT,
    Reason.MALFORMED_EXEMPTION,
    Reason.KEPT,
    Reason.CONTESTED,
    Reason.HELD,
)

_SAME_SECOND = 1.0
"""Times are written to the second; two that are closer are the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything on which a wish about one workload can be written."""

    root: Root
    pods: tuple[PodRecord, ...]
    namespace: NamespaceRecord | None

    @property
    def root_source(self) -> Source | None:
        """Return the root object's own labels and annotations, where there are any to read."""
        owner, ref = self.root.owner, self.root.ref
        if owner is None or not (owner.labels or owner.annotations):
            return None
        return Source(f"{ref.kind} {ref.name}", owner.labels, owner.annotations)

    @property
    def namespace_source(self) -> Source | None:
        """Return the namespace's labels and annotations, where there are any to read."""
        one = self.namespace
        if one is None or not (one.labels or one.annotations):
            return None
        return Source(f"namespace {one.name}", one.labels, one.annotations)

    @property
    def pod_sources(self) -> tuple[Source, ...]:
        """Return the pods' labels and annotations."""
        return tuple(
            Source(f"pod {pod.name}", pod.labels, pod.annotations)
            for pod in self.pods
            if pod.labels or pod.annotations
        )


def vetoes(
    around: Surroundings, kept: Bookkeeping, *, now: Timestamp, rules: Rules
) -> tuple[Veto, ...]:
    """Return the vetoes that stand now, the one that people are shown first.

    Args:
        around: the root, its pods and its namespace.
        kept: intent and memory of the workload.
        now: Unix seconds.
        rules: for protected namespaces and the cap of keeps.
    """
    found: list[Veto] = []
    namespace = around.root.ref.namespace
    if namespace in rules.protected_namespaces:
        detail = f"namespace {namespace} is protected by the settings"
        found.append(Veto(reason=Reason.PROTECTED_NAMESPACE, detail=detail))
    exemption = _exemption(kept.intent, now=now)
    if exemption is not None:
        found.append(exemption)
    root, space = around.root_source, around.namespace_source
    above = tuple(source for source in (root, space) if source is not None)
    found.extend(exemptions((*above, *around.pod_sources), now=now))
    found.extend(holds(above))
    written = annotated_keep(root) if root is not None else None
    if isinstance(written, Veto):
        found.append(written)
        written = None
    keep = _keep(kept, written, now=now, rules=rules)
    if keep is not None:
        found.append(keep)
    contest = _contest(kept, now=now)
    if contest is not None:
        found.append(contest)
    return tuple(sorted(found, key=lambda veto: _WEIGHT.index(veto.reason)))


def _exemption(intent: Intent, *, now: Timestamp) -> Veto | None:
    """Return the exemption in the GPUWorkload, unless it is over."""
    until = intent.exempt_until
    if not intent.exempt or (until is not None and until <= now):
        return None
    told = "exempt is set in the GPUWorkload"
    if intent.exempt_by:
        told = f"exempted by {shown(intent.exempt_by)}"
    if until is not None:
        told += f" until {rfc3339(until)}"
    if intent.exempt_reason:
        told += f": {shown(intent.exempt_reason)}"
    return Veto(reason=Reason.EXEMPT, detail=told, until=until)


def _contest(kept: Bookkeeping, *, now: Timestamp) -> Veto | None:
    """Return the hands-off of a contest; who deletes the GPUWorkload ends it."""
    until = kept.book.contested_until
    if until is None or until <= now:
        return None
    who = shown(kept.book.contested_by)
    detail = f"{who} took our pause back; left alone until {rfc3339(until)}"
    return Veto(reason=Reason.CONTESTED, detail=detail, until=until)


def _keep(
    kept: Bookkeeping, written: AnnotatedKeep | None, *, now: Timestamp, rules: Rules
) -> Veto | None:
    """Return the keep that reaches farthest, cut at the cap, or None where none stands."""
    intent, book = kept.intent, kept.book
    wanted, who = intent.keep_until, intent.keep_by or "somebody"
    if written is not None and (wanted is None or written.until > wanted):
        wanted, who = written.until, f"{written.by or 'somebody'} by {ACK_UNTIL}"
    if wanted is None:
        return None
    known = book.long_keep_until
    read_at = now
    if known is not None and book.long_keep_read_at is not None:
        read_at = min(now, book.long_keep_read_at) if abs(known - wanted) < _SAME_SECOND else now
    until = min(wanted, read_at + rules.keep_cap_seconds)
    if until <= now:
        return None
    told = f"kept by {shown(who)} until {rfc3339(until)}"
    if intent.keep_reason:
        told += f": {shown(intent.keep_reason)}"
    if until == wanted:
        return Veto(reason=Reason.KEPT, detail=told, until=until)
    return Veto(
        reason=Reason.KEPT,
        detail=f"{told} (asked for longer than the cap)",
        until=until,
        asked_until=wanted,
    )

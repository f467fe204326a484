"""The Snapshot: everything that one cycle decides from, with its gaps marked.

It answers which workloads there are, which pods and devices each has, what people want of it, and
what is remembered of it. It never judges evidence and never fills a gap. The base set is the pods
that request GPUs, plus the paused roots that we remember, or find paused by us; never the series
that came back. `loop.cycle` calls `assemble`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpu_pruner.model.book import Phase
from gpu_pruner.model.cluster import Bookkeeping, ClusterView
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period
from gpu_pruner.model.snapshot import Breaker, Snapshot, Workload
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import GpuPod, RootRef
from gpu_pruner.resolve.attribution import attribute
from gpu_pruner.resolve.audience import audience_of
from gpu_pruner.resolve.owners import Root, obstacle_of, root_of
from gpu_pruner.resolve.pauses import pause_on
from gpu_pruner.resolve.selection import is_selected
from gpu_pruner.resolve.wishes import Surroundings, vetoes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What telemetry said, as far as the screen's memory reaches."""

    period: Period
    """The judged period."""
    scrape_interval_seconds: Seconds
    evidence: Mapping[DeviceId, DeviceEvidence] = field(default_factory=dict)
    honor_labels: bool | None = None
    """Which pod labels hold the workload; None: found out by meaning (see `attribution`)."""


def assemble(
    view: ClusterView,
    reading: Reading,
    *,
    now: Timestamp,
    rules: Rules,
    breakers: Iterable[Breaker] = (),
) -> Snapshot:
    """Put one cycle's view together.

    Args:
        view: the cluster.
        reading: the telemetry.
        now: Unix seconds; the moment that everything is judged at.
        rules: for enabled kinds, protected namespaces and the cap of keeps.
        breakers: reasons to do nothing in this cycle.

    Returns:
        The snapshot; the same whatever order the inputs come in.
    """
    attribution = attribute(view, reading.evidence, honor_labels=reading.honor_labels)
    gathered = _gather(view, attribution.pods, rules)
    workloads = [
        _workload(view, root, pods=pods, now=now, rules=rules) for root, pods in gathered.values()
    ]
    return Snapshot(
        now=now,
        period=reading.period,
        scrape_interval_seconds=reading.scrape_interval_seconds,
        workloads=tuple(sorted(workloads, key=lambda one: one.root.order)),
        allocated_gpus=sum(pod.record.gpus for pod in attribution.pods),
        breakers=tuple(sorted(breakers, key=lambda one: (one.name, one.message))),
        unattributed=tuple(str(one.device) for one in attribution.loose),
        loose=attribution.loose,
    )


def _gather(
    view: ClusterView, pods: Iterable[GpuPod], rules: Rules
) -> dict[RootRef, tuple[Root, tuple[GpuPod, ...]]]:
    """Group pods under their roots, and add those that have none but are remembered or paused."""
    found: dict[RootRef, tuple[Root, tuple[GpuPod, ...]]] = {}
    for pod in pods:
        root = root_of(
            pod.record,
            view.owners,
            missing_kinds=view.missing_kinds,
            custom=rules.custom_kinds,
        )
        _, others = found.get(root.ref, (root, ()))
        found[root.ref] = (root, (*others, pod))
    for uid, kept in view.books.items():
        owner = view.owners.get(uid)
        if owner is None or owner.root in found or kept.book.phase is Phase.WATCHING:
            continue
        found[owner.root] = (Root(owner.root, owner=owner), ())
    for owner in view.owners.values():
        if owner.owner is None and owner.root not in found and pause_on(owner) is not None:
            found[owner.root] = (Root(owner.root, owner=owner), ())
    return found


def _workload(
    view: ClusterView, root: Root, *, pods: tuple[GpuPod, ...], now: Timestamp, rules: Rules
) -> Workload:
    kept = view.books.get(root.ref.uid) if root.ref.uid else None
    if kept is None or not _same(kept, root.ref):
        kept = Bookkeeping(root=root.ref)
    around = Surroundings(
        root=root,
        pods=tuple(pod.record for pod in pods),
        namespace=view.namespaces.get(root.ref.namespace),
    )
    obstacle = obstacle_of(root, rules)
    if obstacle is None and not is_selected(root.ref, pods, rules):
        obstacle = Reason.NOT_SELECTED
    return Workload(
        root=root.ref,
        pods=pods,
        owner=root.owner,
        lever=root.ref.kind if obstacle is None else None,
        obstacle=obstacle,
        warn_only=root.ref.kind in rules.warn_only_kinds,
        vetoes=vetoes(around, kept, now=now, rules=rules),
        intent=kept.intent,
        book=kept.book,
        audience=audience_of(around, rules.directory),
    )


def _same(kept: Bookkeeping, root: RootRef) -> bool:
    """Whether a GPUWorkload is about this very root and not about one with a borrowed uid."""
    told = kept.root
    return (told.kind, told.namespace, told.name) == (root.kind, root.namespace, root.name)

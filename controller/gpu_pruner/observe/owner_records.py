"""From owners and governors as sent to the records of `model.workload`.

Cuts an object down to what deciding needs, as `observe.cluster_records` does for the rest of the
cluster, and judges as little. `observe.cluster` calls it for every object that a reflector hears
of.
"""

from __future__ import annotations

from sys import intern

from gpu_pruner.kube.custom import CustomKind, CustomOwner
from gpu_pruner.kube.governing import governed
from gpu_pruner.kube.halting import (
    SIZED,
    can_be_stopped,
    halted_by,
    is_halted,
    is_paused_by_us,
    names_record,
    replicas,
)
from gpu_pruner.kube.resources import (
    DEPLOYMENTS,
    LEADERWORKERSETS,
    NOTEBOOKS,
    PODS,
    REPLICASETS,
    ROLLOUTS,
    STATEFULSETS,
    Resource,
)
from gpu_pruner.kube.wire import Meta, Owner, OwnerSpec, OwnerStatus, PodTemplate
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.workload import GovernorRecord, OwnerObject, PodRecord, RootRef
from gpu_pruner.observe.cluster_records import concerning_us, owner_ref
from gpu_pruner.observe.gpu_requests import gpu_requests
from gpu_pruner.resolve.pauses import decode

_ROLLED_OUT: frozenset[Resource] = frozenset(
    {DEPLOYMENTS, STATEFULSETS, LEADERWORKERSETS, ROLLOUTS}
)
"""Kinds with ``status.updatedReplicas``."""
_COUNTED: frozenset[Resource] = SIZED | {NOTEBOOKS}
"""Kinds with ``status.readyReplicas``."""
_OBSERVING: frozenset[Resource] = frozenset({REPLICASETS, DEPLOYMENTS, STATEFULSETS, ROLLOUTS})
"""Kinds with ``status.observedGeneration`` that their controller never leaves out."""


def owner_object(owner: Owner, resource: Resource) -> OwnerObject:
    """Return an object that can own pods.

    ``spec.replicas`` is 1 where it is absent, and counts in a present ``status`` are 0 where they
    are absent: both by the API's own definition. Without a ``status`` nothing was counted.
    """
    meta, spec, status = owner.metadata, owner.spec, owner.status
    sized = resource in SIZED
    return OwnerObject(
        root=_root(meta, resource),
        owner=owner_ref(meta),
        resource_version=meta.resource_version,
        generation=meta.generation or 0,
        observed_generation=_observed_generation(status, resource),
        desired=replicas(owner) if sized and spec is not None else None,
        observed=(status.replicas or 0) if status and sized else None,
        ready=(status.ready_replicas or 0) if status and resource in _COUNTED else None,
        updated=(status.updated_replicas or 0) if status and resource in _ROLLED_OUT else None,
        pods_per_replica=_pods_per_replica(spec, resource),
        halted=is_halted(owner, resource),
        sized_by=intern(halted_by(owner, resource)),
        paused_by_us=is_paused_by_us(owner, resource),
        deletes_volumes=_deletes_volumes(spec),
        unstoppable=not can_be_stopped(owner, resource),
        labels=concerning_us(meta.labels),
        annotations=concerning_us(meta.annotations),
    )


def custom_owner(owner: CustomOwner, kind: CustomKind) -> OwnerObject:
    """Return an object of a kind that only the settings know."""
    meta = owner.metadata
    return OwnerObject(
        root=_root(meta, kind.resource),
        owner=owner_ref(meta),
        resource_version=meta.resource_version,
        generation=meta.generation or 0,
        halted=kind.is_halted(owner),
        paused_by_us=_is_paused_by_us(owner, kind),
        is_ready=kind.is_ready(owner),
        labels=concerning_us(meta.labels),
        annotations=concerning_us(meta.annotations),
    )


def _is_paused_by_us(owner: CustomOwner, kind: CustomKind) -> bool:
    """Return whether an object of the settings is under a pause that nobody else has touched."""
    record = decode((owner.metadata.annotations or {}).get(PAUSED))
    return (
        record is not None
        and kind.is_halted(owner)
        and kind.is_unchanged_since(owner, record.generation)
        and owner.metadata.written_by_us(names_record)
    )


def leader(pod: PodRecord) -> OwnerObject:
    """Return the leader of a LeaderWorkerSet's group as the owner of its workers."""
    return OwnerObject(
        root=RootRef(PODS.kind, pod.namespace, pod.name, PODS.group, pod.uid), owner=pod.owner
    )


def governor(owner: Owner, resource: Resource) -> GovernorRecord | None:
    """Return what owns the size of another object; None where it governs none."""
    meta, target = owner.metadata, governed(owner, resource)
    if target is None:
        return None
    return GovernorRecord(
        ref=_root(meta, resource),
        target=target,
        halted=is_halted(owner, resource),
        switched_by=intern(halted_by(owner, resource)),
        paused_by_us=is_paused_by_us(owner, resource),
        record=(meta.annotations or {}).get(PAUSED),
    )


def _pods_per_replica(spec: OwnerSpec | None, resource: Resource) -> int | None:
    """Return how many GPU pods one replica has.

    Of a LeaderWorkerSet's group, the leader and the workers may be of two kinds; its size is 1
    where it is absent.
    """
    if resource is not LEADERWORKERSETS:
        return 1
    groups = spec.leader_worker_template if spec else None
    if groups is None or groups.worker_template is None:
        return None
    workers = _has_gpus(groups.worker_template) * ((groups.size or 1) - 1)
    return workers + _has_gpus(groups.leader_template or groups.worker_template)


def _has_gpus(template: PodTemplate) -> bool:
    return template.spec is not None and bool(gpu_requests(template.spec).counts)


def _deletes_volumes(spec: OwnerSpec | None) -> bool:
    """Return whether scaling down would delete volume claims.

    A LeaderWorkerSet's workers are StatefulSets of their own, which are deleted with their leader.
    """
    if spec is None:
        return False
    own = spec.persistent_volume_claim_retention_policy
    groups = spec.leader_worker_template
    group = groups.persistent_volume_claim_retention_policy if groups else None
    scaled = (own and own.when_scaled) or (group and group.when_scaled)
    return scaled == "Delete" or (group is not None and group.when_deleted == "Delete")


def _observed_generation(status: OwnerStatus | None, resource: Resource) -> int | None:
    """Return the generation that the kind's controller has seen; 0 where it has seen none.

    Most custom kinds do not tell, so that nothing may be concluded from its absence there.
    """
    if resource not in _OBSERVING:
        return None
    seen = status.observed_generation if status else None
    if isinstance(seen, str):
        return int(seen) if seen.isdecimal() else 0
    return seen or 0


def _root(meta: Meta, resource: Resource) -> RootRef:
    return RootRef(resource.kind, intern(meta.namespace), meta.name, resource.group, meta.uid)

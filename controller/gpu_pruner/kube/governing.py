"""Whom a governor governs: objects that own the size of a root without owning the root.

Answers, for a ScaledObject or a Kueue Workload, which object it is about. Asks nobody.
`observe.cluster_records` uses it to join what the watches bring, `act` to find the lever object.
"""

from __future__ import annotations

from gpu_pruner.kube.halting import SUSPENDABLE
from gpu_pruner.kube.resources import KUEUE_WORKLOADS, SCALEDOBJECTS, Resource, group_of
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.workload import RootRef

_ADMITTED = {(one.group, one.kind) for one in SUSPENDABLE}


def governed(owner: Owner, resource: Resource) -> RootRef | None:
    """Return what an object governs; None where it governs nothing that can be told.

    A ScaledObject names its target; by KEDA's own default that is a Deployment of ``apps/v1``. A
    Kueue Workload is owned by the job that it admits: only this reference has a uid. One that
    admits pods or a StatefulSet governs nothing: Kueue makes it anew, and active
    (kubernetes-sigs/kueue#3851).
    """
    meta = owner.metadata
    if resource is SCALEDOBJECTS:
        target = owner.spec.scale_target_ref if owner.spec else None
        if target is None or not target.name:
            return None
        group = group_of(target.api_version or "apps/v1")
        return RootRef(target.kind or "Deployment", meta.namespace, target.name, group)
    above = meta.controller if resource is KUEUE_WORKLOADS else None
    if above is None or (group_of(above.api_version), above.kind) not in _ADMITTED:
        return None
    return RootRef(above.kind, meta.namespace, above.name, group_of(above.api_version), above.uid)


def governs(target: RootRef, root: RootRef) -> bool:
    """Return whether a target that a governor names is this root."""
    same = (target.group, target.kind, target.namespace, target.name) == (
        root.group,
        root.kind,
        root.namespace,
        root.name,
    )
    return same and target.uid in {"", root.uid}

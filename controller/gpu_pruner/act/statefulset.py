"""Pausing a StatefulSet: `spec.replicas`, unless that would delete data.

Called through `act.levers`.
"""

from __future__ import annotations

from gpu_pruner.act.replicas import ReplicaLever
from gpu_pruner.kube.resources import STATEFULSETS
from gpu_pruner.kube.wire import Owner


def deletes_volumes(live: Owner) -> str:
    """Return a sentence where scaling down would delete volume claims, else nothing.

    Anything but ``Retain`` refuses, so that a policy of a later Kubernetes is not misread.
    """
    policy = live.spec.persistent_volume_claim_retention_policy if live.spec else None
    if policy is None or policy.when_scaled in {None, "Retain"}:
        return ""
    return (
        "scaling down would delete its volume claims "
        f"(persistentVolumeClaimRetentionPolicy.whenScaled: {policy.when_scaled[:20]})"
    )


STATEFUL_SET = ReplicaLever(STATEFULSETS, guard=deletes_volumes)

"""Pausing a StatefulSet: `spec.replicas`, unless that would delete data.

Called through `act.levers`.
"""

from __future__ import annotations

from gpu_pruner.act.replicas import ReplicaLever, deletes_claims
from gpu_pruner.kube.resources import STATEFULSETS
from gpu_pruner.kube.wire import Owner


def deletes_volumes(live: Owner) -> str:
    """Return a sentence where scaling down would delete volume claims, else nothing."""
    policy = live.spec.persistent_volume_claim_retention_policy if live.spec else None
    return deletes_claims(policy, when="whenScaled")


STATEFUL_SET = ReplicaLever(STATEFULSETS, guard=deletes_volumes)

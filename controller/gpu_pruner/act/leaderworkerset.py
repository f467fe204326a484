"""Pausing a LeaderWorkerSet: `spec.replicas`, the number of its groups.

The leaders are one StatefulSet, and the workers of each group are another, which goes with its
leader: so that both halves of its volume claim policy can delete claims (source:
kubernetes-sigs/lws, ``pod_controller.go``; kubernetes-sigs/lws#694). Called through `act.levers`.
"""

from __future__ import annotations

from gpu_pruner.act.replicas import ReplicaLever, deletes_claims
from gpu_pruner.kube.resources import LEADERWORKERSETS
from gpu_pruner.kube.wire import Owner


def deletes_volumes(live: Owner) -> str:
    """Return a sentence where scaling down would delete volume claims, else nothing."""
    groups = live.spec.leader_worker_template if live.spec else None
    policy = groups.persistent_volume_claim_retention_policy if groups else None
    return deletes_claims(policy, when="whenScaled") or deletes_claims(policy, when="whenDeleted")


LEADER_WORKER_SET = ReplicaLever(LEADERWORKERSETS, guard=deletes_volumes)

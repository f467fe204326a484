"""Pausing a ReplicaSet that nobody owns: `spec.replicas`. Called through `act.levers`.

One that a Deployment or Rollout owns is refused by `act.checks`, as is every root with an owner.
"""

from __future__ import annotations

from gpu_pruner.act.replicas import ReplicaLever
from gpu_pruner.kube.resources import REPLICASETS

REPLICA_SET = ReplicaLever(REPLICASETS)

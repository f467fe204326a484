"""Pausing an Argo Rollout: `spec.replicas`. Called through `act.levers`.

A Rollout with a ``workloadRef`` takes only the pod template from a Deployment; the size is its own
(source: argoproj/argo-rollouts, ``RolloutSpec``).
"""

from __future__ import annotations

from gpu_pruner.act.replicas import ReplicaLever
from gpu_pruner.kube.resources import ROLLOUTS

ROLLOUT = ReplicaLever(ROLLOUTS)

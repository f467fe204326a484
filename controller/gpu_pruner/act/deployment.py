"""Pausing a Deployment: `spec.replicas`. Called through `act.levers`."""

from __future__ import annotations

from gpu_pruner.act.replicas import ReplicaLever
from gpu_pruner.kube.resources import DEPLOYMENTS

DEPLOYMENT = ReplicaLever(DEPLOYMENTS)
"""An HPA switches itself off at zero replicas and cannot start from there: restoring writes the
count itself (kubernetes/kubernetes#73614)."""

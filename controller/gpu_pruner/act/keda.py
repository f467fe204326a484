"""Pausing what KEDA scales: `autoscaling.keda.sh/paused-replicas` on the ScaledObject.

KEDA would put back a size that somebody else sets. The annotation makes it hold its target at zero;
what somebody had held it at before comes back with the restore (kedacore/keda#5165, #4733). Called
through `act.governors`.
"""

from __future__ import annotations

from gpu_pruner.act.stopping import StopLever
from gpu_pruner.kube.resources import SCALEDOBJECTS
from gpu_pruner.model.annotations import KEDA_PAUSED_REPLICAS

SCALED_OBJECT = StopLever(SCALEDOBJECTS, KEDA_PAUSED_REPLICAS, "0")

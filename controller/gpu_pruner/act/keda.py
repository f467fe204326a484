"""Pausing what KEDA scales: `autoscaling.keda.sh/paused-replicas` on the ScaledObject.

KEDA would put back a size that somebody else sets. The annotation makes it hold its target at zero;
what somebody had held it at before comes back with the restore (kedacore/keda#5165, #4733). Called
through `act.governors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override

from gpu_pruner.act.lever import OURS, STOPPED_BY_OTHERS, Lever
from gpu_pruner.act.live import annotation
from gpu_pruner.act.patches import patch_of
from gpu_pruner.act.pause_record import encode
from gpu_pruner.kube.halting import halted_by, is_halted
from gpu_pruner.kube.resources import SCALEDOBJECTS
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import KEDA_PAUSED_REPLICAS, PAUSED
from gpu_pruner.model.book import PauseRecord


@dataclass(frozen=True, slots=True)
class ScaledObjectLever(Lever):
    """Sets the annotation to 0, and back to what it was."""

    @override
    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        return STOPPED_BY_OTHERS if self.is_paused(live) else ""

    @override
    def former(self, live: Owner) -> Mapping[str, str]:
        """Return the size that somebody else holds the target at, if so."""
        held_at = annotation(live, KEDA_PAUSED_REPLICAS)
        return {} if held_at is None else {KEDA_PAUSED_REPLICAS: held_at}

    @override
    def is_paused(self, live: Owner) -> bool:
        """Return whether KEDA is told to hold its target at zero."""
        return is_halted(live, self.resource)

    @override
    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether nobody else is known to have set the annotation since."""
        del record
        return halted_by(live, self.resource) in OURS

    @override
    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that holds the target at zero and remembers what held it before."""
        return patch_of(live, annotations={KEDA_PAUSED_REPLICAS: "0", PAUSED: encode(record)})

    @override
    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that gives the target back as it was, and ends the record."""
        before = record.former.get(KEDA_PAUSED_REPLICAS)
        return patch_of(live, annotations={KEDA_PAUSED_REPLICAS: before, PAUSED: None})


SCALED_OBJECT = ScaledObjectLever(SCALEDOBJECTS)

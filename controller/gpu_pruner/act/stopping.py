"""Pausing by an annotation that a kind's own controller obeys, such as `serving.kserve.io/stop`.

KServe's controllers then delete what they made (Deployments, Knative Services, LeaderWorkerSets),
and make it anew when the annotation is gone; KEDA holds its target at the size that it is told.
Called through `act.levers` and `act.governors`; the modules of these kinds are made of it.
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
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import KSERVE_STOP, PAUSED
from gpu_pruner.model.book import PauseRecord


@dataclass(frozen=True, slots=True)
class StopLever(Lever):
    """Sets the annotation, and sets it back to what it was."""

    name: str = KSERVE_STOP
    """The annotation."""
    stopped: str = "true"
    """Its value that means: no pods."""

    @override
    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        return STOPPED_BY_OTHERS if self.is_paused(live) else ""

    @override
    def former(self, live: Owner) -> Mapping[str, str]:
        """Return the value that somebody else gave the annotation, if so."""
        value = annotation(live, self.name)
        return {} if value is None else {self.name: value}

    @override
    def is_paused(self, live: Owner) -> bool:
        """Return whether the annotation says: no pods."""
        return is_halted(live, self.resource)

    @override
    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether nobody else is known to have set the annotation since."""
        del record
        return halted_by(live, self.resource) in OURS

    @override
    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that stops it and remembers what was there."""
        return patch_of(live, annotations={self.name: self.stopped, PAUSED: encode(record)})

    @override
    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that gives it back as it was, and ends the record."""
        before = record.former.get(self.name)
        return patch_of(live, annotations={self.name: before, PAUSED: None})

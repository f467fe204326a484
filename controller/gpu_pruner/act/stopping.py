"""KServe's own lever: the annotation `serving.kserve.io/stop`.

Its controllers then delete what they made (Deployments, Knative Services, LeaderWorkerSets), and
make it anew when the annotation is gone. Called through `act.levers`; the modules of the two kinds
are made of it.
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
    """Sets the stop annotation, and sets it back to what it was."""

    @override
    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        return STOPPED_BY_OTHERS if self.is_paused(live) else ""

    @override
    def former(self, live: Owner) -> Mapping[str, str]:
        """Return the annotation's value, where it says that nothing is stopped."""
        value = annotation(live, KSERVE_STOP)
        return {} if value is None else {KSERVE_STOP: value}

    @override
    def is_paused(self, live: Owner) -> bool:
        """Return whether the service is told to have no pods."""
        return is_halted(live, self.resource)

    @override
    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether nobody else is known to have set the annotation since."""
        del record
        return halted_by(live, self.resource) in OURS

    @override
    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that stops the service and remembers why."""
        return patch_of(live, annotations={KSERVE_STOP: "true", PAUSED: encode(record)})

    @override
    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that starts the service and ends the record."""
        before = record.former.get(KSERVE_STOP)
        return patch_of(live, annotations={KSERVE_STOP: before, PAUSED: None})

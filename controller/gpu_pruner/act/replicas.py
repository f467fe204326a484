"""Pausing by size: every lever whose root has ``spec.replicas``.

The patch goes to the main resource, not to ``/scale``, because the pause record travels in the
same patch. Called through `act.levers`; `act.deployment` and `act.statefulset` are made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpu_pruner.act.live import replicas
from gpu_pruner.act.patches import patch_of
from gpu_pruner.act.pause_record import encode
from gpu_pruner.kube.resources import Resource
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import PauseRecord

FIELD_MANAGER = "gpu-pruner"
"""What the API server calls us in ``managedFields``: the name in our User-Agent."""


def unguarded(live: Owner) -> str:
    """Return no sentence: scaling this kind down loses nothing."""
    del live
    return ""


@dataclass(frozen=True, slots=True)
class ReplicaLever:
    """Sets ``spec.replicas`` to 0, and back to what it was."""

    resource: Resource
    guard: Callable[[Owner], str] = unguarded
    """A kind's own reason against scaling down, as a sentence; empty where there is none."""

    @property
    def kind(self) -> str:
        """Return the kind of the lever object."""
        return self.resource.kind

    @property
    def group(self) -> str:
        """Return the API group of the lever object."""
        return self.resource.group

    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        if replicas(live) == 0:
            return "it is already at zero replicas, and not by us"
        return self.guard(live)

    def size(self, live: Owner) -> int | None:
        """Return the size that a restore has to give back."""
        return replicas(live)

    def is_paused(self, live: Owner) -> bool:
        """Return whether the object asks for no pods."""
        return replicas(live) == 0

    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether nobody else is known to have set the size since the record was written."""
        del record
        return live.metadata.sized_by in {"", FIELD_MANAGER}

    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that takes the size and remembers it."""
        return patch_of(live, annotations={PAUSED: encode(record)}, replicas=0)

    def can_restore(self, record: PauseRecord) -> bool:
        """Return whether the record tells a size to go back to."""
        return record.replicas is not None and record.replicas > 0

    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that gives back exactly the former size and ends the record."""
        return patch_of(live, annotations={PAUSED: None}, replicas=record.replicas)

    def is_restored(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether the object asks for its former size again."""
        return replicas(live) == record.replicas

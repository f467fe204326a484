"""Pausing a Kubeflow Notebook: the platform's own stop annotation.

The notebook controller derives the StatefulSet's size from the annotation, so scaling the
StatefulSet would be reverted. Called through `act.levers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_pruner.act.live import annotation
from gpu_pruner.act.patches import patch_of
from gpu_pruner.act.pause_record import encode
from gpu_pruner.kube.resources import NOTEBOOKS, Resource
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import NOTEBOOK_LOCK, NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.units import rfc3339


@dataclass(frozen=True, slots=True)
class NotebookLever:
    """Sets `kubeflow-resource-stopped`, and removes it."""

    resource: Resource = NOTEBOOKS

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
        value = annotation(live, NOTEBOOK_STOPPED)
        if value is None:
            return ""
        if value == NOTEBOOK_LOCK:
            return "Open Data Hub holds its start-up lock on it; it is still being started"
        return "it is already stopped, and not by us"

    def size(self, live: Owner) -> int | None:
        """Return None: a Notebook is on or off."""
        del live
        return None

    def is_paused(self, live: Owner) -> bool:
        """Return whether the stop annotation is set, and is a stop."""
        return annotation(live, NOTEBOOK_STOPPED) not in {None, NOTEBOOK_LOCK}

    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether the stop annotation is the very one that was written with the record."""
        return annotation(live, NOTEBOOK_STOPPED) == rfc3339(record.at)

    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that stops the notebook and remembers why."""
        stop = {NOTEBOOK_STOPPED: rfc3339(record.at), PAUSED: encode(record)}
        return patch_of(live, annotations=stop)

    def can_restore(self, record: PauseRecord) -> bool:
        """Return True: the record of a Notebook needs no size."""
        del record
        return True

    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that starts the notebook and ends the record."""
        del record
        return patch_of(live, annotations={NOTEBOOK_STOPPED: None, PAUSED: None})

    def is_restored(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether the stop annotation is gone."""
        del record
        return not self.is_paused(live)


NOTEBOOK = NotebookLever()

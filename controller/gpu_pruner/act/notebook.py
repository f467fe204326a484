"""Pausing a Kubeflow Notebook: the platform's own stop annotation.

The notebook controller derives the StatefulSet's size from the annotation, so scaling the
StatefulSet would be reverted. Called through `act.levers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override

from gpu_pruner.act.lever import STOPPED_BY_OTHERS, Lever
from gpu_pruner.act.live import annotation
from gpu_pruner.act.patches import patch_of
from gpu_pruner.act.pause_record import encode
from gpu_pruner.kube.halting import is_halted
from gpu_pruner.kube.resources import NOTEBOOKS
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import NOTEBOOK_LOCK, NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.units import rfc3339


@dataclass(frozen=True, slots=True)
class NotebookLever(Lever):
    """Sets `kubeflow-resource-stopped`, and removes it."""

    @override
    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        value = annotation(live, NOTEBOOK_STOPPED)
        if value is None:
            return ""
        if value == NOTEBOOK_LOCK:
            return "Open Data Hub holds its start-up lock on it; it is still being started"
        return STOPPED_BY_OTHERS

    @override
    def is_paused(self, live: Owner) -> bool:
        """Return whether the stop annotation is set, and is a stop."""
        return is_halted(live, self.resource)

    @override
    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether the stop annotation is the very one that was written with the record."""
        return annotation(live, NOTEBOOK_STOPPED) == rfc3339(record.at)

    @override
    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that stops the notebook and remembers why."""
        stop = {NOTEBOOK_STOPPED: rfc3339(record.at), PAUSED: encode(record)}
        return patch_of(live, annotations=stop)

    @override
    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that starts the notebook and ends the record."""
        del record
        return patch_of(live, annotations={NOTEBOOK_STOPPED: None, PAUSED: None})


NOTEBOOK = NotebookLever(NOTEBOOKS)

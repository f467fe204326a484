"""Pausing by a switch: every lever whose object has one boolean in its ``spec`` that stops it.

Called through `act.levers`; the modules of the single kinds are made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override

from gpu_pruner.act.lever import OURS, STOPPED_BY_OTHERS, Lever
from gpu_pruner.act.patches import patch_of
from gpu_pruner.act.pause_record import encode
from gpu_pruner.kube.halting import halted_by, is_halted
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import PauseRecord


@dataclass(frozen=True, slots=True)
class SwitchLever(Lever):
    """Sets one boolean, and sets it back."""

    path: tuple[str, ...]
    """Where it is, below ``spec``."""
    stopped: bool = True
    """Its value that means: no pods."""

    @override
    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        return STOPPED_BY_OTHERS if self.is_paused(live) else ""

    @override
    def is_paused(self, live: Owner) -> bool:
        """Return whether the switch says: no pods."""
        return is_halted(live, self.resource)

    @override
    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether nobody else is known to have switched since the record was written."""
        del record
        return halted_by(live, self.resource) in OURS

    @override
    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that stops it and remembers that it ran."""
        return patch_of(live, annotations={PAUSED: encode(record)}, spec=self._set(self.stopped))

    @override
    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that lets it run again and ends the record."""
        del record
        return patch_of(live, annotations={PAUSED: None}, spec=self._set(not self.stopped))

    def _set(self, value: object) -> Mapping[str, object]:
        *above, last = self.path
        body: dict[str, object] = {last: value}
        for key in reversed(above):
            body = {key: body}
        return body

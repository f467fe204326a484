"""Pausing a kind that only the settings know: by its size, or by a pair of patches.

Called through `act.levers`. What the patches may change is checked where the settings are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from gpu_pruner.act.lever import STOPPED_BY_OTHERS, Lever
from gpu_pruner.act.patches import patch_of
from gpu_pruner.act.pause_record import encode
from gpu_pruner.kube.custom import CustomKind, CustomOwner
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.settings.expressions import Path
from gpu_pruner.settings.levers import CustomLever


@dataclass(frozen=True, slots=True)
class CustomKindLever(Lever):
    """Does what the settings say."""

    decode: ClassVar[type[Owner]] = CustomOwner

    custom: CustomKind

    @override
    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        if self.is_paused(live):
            return STOPPED_BY_OTHERS
        path = self.custom.lever.replicas
        if path is not None and not self.custom.size(live):
            return f"it has no size at {path}"
        return ""

    @override
    def size(self, live: Owner) -> int | None:
        """Return the size that a restore has to give back; None for a pair of patches."""
        return self.custom.size(live)

    @override
    def is_paused(self, live: Owner) -> bool:
        """Return whether the desired state says: no pods."""
        return self.custom.is_halted(live)

    @override
    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether nobody has changed what is wanted since the record was written."""
        return self.custom.is_unchanged_since(live, record.generation)

    @override
    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that pauses and carries the record."""
        return self._patch(live, self.custom.lever.pause, size=0, record=encode(record))

    @override
    def can_restore(self, record: PauseRecord) -> bool:
        """Return whether the record tells a size to go back to, where there is one."""
        return self.custom.lever.replicas is None or bool(record.replicas)

    @override
    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that gives back what was taken, and ends the record."""
        return self._patch(live, self.custom.lever.restore, size=record.replicas, record=None)

    def _patch(
        self,
        live: Owner,
        wanted: Mapping[str, object] | None,
        *,
        size: int | None,
        record: str | None,
    ) -> Mapping[str, object]:
        """Return a patch with the record and either the size or what the settings say."""
        path = self.custom.lever.replicas
        body = _at(Path.parse(path).keys, size) if path is not None else wanted or {}
        meta, spec = body.get("metadata"), body.get("spec")
        notes = meta.get("annotations") if isinstance(meta, Mapping) else None
        others = notes if isinstance(notes, Mapping) else {}
        return patch_of(
            live,
            annotations={**others, PAUSED: record},
            spec=spec if isinstance(spec, Mapping) else None,
        )


def _at(keys: tuple[str, ...], value: object) -> Mapping[str, object]:
    *above, last = keys
    body: dict[str, object] = {last: value}
    for key in reversed(above):
        body = {key: body}
    return body


def custom_lever(settings: CustomLever) -> CustomKindLever:
    """Return the lever that the settings describe."""
    kind = CustomKind(settings)
    return CustomKindLever(kind.resource, kind)

"""Pausing by size: every lever whose root has ``spec.replicas``.

The patch goes to the main resource, not to ``/scale``, because the pause record travels in the
same patch. Called through `act.levers`; the modules of the single kinds are made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from typing_extensions import override

from gpu_pruner.act.lever import OURS, Lever
from gpu_pruner.act.patches import patch_of
from gpu_pruner.act.pause_record import encode
from gpu_pruner.kube.halting import replicas
from gpu_pruner.kube.wire import ClaimRetention, Owner
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import PauseRecord


def unguarded(live: Owner) -> str:
    """Return no sentence: scaling this kind down loses nothing."""
    del live
    return ""


def deletes_claims(policy: ClaimRetention | None, *, when: str) -> str:
    """Return a sentence where scaling down would delete volume claims, else nothing.

    Anything but ``Retain`` refuses, so that a policy of a later Kubernetes is not misread.

    Args:
        policy: of the object that makes the claims.
        when: the field that decides, ``whenScaled`` or ``whenDeleted``.
    """
    if policy is None:
        return ""
    word = policy.when_scaled if when == "whenScaled" else policy.when_deleted
    if word in {None, "Retain"}:
        return ""
    return (
        "scaling down would delete its volume claims "
        f"(persistentVolumeClaimRetentionPolicy.{when}: {(word or '')[:20]})"
    )


@dataclass(frozen=True, slots=True)
class ReplicaLever(Lever):
    """Sets ``spec.replicas`` to 0, and back to what it was."""

    guard: Callable[[Owner], str] = unguarded
    """A kind's own reason against scaling down, as a sentence; empty where there is none."""

    @override
    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        if replicas(live) == 0:
            return "it is already at zero replicas, and not by us"
        return self.guard(live)

    @override
    def size(self, live: Owner) -> int | None:
        """Return the size that a restore has to give back."""
        return replicas(live)

    @override
    def is_paused(self, live: Owner) -> bool:
        """Return whether the object asks for no pods."""
        return replicas(live) == 0

    @override
    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether nobody else is known to have set the size since the record was written."""
        del record
        return live.metadata.sized_by in OURS

    @override
    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that takes the size and remembers it."""
        return patch_of(live, annotations={PAUSED: encode(record)}, spec={"replicas": 0})

    @override
    def can_restore(self, record: PauseRecord) -> bool:
        """Return whether the record tells a size to go back to."""
        return record.replicas is not None and record.replicas > 0

    @override
    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that gives back exactly the former size and ends the record."""
        return patch_of(live, annotations={PAUSED: None}, spec={"replicas": record.replicas})

    @override
    def is_restored(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether the object asks for its former size again."""
        return replicas(live) == record.replicas

"""The levers that there are, and the one question to ask of this list: which one fits a root.

A lever knows how one kind is paused and given back, as pure functions from the live object to a
patch. It never reads, writes or decides, and it never waits: success is observed state in a later
cycle. Called by `act.actor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from gpu_pruner.act.deployment import DEPLOYMENT
from gpu_pruner.act.notebook import NOTEBOOK
from gpu_pruner.act.statefulset import STATEFUL_SET
from gpu_pruner.kube.resources import Resource
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.book import PauseRecord


class Lever(Protocol):
    """How one kind is paused and given back."""

    @property
    def kind(self) -> str:
        """Return the kind of the lever object."""
        ...

    @property
    def group(self) -> str:
        """Return the API group of the lever object."""
        ...

    @property
    def resource(self) -> Resource:
        """Return where the lever object is read and patched."""
        ...

    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        ...

    def size(self, live: Owner) -> int | None:
        """Return the size that a restore has to give back; None for kinds without one."""
        ...

    def is_paused(self, live: Owner) -> bool:
        """Return whether the desired state says: no pods."""
        ...

    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether the pause that stands now is the one that the record tells of.

        Somebody may have restarted the object after our pause and stopped it again: its former
        size is then another one. Asked of paused objects only.
        """
        ...

    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one merge-patch that pauses and carries the record."""
        ...

    def can_restore(self, record: PauseRecord) -> bool:
        """Return whether the record holds what a restore of this kind needs."""
        ...

    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one merge-patch that gives back what the record says and removes it."""
        ...

    def is_restored(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether the desired state is what the record says again."""
        ...


LEVERS: tuple[Lever, ...] = (DEPLOYMENT, STATEFUL_SET, NOTEBOOK)
"""Every lever, one per kind."""

LEVER_KINDS: frozenset[str] = frozenset(lever.kind for lever in LEVERS)
"""The kinds that can be paused."""


def lever_for(kind: str, group: str) -> Lever | None:
    """Return the lever of a root, by kind *and* group, or None where there is none.

    Args:
        kind: for example ``Deployment``.
        group: API group, for example ``apps``. Another group's Deployment is another thing.
    """
    return next((one for one in LEVERS if (one.kind, one.group) == (kind, group)), None)

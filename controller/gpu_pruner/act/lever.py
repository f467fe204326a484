"""What a lever is: how one kind is paused and given back.

A lever is pure functions from the live object to a patch. It never reads, writes or decides, and
it never waits: success is observed state in a later cycle. `act.levers` lists those that there
are; `act.actor` uses them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gpu_pruner.act.live import LiveOwner
from gpu_pruner.kube.managed import FIELD_MANAGER
from gpu_pruner.kube.resources import Resource
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.book import PauseRecord

OURS = frozenset({"", FIELD_MANAGER})
"""Writers who are not known to be somebody else."""

STOPPED_BY_OTHERS = "it is already stopped, and not by us"


@dataclass(frozen=True, slots=True)
class Lever(ABC):
    """How one kind is paused and given back."""

    decode: ClassVar[type[Owner]] = LiveOwner
    """As what the object is read."""

    resource: Resource
    """Where the lever object is read and patched."""

    @property
    def kind(self) -> str:
        """Return the kind of the lever object."""
        return self.resource.kind

    @property
    def group(self) -> str:
        """Return the API group of the lever object."""
        return self.resource.group

    @abstractmethod
    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""

    def size(self, live: Owner) -> int | None:
        """Return the size that a restore has to give back; None for kinds without one."""
        del live
        return None

    def former(self, live: Owner) -> Mapping[str, str]:
        """Return the annotations that a pause replaces, with their values."""
        del live
        return {}

    @abstractmethod
    def is_paused(self, live: Owner) -> bool:
        """Return whether the desired state says: no pods."""

    @abstractmethod
    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether the pause that stands now is the one that the record tells of.

        Somebody may have restarted the object after our pause and stopped it again: its former
        state is then another one. Asked of paused objects only.
        """

    @abstractmethod
    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one merge-patch that pauses and carries the record."""

    def can_restore(self, record: PauseRecord) -> bool:
        """Return whether the record holds what a restore of this kind needs."""
        del record
        return True

    @abstractmethod
    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one merge-patch that gives back what the record says and removes it."""

    def is_restored(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether the desired state is what the record says again."""
        del record
        return not self.is_paused(live)

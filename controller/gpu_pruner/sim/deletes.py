"""The rules of deleting: at once, or by marking what a kubelet or a finalizer must let go.

Imitates preconditions (409), grace periods of pods, finalizers (the foreground one among them), the
three ways to treat dependents, and CRDs that take their objects along. Called by `writes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.sim.failures import conflict
from gpu_pruner.sim.resources import CRDS, PODS, Catalogue, resources_of_crd
from gpu_pruner.sim.store import Item, Store
from gpu_pruner.sim.tree import JsonObject, child, mapping, strings, text, with_value, without

FOREGROUND = "foregroundDeletion"
"""The finalizer that the garbage collector removes when the dependents are gone."""


class Dependents(StrEnum):
    """What becomes of the objects that a deleted one owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What a DELETE may ask for."""

    grace_seconds: int | None = None
    uid: str = ""
    version: str = ""
    dependents: Dependents = Dependents.BACKGROUND


class Deletes:
    """Deletes objects as an API server would."""

    def __init__(self, store: Store, catalogue: Catalogue, *, now: Callable[[], Timestamp]) -> None:
        self._store = store
        self._catalogue = catalogue
        self._now = now

    def delete(self, item: Item, options: DeleteOptions, *, dry_run: bool) -> tuple[Item, bool]:
        """Delete an object, or mark it as being deleted.

        Returns:
            Its last state, and whether it is gone (in a dry run: would be).

        Raises:
            ApiFailure: 409 where a precondition fails.
        """
        if options.uid and options.uid != item.uid:
            raise conflict(item.resource, item.name, why="the uid is another object's")
        if options.version and options.version != str(item.version):
            raise conflict(item.resource, item.name, why="the resourceVersion has changed")
        runs = item.resource is PODS and bool(text(item.body, "spec", "nodeName"))
        waits = (runs and options.grace_seconds != 0) or bool(
            child(item.body, "metadata", "finalizers")
        )
        in_foreground = options.dependents is Dependents.FOREGROUND
        if dry_run:
            return item, not (waits or in_foreground)
        if options.dependents is Dependents.ORPHAN:
            self._orphan(item)
        if waits or in_foreground:
            return self._mark(item, options.grace_seconds, in_foreground=in_foreground), False
        if item.resource is CRDS:
            self._retire(item)
        return self._store.remove(item), True

    def _mark(self, item: Item, grace: int | None, *, in_foreground: bool) -> Item:
        metadata = dict(mapping(item.body, "metadata"))
        if in_foreground and FOREGROUND not in strings(metadata, "finalizers"):
            metadata["finalizers"] = [*strings(metadata, "finalizers"), FOREGROUND]
        if "deletionTimestamp" not in metadata:
            usual = 30 if item.resource is PODS else 0
            seconds = usual if grace is None else grace
            metadata["deletionTimestamp"] = rfc3339(self._now() + seconds)
            metadata["deletionGracePeriodSeconds"] = seconds
        return self._store.put(item.resource, with_value(item.body, ("metadata",), to=metadata))

    def _orphan(self, item: Item) -> None:
        for dependent in self._store.dependents(item.uid):
            body = without(dependent.body, ("metadata", "ownerReferences"))
            self._store.put(dependent.resource, body)

    def _retire(self, item: Item) -> None:
        for resource in resources_of_crd(item.body):
            for one in self._store.all(resource):
                self._store.remove(one)
        group: str = text(item.body, "spec", "group")
        self._catalogue.remove_all(group, text(item.body, "spec", "names", "plural"))


def has_let_go(body: JsonObject) -> bool:
    """Tell whether an object is being deleted and nothing holds it back any more."""
    is_marked = bool(text(body, "metadata", "deletionTimestamp"))
    return is_marked and not child(body, "metadata", "finalizers")

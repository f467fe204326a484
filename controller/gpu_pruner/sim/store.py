"""The objects of the simulated cluster, their versions, and who is told of a change.

Imitates etcd behind the API server: one global resourceVersion, a bounded history of changes per
resource (an older version is `Expired`), and no new version for a write that changes nothing.
Everything here is synchronous. It knows no HTTP and no rule of any kind; those are in `writes`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import msgspec

from gpu_pruner.sim.failures import expired
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.tree import JsonObject, elements, text, with_value, without

FIRST_VERSION = 1000
"""Where resource versions start; any number will do, but 0 has a meaning of its own."""


Key: TypeAlias = tuple[str, str]
"""Namespace (empty for kinds without one) and name."""


class ChangeType(StrEnum):
    """Words of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One version of one object."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: int
    body: JsonObject
    """Must not be changed in place."""
    inner: bytes
    """The body as JSON, without ``kind`` and ``apiVersion``."""

    @property
    def key(self) -> Key:
        """Return namespace and name."""
        return (self.namespace, self.name)

    @property
    def full(self) -> bytes:
        """Return the body as JSON with ``kind`` and ``apiVersion`` in front."""
        head = f'{{"kind":"{self.resource.kind}","apiVersion":"{self.resource.api_version}",'
        return head.encode() + self.inner[1:]


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One committed write."""

    type: ChangeType
    item: Item
    """The new version; of a deletion, the last state with the deletion's version."""
    before: Item | None


def key_of(body: JsonObject) -> Key:
    """Return namespace and name of an object."""
    return (text(body, "metadata", "namespace"), text(body, "metadata", "name"))


def _at_version(body: JsonObject, item: Item) -> JsonObject:
    return with_value(body, ("metadata", "resourceVersion"), to=str(item.version))


class Store:
    """All objects, by resource, namespace and name."""

    def __init__(self, *, history: int = 10_000) -> None:
        self.version = FIRST_VERSION
        self._history = history
        self._items: dict[tuple[str, str], dict[Key, Item]] = defaultdict(dict)
        self._changes: dict[tuple[str, str], deque[Change]] = defaultdict(deque)
        self._floors: dict[tuple[str, str], int] = defaultdict(lambda: FIRST_VERSION)
        self._dependents: dict[str, set[tuple[Resource, Key]]] = defaultdict(set)
        self._uids: set[str] = set()
        self._listeners: list[Callable[[Change], None]] = []

    def get(self, resource: Resource, key: Key) -> Item | None:
        """Return the newest version of the object with this namespace and name, or None."""
        return self._items[resource.key].get(key)

    def all(self, resource: Resource, namespace: str = "") -> list[Item]:
        """Return the objects of a resource (of one namespace, if named), ordered by key."""
        found = self._items[resource.key]
        keys = sorted(key for key in found if not namespace or key[0] == namespace)
        return [found[key] for key in keys]

    def exists(self, uid: str) -> bool:
        """Tell whether any object has this uid."""
        return uid in self._uids

    def dependents(self, uid: str) -> list[Item]:
        """Return the objects that name this uid as an owner, ordered by kind and key."""
        found = [self.get(*one) for one in self._dependents.get(uid, ())]
        present = [one for one in found if one is not None]
        return sorted(present, key=lambda one: (one.resource.kind, one.key))

    def put(self, resource: Resource, body: JsonObject) -> Item:
        """Commit a body as the newest version. A body that changes nothing makes no version."""
        before = self.get(resource, key_of(body))
        if before is not None and before.body == _at_version(body, before):
            return before
        item = self._version_of(resource, body)
        self._items[resource.key][item.key] = item
        self._index(before, item)
        self._uids.add(item.uid)
        self._commit(Change(ChangeType.MODIFIED if before else ChangeType.ADDED, item, before))
        return item

    def preview(self, resource: Resource, body: JsonObject) -> Item:
        """Return what `put` would store, and store nothing: a dry run."""
        before = self.get(resource, key_of(body))
        return self._item(resource, body, version=before.version if before else 0)

    def remove(self, item: Item) -> Item:
        """Delete an object for good; the deletion is a version of its own."""
        before = self._items[item.resource.key].pop(item.key)
        last = self._version_of(item.resource, before.body)
        self._index(before, None)
        self._uids.discard(before.uid)
        self._commit(Change(ChangeType.DELETED, last, before))
        return last

    def changes_after(self, resource: Resource, version: int) -> list[Change]:
        """Return the changes of a resource that are newer than a version, oldest first.

        Raises:
            ApiFailure: `Expired`; the history does not reach back that far.
        """
        if version < self._floors[resource.key]:
            raise expired(
                f"too old resource version: {version} ({self._floors[resource.key]}); list again"
            )
        return [one for one in self._changes[resource.key] if one.item.version > version]

    def compact(self) -> None:
        """Forget all history, as etcd does every five minutes: older versions are Expired."""
        for key in list(self._items):
            self._changes[key].clear()
            self._floors[key] = self.version

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call a listener after each commit, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _version_of(self, resource: Resource, body: JsonObject) -> Item:
        self.version += 1
        return self._item(resource, body, version=self.version)

    @staticmethod
    def _item(resource: Resource, body: JsonObject, *, version: int) -> Item:
        stamp = ("metadata", "resourceVersion")
        stamped = with_value(body, stamp, to=str(version)) if version else without(body, stamp)
        head = {"kind", "apiVersion"}
        inner = {key: value for key, value in stamped.items() if key not in head}
        return Item(
            resource=resource,
            namespace=key_of(body)[0],
            name=key_of(body)[1],
            uid=text(body, "metadata", "uid"),
            version=version,
            body={"kind": resource.kind, "apiVersion": resource.api_version} | inner,
            inner=msgspec.json.encode(inner),
        )

    def _commit(self, change: Change) -> None:
        log = self._changes[change.item.resource.key]
        log.append(change)
        if len(log) > self._history:
            self._floors[change.item.resource.key] = log.popleft().item.version
        for listener in tuple(self._listeners):
            listener(change)

    def _index(self, before: Item | None, after: Item | None) -> None:
        for item, keep in ((before, False), (after, True)):
            for owner in elements(item.body, "metadata", "ownerReferences") if item else ():
                holders = self._dependents[text(owner, "uid")]
                entry = (item.resource, item.key) if item else None
                if entry is not None:
                    (holders.add if keep else holders.discard)(entry)

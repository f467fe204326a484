"""An API server's answers to single reads and writes, in memory: merge patches with preconditions.

Stands in for `kube.client.ClusterClient` where no socket is wanted. Keeps every write it was sent,
in order, and can be told to fail or to let somebody else write first.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import msgspec

from gpu_pruner.errors import Conflict, NotFound
from gpu_pruner.kube.client import Page
from gpu_pruner.kube.resources import GPUWORKLOADS, NAMESPACES, Resource

T = TypeVar("T")
Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
Key: TypeAlias = tuple[str, str, str]


def tree(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value


@dataclass(frozen=True, slots=True)
class Write:
    verb: str
    plural: str
    namespace: str
    name: str
    subresource: str
    body: dict[str, Json]


@dataclass(slots=True)
class MemoryCluster:
    writes: list[Write] = field(default_factory=list)
    missing_kinds: set[str] = field(default_factory=set)
    """Plurals whose API does not exist."""
    before_patch: dict[str, Callable[[], None]] = field(default_factory=dict)
    """By plural: what happens right before a patch of that kind, once."""
    failures: dict[tuple[str, str], Exception] = field(default_factory=dict)
    """By verb and plural: what is raised instead of an answer."""
    _objects: dict[Key, dict[str, Json]] = field(default_factory=dict)
    _version: int = 100

    def put(self, resource: Resource, body: Mapping[str, Json]) -> None:
        """Store an object as somebody else would, with a new resourceVersion."""
        meta = tree(body["metadata"])
        namespace, name = str(meta.get("namespace", "")), str(meta["name"])
        self._version += 1
        stored = {**body, "metadata": {**meta, "resourceVersion": str(self._version)}}
        self._objects[resource.plural, namespace, name] = stored

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        del self._objects[resource.plural, namespace, name]

    def stored(self, resource: Resource, namespace: str, name: str) -> dict[str, Json]:
        return self._objects[resource.plural, namespace, name]

    def names(self, resource: Resource) -> list[str]:
        return [name for plural, _, name in self._objects if plural == resource.plural]

    async def get(
        self, resource: Resource, name: str, *, namespace: str = "", decode: type[T]
    ) -> T:
        stored = self._find("get", resource, namespace, name)
        return msgspec.json.decode(json.dumps(stored), type=decode)

    async def list_pages(
        self, resource: Resource, *, decode: type[T], namespace: str = ""
    ) -> AsyncIterator[Page[T]]:
        self._fail("list", resource)
        if resource.plural in self.missing_kinds:
            raise NotFound("the server could not find the requested resource", status=404)
        for (plural, space, _), stored in list(self._objects.items()):
            if plural == resource.plural and namespace in {"", space}:
                item = msgspec.json.decode(json.dumps(stored), type=decode)
                yield Page((item,), str(self._version))

    async def create(
        self, resource: Resource, body: Mapping[str, object], *, namespace: str = ""
    ) -> bytes:
        made: dict[str, Json] = json.loads(json.dumps(body))
        name = str(tree(made["metadata"])["name"])
        self._fail("create", resource)
        no_space = (NAMESPACES.plural, "", namespace) not in self._objects
        if resource.plural in self.missing_kinds or no_space:
            raise NotFound("the server could not find the requested resource", status=404)
        if (resource.plural, namespace, name) in self._objects:
            raise Conflict(f"{resource.plural} {name!r} already exists", status=409)
        self.writes.append(Write("create", resource.plural, namespace, name, "", made))
        self.put(resource, made)
        return json.dumps(self.stored(resource, namespace, name)).encode()

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, object],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bytes:
        self.before_patch.pop(resource.plural, lambda: None)()
        patch: dict[str, Json] = json.loads(json.dumps(body))
        stored = self._find("patch", resource, namespace, name)
        meta, wanted = tree(stored["metadata"]), tree(patch.get("metadata", {}))
        for precondition in ("uid", "resourceVersion"):
            if wanted.get(precondition, meta.get(precondition)) != meta.get(precondition):
                raise Conflict(f"the {precondition} is not {wanted[precondition]}", status=409)
        self.writes.append(Write("patch", resource.plural, namespace, name, subresource, patch))
        merged = merge(stored, patch)
        untouched = "spec" if subresource == "status" else "status"
        if resource is GPUWORKLOADS and untouched in stored:
            merged[untouched] = stored[untouched]
        self.put(resource, merged)
        return json.dumps(self.stored(resource, namespace, name)).encode()

    def _find(self, verb: str, resource: Resource, namespace: str, name: str) -> dict[str, Json]:
        self._fail(verb, resource)
        try:
            return self._objects[resource.plural, namespace, name]
        except KeyError as error:
            raise NotFound(f"{resource.plural} {name!r} not found", status=404) from error

    def _fail(self, verb: str, resource: Resource) -> None:
        if failure := self.failures.get((verb, resource.plural)):
            raise failure


def merge(target: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """RFC 7386."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = value
    return result

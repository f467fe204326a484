"""The one Lease of an API server, in memory, whose answers a test may hold back, lose or spoil.

Every call stops twice, before and after it is carried out, so that a test decides in which order
the calls of several replicas happen, and how much time passes in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from types import coroutine

import msgspec

from gpu_pruner.errors import ClusterError, Conflict, NotFound
from gpu_pruner.kube.lease import LeaseObject
from gpu_pruner.kube.resources import Resource


@coroutine
def _stop() -> Generator[None, None, None]:
    yield


@dataclass(slots=True)
class LeaseServer:
    stored: dict | None = None
    down: bool = False
    """Whether calls fail without being carried out."""
    losing: bool = False
    """Whether calls are carried out and their answers lost."""
    failure: Exception | None = None
    """What every call fails with."""
    stops: bool = False
    """Whether calls stop before and after they are carried out."""
    calls: list[str] = field(default_factory=list)
    version: int = 0

    async def get(self, resource: Resource, name: str, *, namespace: str = "", decode):
        return await self._call("get", lambda: msgspec.convert(self._found(name), decode))

    async def create(self, resource: Resource, body: Mapping, *, namespace: str = "") -> bytes:
        return await self._call("create", lambda: self._create(body))

    async def patch(
        self, resource: Resource, name: str, body: Mapping, *, namespace: str = "", **_more: str
    ) -> bytes:
        return await self._call("patch", lambda: self._patch(name, body))

    def edit(self, **spec: object) -> None:
        """Change it as a person would."""
        assert self.stored is not None
        self._store({**self.stored, "spec": {**self.stored["spec"], **spec}})

    async def _call(self, verb: str, answer: Callable):
        self.calls.append(verb)
        if self.stops:
            await _stop()
        if self.down:
            raise ClusterError("no answer")
        if self.failure is not None:
            raise self.failure
        told = answer()
        if self.stops:
            await _stop()
        if self.losing:
            raise ClusterError("the answer was lost")
        return told

    def _found(self, name: str) -> dict:
        if self.stored is None:
            raise NotFound(f"leases {name!r} not found", status=404)
        return self.stored

    def _create(self, body: Mapping) -> bytes:
        if self.stored is not None:
            raise Conflict("already exists", status=409)
        return self._store(dict(body))

    def _patch(self, name: str, body: Mapping) -> bytes:
        stored = self._found(name)
        told = body["metadata"]
        if told["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise Conflict("it was changed", status=409)
        annotations = {**stored["metadata"].get("annotations", {}), **told["annotations"]}
        metadata = {**stored["metadata"], "annotations": annotations}
        return self._store({**stored, "metadata": metadata, "spec": dict(body["spec"])})

    def _store(self, lease: dict) -> bytes:
        self.version += 1
        metadata = {**lease["metadata"], "resourceVersion": str(self.version)}
        self.stored = json.loads(json.dumps({**lease, "metadata": metadata}))
        return json.dumps(self.stored).encode()

    def lease(self) -> LeaseObject:
        return LeaseObject(self, namespace="gpu-pruner-system", name="gpu-pruner")


@dataclass(slots=True)
class Steps:
    """A coroutine that is carried on by hand, from one stop to the next."""

    _running: Coroutine | None = None

    @property
    def idle(self) -> bool:
        return self._running is None

    def go_on(self, begin: Callable[[], Coroutine]) -> None:
        """Take one step; begin anew where the last run has ended, well or badly."""
        running = self._running = self._running or begin()
        try:
            running.send(None)
        except (StopIteration, ClusterError):
            self._running = None

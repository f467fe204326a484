"""One Lease object: who leads, how long that holds, and when a cycle was last completed.

Answers what the Lease says, and makes it say something else if nobody changed it meanwhile. It
decides nothing and reads no clock: `kube.lease_elector` does. Every write has the resourceVersion
of what it rests on as a precondition, so that of several who write at once only one succeeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from gpu_pruner.errors import NotFound
from gpu_pruner.kube.resources import LEASES, Resource
from gpu_pruner.kube.wire import Meta
from gpu_pruner.model.annotations import LAST_CYCLE
from gpu_pruner.model.units import Seconds, Timestamp, parse_rfc3339
from gpu_pruner.settings.lease import OWN_NAMESPACE, LeaseSettings

T = TypeVar("T")

_OUR_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where a pod finds the name of its namespace."""


class LeaseServer(Protocol):
    """What is needed of `kube.client.ClusterClient`."""

    async def get(
        self, resource: Resource, name: str, *, namespace: str = "", decode: type[T]
    ) -> T:
        """Read one object."""
        ...

    async def create(
        self, resource: Resource, body: Mapping[str, object], *, namespace: str = ""
    ) -> bytes:
        """Create one object; `Conflict` where it exists."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, object],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bytes:
        """Merge-patch one object; `Conflict` where it is not the one that was read."""
        ...


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, frozen=True, gc=False):
    """A Lease as sent."""

    metadata: Meta = Meta()
    spec: _Spec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """What a Lease says."""

    holder: str = ""
    """Identity of the leader; empty where nobody leads."""
    duration_seconds: Seconds = 0.0
    """How long the holder counts as alive after a renewal; 0 where it is not said."""
    acquired: str = ""
    """When the holder took it, in its own time, as written."""
    renewed: str = ""
    """When the holder renewed it, in its own time, as written; for people."""
    transitions: int = 0
    """How often it changed hands."""
    last_cycle_at: Timestamp | None = None
    """When a leader last completed a cycle; None where that is not known."""
    resource_version: str = ""


class LeaseObject:
    """Reads and writes the one Lease that our replicas compete for."""

    def __init__(self, server: LeaseServer, *, namespace: str, name: str) -> None:
        self._server = server
        self.namespace = namespace
        self.name = name

    async def read(self) -> LeaseRecord | None:
        """Return what it says; None where there is none.

        Raises:
            ClusterError: no usable answer.
        """
        try:
            found = await self._server.get(
                LEASES, self.name, namespace=self.namespace, decode=_Lease
            )
        except NotFound:
            return None
        return _record(found)

    async def write(self, wanted: LeaseRecord, *, based_on: LeaseRecord | None) -> LeaseRecord:
        """Make it say what is wanted.

        Args:
            wanted: with everything but the resourceVersion.
            based_on: what it was found to say; None creates it.

        Returns:
            What was stored.

        Raises:
            ClusterError: `Conflict` where it changed meanwhile, `NotFound` where it, or the
                namespace, does not exist, or no usable answer: it may then have been written.
        """
        body = _body(wanted)
        if based_on is None:
            meta = {"name": self.name, "labels": {"app.kubernetes.io/name": "gpu-pruner"}}
            body["metadata"] = meta | {"annotations": _annotations(wanted)}
            stored = await self._server.create(
                LEASES,
                {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **body},
                namespace=self.namespace,
            )
        else:
            body["metadata"] = {
                "resourceVersion": based_on.resource_version,
                "annotations": _annotations(wanted),
            }
            stored = await self._server.patch(LEASES, self.name, body, namespace=self.namespace)
        return _record(msgspec.json.decode(stored, type=_Lease))


def lease_namespace(settings: LeaseSettings, *, file: Path = _OUR_NAMESPACE_FILE) -> str:
    """Return the namespace of the Lease: the one that was set, or that we run in, or the usual one.

    Args:
        settings: section ``lease``.
        file: where a pod is told its namespace.
    """
    if settings.namespace:
        return settings.namespace
    try:
        return file.read_text(encoding="utf-8").strip() or OWN_NAMESPACE
    except (OSError, UnicodeDecodeError):
        return OWN_NAMESPACE


def identity(settings: LeaseSettings, *, host: str, ending: str) -> str:
    """Return what this replica calls itself.

    The random ending tells it from its predecessor of the same name, whose Lease it must not take
    for its own.

    Args:
        settings: section ``lease``.
        host: name of the host; that of the pod in a cluster.
        ending: random text.
    """
    return f"{settings.identity or host}_{ending}"


def written(moment: Timestamp) -> str:
    """Write a moment as a Lease has it, to the microsecond (``metav1.MicroTime``)."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _record(found: _Lease) -> LeaseRecord:
    spec = found.spec or _Spec()
    return LeaseRecord(
        holder=spec.holder_identity or "",
        duration_seconds=float(spec.lease_duration_seconds or 0),
        acquired=spec.acquire_time or "",
        renewed=spec.renew_time or "",
        transitions=spec.lease_transitions or 0,
        last_cycle_at=_moment((found.metadata.annotations or {}).get(LAST_CYCLE)),
        resource_version=found.metadata.resource_version,
    )


def _body(wanted: LeaseRecord) -> dict[str, object]:
    return {
        "spec": {
            "holderIdentity": wanted.holder,
            "leaseDurationSeconds": round(wanted.duration_seconds),
            "acquireTime": wanted.acquired,
            "renewTime": wanted.renewed,
            "leaseTransitions": wanted.transitions,
        }
    }


def _annotations(wanted: LeaseRecord) -> Mapping[str, str | None]:
    at = wanted.last_cycle_at
    return {} if at is None else {LAST_CYCLE: written(at)}


def _moment(text: str | None) -> Timestamp | None:
    """Return the moment that anybody with the right may have written; None where it is none."""
    try:
        return parse_rfc3339(text) if text else None
    except ValueError:
        return None

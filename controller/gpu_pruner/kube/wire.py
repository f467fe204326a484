"""Objects as the API server sends them, cut down to the fields that we use.

`msgspec` skips everything else while parsing, which is what makes a list of many thousand pods
cheap. Every field may be absent or null, because real servers omit and old clients write nulls.
Nothing here judges: `observe` and `act` turn these into values of `model`.

The Structs hold no reference cycles, so they opt out of the garbage collector (``gc=False``).
"""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

import msgspec

Quantity: TypeAlias = str | int | float | None
"""A resource quantity as written; for extended resources always a whole number."""

T = TypeVar("T")


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One entry of ``metadata.ownerReferences``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Meta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``metadata`` of any object. Times are RFC 3339 text as sent."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """Return the owner reference with ``controller: true``; other owners do not count."""
        return next((one for one in self.owner_references or () if one.controller), None)


class Bare(msgspec.Struct, frozen=True, gc=False):
    """Any object, metadata only."""

    metadata: Meta = Meta()


class Resources(msgspec.Struct, frozen=True, gc=False):
    """``resources`` of a container."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None


class Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A container or init container of a pod."""

    resources: Resources | None = None
    restart_policy: str | None = None
    """``Always`` on an init container makes it a sidecar."""


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a pod."""

    node_name: str | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A condition of a pod or node."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class Running(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``state.running`` of a container."""

    started_at: str | None = None


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """``state`` of a container; only running is of interest."""

    running: Running | None = None


class ContainerStatus(msgspec.Struct, frozen=True, gc=False):
    """One entry of ``status.containerStatuses``."""

    state: ContainerState | None = None


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``status`` of a pod."""

    phase: str | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod."""

    metadata: Meta = Meta()
    spec: PodSpec | None = None
    status: PodStatus | None = None


class NodeStatus(msgspec.Struct, frozen=True, gc=False):
    """``status`` of a node."""

    allocatable: dict[str, Quantity] | None = None
    conditions: tuple[Condition, ...] | None = None


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node."""

    metadata: Meta = Meta()
    status: NodeStatus | None = None


class ClaimRetention(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``persistentVolumeClaimRetentionPolicy`` of a StatefulSet."""

    when_scaled: str | None = None


class OwnerSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of an owner, as far as its size goes."""

    replicas: int | None = None
    persistent_volume_claim_retention_policy: ClaimRetention | None = None


class OwnerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``status`` of an owner; the server omits counts that are 0."""

    observed_generation: int | None = None
    replicas: int | None = None
    ready_replicas: int | None = None
    updated_replicas: int | None = None


class Named(msgspec.Struct, frozen=True, gc=False):
    """A field that a `FieldSet` names; what is below it does not matter."""


class SizeField(msgspec.Struct, frozen=True, gc=False):
    """``f:spec`` of a `FieldSet`, as far as the size goes."""

    replicas: Named | None = msgspec.field(default=None, name="f:replicas")


class FieldSet(msgspec.Struct, frozen=True, gc=False):
    """``fieldsV1``: which fields somebody wrote."""

    spec: SizeField | None = msgspec.field(default=None, name="f:spec")


class ManagedFields(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One entry of ``metadata.managedFields``: who wrote what, and when."""

    manager: str = ""
    time: str | None = None
    fields_v1: FieldSet | None = None


class OwnerMeta(Meta, frozen=True, gc=False, rename="camel"):
    """``metadata`` of an owner. Only there `managedFields` is read: on pods it is long."""

    managed_fields: tuple[ManagedFields, ...] | None = None

    @property
    def sized_by(self) -> str:
        """Return the manager that wrote ``spec.replicas`` last; empty where nobody tells."""
        writers = [
            one
            for one in self.managed_fields or ()
            if one.fields_v1 and one.fields_v1.spec and one.fields_v1.spec.replicas is not None
        ]
        newest = max(writers, key=lambda one: one.time or "", default=None)
        return newest.manager if newest else ""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """A ReplicaSet, Deployment, StatefulSet or Notebook."""

    metadata: OwnerMeta = OwnerMeta()
    spec: OwnerSpec | None = None
    status: OwnerStatus | None = None


class ListMeta(msgspec.Struct, frozen=True, gc=False, rename={"more": "continue"}):
    """``metadata`` of a list."""

    resource_version: str = msgspec.field(default="", name="resourceVersion")
    more: str | None = None
    """Token of the next page; absent or empty on the last one."""


class ObjectList(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One page of a list."""

    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] | None = None


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch."""

    type: str
    """``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``."""
    object: msgspec.Raw


class Cause(msgspec.Struct, frozen=True, gc=False):
    """One reason of a refusal."""

    field: str | None = None
    """Path of the field that it is about."""


class Details(msgspec.Struct, frozen=True, gc=False):
    """``details`` of a `Status`."""

    causes: tuple[Cause, ...] | None = None


class Status(msgspec.Struct, frozen=True, gc=False):
    """The server's ``Status`` object, the body of its errors."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: Details | None = None

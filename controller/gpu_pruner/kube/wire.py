"""Objects as the API server sends them, cut down to the fields that we use.

`msgspec` skips everything else while parsing, which is what makes a list of many thousand pods
cheap. Every field may be absent or null, because real servers omit and old clients write nulls.
Nothing here judges: `observe` and `act` turn these into values of `model`.

The Structs hold no reference cycles, so they opt out of the garbage collector (``gc=False``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

import msgspec

from gpu_pruner.kube.managed import FIELD_MANAGER, FieldSet, ManagedFields

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
    """``persistentVolumeClaimRetentionPolicy`` of a StatefulSet, and of a LeaderWorkerSet."""

    when_scaled: str | None = None
    when_deleted: str | None = None


class PodTemplate(msgspec.Struct, frozen=True, gc=False):
    """What the next pods of an owner will be."""

    metadata: Meta | None = None
    spec: PodSpec | None = None


class GroupTemplate(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``leaderWorkerTemplate`` of a LeaderWorkerSet."""

    size: int | None = None
    """Pods of a group, the leader among them."""
    leader_template: PodTemplate | None = None
    """Of the leader, where that is not like its workers."""
    worker_template: PodTemplate | None = None
    persistent_volume_claim_retention_policy: ClaimRetention | None = None


class RunPolicy(msgspec.Struct, frozen=True, gc=False):
    """``runPolicy`` of a PyTorchJob."""

    suspend: bool | None = None


class Predictor(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``predictor`` of an InferenceService."""

    min_replicas: int | None = None


class ScaleTarget(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``scaleTargetRef`` of a ScaledObject; KEDA's own defaults where a field is absent."""

    name: str = ""
    api_version: str | None = None
    kind: str | None = None


class OwnerSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of an owner or a governor, as far as its size goes. No kind has all of it."""

    replicas: int | None = None
    persistent_volume_claim_retention_policy: ClaimRetention | None = None
    leader_worker_template: GroupTemplate | None = None
    paused: bool | None = None
    """Stops a Workspace. Of a Deployment or Rollout it holds only the rollout."""
    suspend: bool | None = None
    run_policy: RunPolicy | None = None
    predictor: Predictor | None = None
    active: bool | None = None
    """Of a Kueue Workload."""
    scale_target_ref: ScaleTarget | None = None


class OwnerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``status`` of an owner; the server omits counts that are 0."""

    observed_generation: int | str | None = None
    """A Rollout writes it as text."""
    replicas: int | None = None
    ready_replicas: int | None = None
    updated_replicas: int | None = None
    conditions: tuple[Condition, ...] | None = None
    deployment_mode: str | None = None
    """Of an InferenceService."""


class OwnerMeta(Meta, frozen=True, gc=False, rename="camel"):
    """``metadata`` of an owner. Only there `managedFields` is read: on pods it is long."""

    managed_fields: tuple[ManagedFields, ...] | None = None

    @property
    def sized_by(self) -> str:
        """Return the manager that wrote ``spec.replicas`` last; empty where nobody tells."""
        return self.written_by(lambda one: one.spec is not None and one.spec.replicas is not None)

    def written_by(self, names: Callable[[FieldSet], bool]) -> str:
        """Return the manager that wrote a field last; empty where nobody tells.

        Args:
            names: whether a set of fields names the one that is asked for.
        """
        writers = [
            one for one in self.managed_fields or () if one.fields_v1 and names(one.fields_v1)
        ]
        newest = max(writers, key=lambda one: one.time or "", default=None)
        return newest.manager if newest else ""

    def written_by_us(self, names: Callable[[FieldSet], bool]) -> bool:
        """Return whether the API server names us, and nobody else, as who wrote some fields.

        Args:
            names: whether a set of fields names any of those that are asked for.
        """
        every = self.managed_fields or ()
        writers = {one.manager for one in every if one.fields_v1 and names(one.fields_v1)}
        return writers == {FIELD_MANAGER}


class Owner(msgspec.Struct, frozen=True, gc=False):
    """An object that can own pods, or that governs one that does."""

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

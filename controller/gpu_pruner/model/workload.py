"""Roots, pods and what people want of them, as the Kubernetes API tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.model.signals import DeviceEvidence, PodName
from gpu_pruner.model.units import Timestamp
from gpu_pruner.model.verdict import Reason


@dataclass(frozen=True, slots=True, order=True)
class RootRef:
    """Which object owns a workload, by group and kind; never by kind alone."""

    kind: str
    namespace: str
    name: str
    group: str = ""
    """API group; empty for the core group."""
    uid: str = ""

    @property
    def ref(self) -> str:
        """Return ``kind/namespace/name`` in lower-case kind: how people and the CLI name it."""
        return f"{self.kind.lower()}/{self.namespace}/{self.name}"

    @property
    def order(self) -> tuple[str, str, str, str, str]:
        """Return what roots are sorted by: compared many times, a tuple is the faster key."""
        return self.kind, self.namespace, self.name, self.group, self.uid


@dataclass(frozen=True, slots=True)
class OwnerRef:
    """The ownerReference with ``controller: true``. Other owner references do not count."""

    group: str
    kind: str
    name: str
    uid: str


class PodPhase(StrEnum):
    """Source: ``pod.status.phase``."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRecord:
    """A pod that requests GPUs, in any phase; `resolve` leaves terminal ones out."""

    uid: str
    namespace: str
    name: str
    phase: PodPhase
    created_at: Timestamp
    node: str = ""
    requests: Mapping[str, int] = field(default_factory=dict)
    """GPU resource name to count, the most that the pod holds at once (init containers and sidecars
    by the API's own rule), for example ``{"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 1}``."""
    owner: OwnerRef | None = None
    ready_since: Timestamp | None = None
    """Transition time of the Ready condition, while it is True."""
    containers_started_at: Timestamp | None = None
    """Start of the newest running container; a container restart moves it."""
    terminating: bool = False
    leads: bool = False
    """It may own other pods: the leader of a LeaderWorkerSet's group."""
    server: ServerName | None = None
    """Whose JupyterHub server it says to be, where nobody owns it. Anybody can write that."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only keys under our prefix."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Only keys under our prefix, and those of platforms, as `OwnerObject.annotations`."""

    @property
    def pod_name(self) -> PodName:
        """Return namespace and name, as metric labels carry them."""
        return PodName(self.namespace, self.name)

    @property
    def gpus(self) -> int:
        """Return how many GPU devices the pod asks for, of all GPU resources."""
        return sum(self.requests.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """A node, as far as it matters here."""

    name: str
    ready: bool
    gpus: Mapping[str, int] = field(default_factory=dict)
    """Allocatable GPU resource name to count."""
    sharing: str = ""
    """``time-slicing`` or ``mps`` (GFD label ``nvidia.com/gpu.sharing-strategy``), ``vgpu`` where
    ``nvidia.com/vgpu.present`` says so, else empty."""
    product: str = ""
    """GFD label ``nvidia.com/gpu.product``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerObject:
    """An object that can stand between a pod and its root, or be the root."""

    root: RootRef
    owner: OwnerRef | None = None
    resource_version: str = ""
    generation: int = 0
    observed_generation: int | None = None
    """``status.observedGeneration``; None for kinds without it, such as Notebook."""
    desired: int | None = None
    """``spec.replicas``; None for kinds without it."""
    observed: int | None = None
    """``status.replicas``."""
    ready: int | None = None
    """``status.readyReplicas``."""
    updated: int | None = None
    """``status.updatedReplicas``; None for kinds without rollouts."""
    halted: bool = False
    """The desired state says: no pods (zero replicas, or what else stops the kind)."""
    sized_by: str = ""
    """Field manager that wrote ``spec.replicas``, or what else stops the kind, last; empty where
    unknown."""
    paused_by_us: bool = False
    """What stops it and the pause record beside it were both written by us, and nobody has touched
    either since (``managedFields``)."""
    pods_per_replica: int | None = 1
    """How many pods ``observed`` counts as one; None where nobody tells."""
    unstoppable: bool = False
    """Its platform, in this version or mode, does not do what would stop it."""
    is_ready: bool | None = None
    """What the readiness expression of its lever in the settings says; None without one."""
    governor: str = ""
    """Kind of the object that owns its size and carries its pause record, if not itself."""
    governor_uid: str = ""
    """uid of that object."""
    deletes_volumes: bool = False
    """Scaling down would delete volume claims (``whenScaled: Delete``, or a LeaderWorkerSet's
    ``whenDeleted: Delete``)."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only keys under our prefix."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Only keys under our prefix, the platform's stop annotation, and who made it. The pause record
    is the governor's, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorRecord:
    """An object that owns the size of a root without owning the root (KEDA, Kueue)."""

    ref: RootRef
    """The governor itself."""
    target: RootRef
    """What it governs: with a uid, or by group, kind, namespace and name."""
    halted: bool = False
    """It holds its target at no pods."""
    switched_by: str = ""
    """Field manager that wrote last what holds it there; empty where unknown."""
    paused_by_us: bool = False
    """As `OwnerObject.paused_by_us`, of what holds it there."""
    record: str | None = None
    """The pause record as written on it, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRecord:
    """A namespace's own wishes: only keys under our prefix, and whose Kubeflow Profile it is."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Somebody gives the GPUs of a workload back: it need not be idle for a window first."""

    at: Timestamp
    """When. It is about the pods that were there then, and not about later ones."""
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """Somebody says that a pause of ours was wrong: the workload was in use. Never decides."""

    pause: str
    """Decision id of that pause: what is said of it twice is one complaint."""
    at: Timestamp
    """When it was said."""
    by: str = ""
    reason: str = ""
    evidence: str = ""
    """The sentence that the pause rested on, as its record had it when this was said."""
    paused_at: Timestamp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What people want of a workload: `GPUWorkload.spec`. Caps are enforced on reading."""

    keep_until: Timestamp | None = None
    keep_by: str = ""
    keep_reason: str = ""
    exempt: bool = False
    exempt_until: Timestamp | None = None
    """When the exemption ends; None where it is for good."""
    exempt_by: str = ""
    exempt_reason: str = ""
    release: Release | None = None
    complaint: Complaint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPod:
    """A live pod of the base set with the devices that it was found to hold."""

    record: PodRecord
    devices: tuple[DeviceEvidence, ...] = ()
    """Sorted by device. May be fewer than requested: that is a gap, never idleness."""
    gap: Reason | None = None
    """Why the devices cannot be trusted to be this pod's, where `resolve` saw such a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Veto:
    """A person's or the platform's word that the workload stays, with its source."""

    reason: Reason
    detail: str
    """For example ``gpu-pruner.io/exempt=true on namespace team-a``."""
    until: Timestamp | None = None
    """When it ends by itself, where it does; a keep beyond the cap ends at the cap."""
    asked_until: Timestamp | None = None
    """End of a keep as asked for, where that is beyond the cap."""

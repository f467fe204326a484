"""From a device to the pod that holds it.

It answers which live pods hold which devices, which devices are shared, and what speaks against
believing it. A label only counts if it names a live pod that requests GPUs, on the node that the
series comes from; a label never proves anything alone. It never guesses an owner. `assemble` calls
it once per cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from msgspec import structs

from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, PodName, SeriesLabels
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import GpuPod, PodPhase, PodRecord

_TERMINAL = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})

VIRTUAL = "vgpu"
"""`NodeRecord.sharing` of a node whose GPUs are another machine's: nothing can be said of them."""

_WHOLE = ("nvidia.com/", "amd.com/gpu", "unreadable/")
"""Beginnings of resource names that stand for whole devices, or for slices and shares that we know;
the last is what stands for a pod that cannot be read."""

_GRAVITY = (Reason.SHARED_DEVICE, Reason.OWNER_CHANGED, Reason.WRONG_NODE)
"""Which doubt is told where a pod has several: the first of these."""


def is_live(pod: PodRecord) -> bool:
    """Whether a pod holds its GPUs or will: its phase is not terminal."""
    return pod.phase not in _TERMINAL


@lru_cache(maxsize=1 << 14)  # asked for every device, of a few thousand nodes
def node_key(name: str) -> str:
    """Return what two spellings of one node's name have in common: the first DNS label.

    A name that is an address has no labels, and is kept whole.
    """
    label = name.partition(".")[0]
    return (name if label.isdigit() else label).lower()


@dataclass(slots=True)
class _Held:
    """What was found for one pod."""

    devices: list[DeviceEvidence] = field(default_factory=list)
    doubts: set[Reason] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who holds what."""

    pods: tuple[GpuPod, ...]
    """Every live GPU pod, sorted by namespace and name, with what it was found to hold."""
    loose: tuple[DeviceEvidence, ...]
    """Evidence of devices that no live pod could be found for, sorted by device."""


def attribute(
    view: ClusterView,
    evidence: Mapping[DeviceId, DeviceEvidence],
    *,
    honor_labels: bool | None = None,
) -> Attribution:
    """Find the holder of every device.

    Args:
        view: for the live pods, their nodes and the nodes' sharing.
        evidence: by device, whole GPUs and slices; a board that has slices is held by nobody.
        honor_labels: True: the workload is in ``pod``; False: it is in ``exported_pod``; None: in
            whichever of the two names a GPU pod, ``exported_pod`` first.

    Returns:
        All live pods and the devices left over.
    """
    finder = _Finder(view, honor_labels=honor_labels)
    held = {pod.uid: _Held() for pod in finder.live.values()}
    sliced = {one.uuid for one in evidence if one.mig_instance}
    loose: list[DeviceEvidence] = []
    for device in sorted(evidence, key=lambda one: (one.uuid, one.mig_instance)):
        if not device.mig_instance and device.uuid in sliced:
            continue
        holders = finder.holders(evidence[device])
        found = finder.completed(evidence[device], [pod for pod, _ in holders])
        for pod, doubt in holders:
            if doubt is not Reason.WRONG_NODE:
                held[pod.uid].devices.append(found)
            if doubt is not None:
                held[pod.uid].doubts.add(doubt)
        if all(doubt is Reason.WRONG_NODE for _, doubt in holders):
            loose.append(found)
    pods = sorted(finder.live.values(), key=lambda pod: (pod.namespace, pod.name, pod.uid))
    return Attribution(
        pods=tuple(_gpu_pod(pod, held[pod.uid], finder) for pod in pods),
        loose=tuple(loose),
    )


def _gpu_pod(pod: PodRecord, held: _Held, finder: _Finder) -> GpuPod:
    doubts = held.doubts | ({Reason.SHARED_DEVICE} if finder.is_opaque(pod) else set())
    gap = next((one for one in _GRAVITY if one in doubts), None)
    count = len(held.devices)
    # Several shares can be of one GPU.
    fits = 0 < count <= pod.gpus if finder.shares(pod) else count == pod.gpus
    if gap is None and not fits:
        gap = Reason.DEVICE_MISMATCH if held.devices else Reason.NO_SERIES
    return GpuPod(record=pod, devices=tuple(held.devices), gap=gap)


class _Finder:
    """Looks a device's labels up among the pods."""

    def __init__(self, view: ClusterView, *, honor_labels: bool | None) -> None:
        self._honor_labels = honor_labels
        self._nodes = {node_key(name) for name in view.nodes}
        self._sharing = {node_key(name) for name, node in view.nodes.items() if node.sharing}
        self._virtual = {name for name, node in view.nodes.items() if node.sharing == VIRTUAL}
        self._products = {name: node.product for name, node in view.nodes.items() if node.product}
        self._known = {pod.pod_name for pod in view.pods}
        self.live = _by_name(pod for pod in view.pods if is_live(pod))

    def shares(self, pod: PodRecord) -> bool:
        """Whether the pod's GPUs may be other pods' as well."""
        return node_key(pod.node) in self._sharing or any(_is_share(one) for one in pod.requests)

    def is_opaque(self, pod: PodRecord) -> bool:
        """Whether telemetry of devices does not speak of what the pod holds."""
        return pod.node in self._virtual or any(_is_fraction(one) for one in pod.requests)

    def completed(self, found: DeviceEvidence, holders: list[PodRecord]) -> DeviceEvidence:
        """Return a device with what the cluster knows: whether it is shared, and its model."""
        shared = found.shared or len(holders) > 1 or node_key(found.node) in self._sharing
        shared = shared or any(self.shares(pod) for pod in holders)
        model = found.model
        if not model and holders:
            model = self._products.get(holders[0].node, "")
        if (shared, model) == (found.shared, found.model):
            return found
        return structs.replace(found, shared=shared, model=model)

    def holders(self, found: DeviceEvidence) -> list[tuple[PodRecord, Reason | None]]:
        """Return the live pods that a device's labels name, each with what speaks against it.

        Those on another node than the series come from are the last.
        """
        live: dict[str, PodRecord] = {}
        doubt: Reason | None = None
        for labels in found.owners:
            claim = self._claim(labels)
            if claim is None:
                continue
            name, uid = claim
            pod = self.live.get(name)
            if pod is None or (uid and uid != pod.uid):
                doubt = Reason.OWNER_CHANGED
            else:
                live[pod.uid] = pod
        answer = [
            (pod, Reason.WRONG_NODE if self._elsewhere(found, pod) else doubt)
            for pod in live.values()
        ]
        answer.sort(key=lambda one: one[1] is Reason.WRONG_NODE)
        return answer

    def _claim(self, labels: SeriesLabels) -> tuple[PodName, str] | None:
        """Return which pod a label set says holds the device; None: the exporter's own name."""
        exported, native = labels.exported, labels.native
        if self._honor_labels is False:
            native = None
        elif self._honor_labels or (exported not in self._known and native in self._known):
            exported = None
        if exported is not None:
            return exported, labels.pod_uid
        if native is None or native not in self._known:
            return None
        return native, labels.pod_uid

    def _elsewhere(self, found: DeviceEvidence, pod: PodRecord) -> bool:
        """Whether a series comes from another node than the pod runs on.

        A name that no node has is another cluster's, which may have a pod of the same name. Only
        the exporter's own name proves nothing: some tell their container's instead of the node's.
        """
        told = node_key(found.node)
        if not told or not pod.node or told == node_key(pod.node):
            return False
        return told in self._nodes or not _is_own_name(found)


_HOST_NAME = 63
"""Length to which the name of a pod is cut to be its host name."""


def _is_own_name(found: DeviceEvidence) -> bool:
    """Whether the node that a device tells is the name of the exporter's own pod."""
    own = (labels.native.name for labels in found.owners if labels.native and labels.exported)
    return any(found.node == name[:_HOST_NAME] for name in own)


@lru_cache(maxsize=256)  # clusters have a handful of names
def _is_share(resource: str) -> bool:
    """Whether a resource is a share of a GPU, as NVIDIA's device plugin names them."""
    return resource.endswith(".shared")


@lru_cache(maxsize=256)  # clusters have a handful of names
def _is_fraction(resource: str) -> bool:
    """Whether a resource is of another plug-in, which hands out parts in a way of its own."""
    return not resource.startswith(_WHOLE)


def _by_name(pods: Iterable[PodRecord]) -> dict[PodName, PodRecord]:
    """Return the newest incarnation under each name."""
    found: dict[PodName, PodRecord] = {}
    for pod in pods:
        name = pod.pod_name
        known = found.get(name)
        if known is None or (pod.created_at, pod.uid) > (known.created_at, known.uid):
            found[name] = pod
    return found

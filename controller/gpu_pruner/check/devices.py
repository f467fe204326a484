"""Which pods and devices cannot be judged, and why: by the plan that a cycle makes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_pruner.check.finding import Area, Finding, Level, counted, listed
from gpu_pruner.model.plan import Plan
from gpu_pruner.model.signals import DeviceEvidence
from gpu_pruner.model.snapshot import Snapshot
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import GpuPod
from gpu_pruner.resolve.attribution import node_key

NEW_FOR: Seconds = 5 * MINUTE
"""A pod that runs for less may not be on any series yet: exporter and scrape are half a minute
each, and a first look comes later still."""

_OWN = "dcgm-exporter"
"""In the name of an exporter's own pod."""

_MAPPING = (
    "the exporter does not map these pods to GPUs. Device plugin: DCGM_EXPORTER_KUBERNETES=true, "
    "and the host path /var/lib/kubelet/pod-resources mounted. GKE: "
    "KUBERNETES_GPU_ID_TYPE=device-name (wrong id type: no pod at all). DRA: "
    "--kubernetes-enable-dra and its ClusterRole, on an exporter of 4.8.3 or newer"
)

_FIXES: Mapping[Reason, tuple[str, str]] = {
    Reason.SHARED_DEVICE: (
        "on shared GPUs (time-slicing, MPS, vGPU or a plug-in of another kind)",
        "let the exporter name every sharer: --kubernetes-virtual-gpus; they are judged together",
    ),
    Reason.OWNER_CHANGED: (
        "on GPUs that other pods held within the window, or that name a pod that is gone",
        "wait for a window; if it stays, the kubelet lists ended pods: restart the exporter there",
    ),
    Reason.WRONG_NODE: (
        "on GPUs that report from another node, or from none of this cluster",
        "name this cluster: --prometheus-cluster NAME; or the node's label: --node-label LABEL",
    ),
    Reason.DEVICE_MISMATCH: (
        "with another number of GPUs in telemetry than they request",
        "compare kubectl describe pod with the series that name it; restart the exporter there",
    ),
}


@dataclass(frozen=True, slots=True)
class _Unseen:
    """Pods without any series, by what speaks from their nodes."""

    unmapped: tuple[GpuPod, ...]
    """Their nodes have devices that no pod is found for."""
    silent: tuple[GpuPod, ...]
    """Their nodes have none."""


def findings(snapshot: Snapshot, plan: Plan) -> Iterator[Finding]:
    """Say which pods have no series, and which devices cannot be attributed or judged.

    Args:
        snapshot: a cycle's view.
        plan: what a cycle makes of it.
    """
    pods = [pod for one in snapshot.workloads for pod in one.pods]
    old = [pod for pod in pods if _runs_long(pod, now=snapshot.now)]
    unseen = _unseen(old, snapshot.loose)
    yield from _without_series(unseen)
    for reason, (where, fix) in _FIXES.items():
        doubted = [str(pod.record.pod_name) for pod in old if pod.gap is reason]
        if doubted:
            told = f"{counted(len(doubted), 'pod')} {where}: {listed(doubted)}"
            yield _finding(Level.WARN, told, fix)
    yield from _slices_without_profiling(plan)
    yield from _strangers(snapshot.loose)
    attributed = sum(len(pod.devices) for pod in pods)
    if not pods:
        yield _finding(Level.OK, "No pod requests a GPU")
    elif not any(pod.gap for pod in old):
        told = f"{counted(len(pods), 'pod')} with {counted(snapshot.allocated_gpus, 'GPU')}: each "
        told += f"found in telemetry ({counted(attributed, 'device')})"
        yield _finding(Level.OK, told)
    yield from _free(snapshot.loose)


def _runs_long(pod: GpuPod, *, now: Timestamp) -> bool:
    since = pod.record.ready_since
    return since is not None and now - since > NEW_FOR


def _unseen(pods: list[GpuPod], loose: tuple[DeviceEvidence, ...]) -> _Unseen:
    speaking = {node_key(one.node) for one in loose if not _named(one)}
    without = [pod for pod in pods if pod.gap is Reason.NO_SERIES]
    unmapped = [node_key(pod.record.node) in speaking for pod in without]
    return _Unseen(
        unmapped=tuple(pod for pod, there in zip(without, unmapped, strict=True) if there),
        silent=tuple(pod for pod, there in zip(without, unmapped, strict=True) if not there),
    )


def _without_series(unseen: _Unseen) -> Iterator[Finding]:
    for group, why, fix in (
        (unseen.unmapped, "although their nodes have GPUs that no pod is found for", _MAPPING),
        (
            unseen.silent,
            "and no free GPU of their nodes has any",
            "look at the exporters of their nodes: see coverage",
        ),
    ):
        if group:
            names = [str(pod.record.pod_name) for pod in group]
            told = f"{counted(len(names), 'pod holds', 'pods hold')} GPUs without series, {why}: "
            yield _finding(Level.FAIL, told + listed(names), fix)


def _slices_without_profiling(plan: Plan) -> Iterator[Finding]:
    slices = sorted(
        str(one.evidence.device)
        for decision in plan.decisions
        for one in decision.findings
        if one.reason is Reason.NO_PRIMARY_SIGNAL and one.evidence.device.mig_instance
    )
    if slices:
        told = f"{counted(len(slices), 'MIG slice')} without a profiling field, which alone can "
        told += f"prove a slice idle: {listed(slices)}"
        fix = "add DCGM_FI_PROF_GR_ENGINE_ACTIVE to the exporter's counters file, with SYS_ADMIN"
        yield _finding(Level.WARN, told, fix)


def _named(one: DeviceEvidence) -> tuple[str, ...]:
    """Return the pods that the series of a device name, but for an exporter's own."""
    names = (labels.exported or labels.native for labels in one.owners)
    return tuple(str(name) for name in names if name is not None and _OWN not in name.name)


def _strangers(loose: tuple[DeviceEvidence, ...]) -> Iterator[Finding]:
    """Name devices whose series name a pod that holds no GPU as far as the API server tells."""
    strangers = {str(one.device): _named(one)[-1] for one in loose if _named(one)}
    if strangers:
        told = f"{counted(len(strangers), 'device names', 'devices name')} a pod that is not "
        told += "there or requests no GPU: " + listed([f"{k} ({v})" for k, v in strangers.items()])
        fix = "a pod that got its GPU by DRA, NVIDIA_VISIBLE_DEVICES or a host path is not ours to "
        fix += "judge; one that is gone leaves the series within five minutes"
        yield _finding(Level.WARN, told, fix)


def _free(loose: tuple[DeviceEvidence, ...]) -> Iterator[Finding]:
    free = sum(not _named(one) for one in loose)
    if free:
        yield _finding(Level.OK, f"{counted(free, 'device')} held by no pod")


def _finding(level: Level, sentence: str, fix: str = "") -> Finding:
    return Finding(level=level, area=Area.DEVICES, sentence=sentence, fix=fix)

"""From objects as sent to the records of `model.workload`.

Cuts an object down to what deciding needs, and keeps absence visible: what the server did not
say becomes None or an odd phase, never a convenient number. It judges nothing.
`observe.cluster` calls it for every object that a reflector hears of.

Names recur by the thousand, so they are interned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern

from gpu_pruner.kube.jupyterhub import server_of
from gpu_pruner.kube.resources import group_of
from gpu_pruner.kube.wire import (
    Bare,
    Condition,
    Meta,
    Node,
    Pod,
    PodStatus,
)
from gpu_pruner.model.annotations import (
    KSERVE_STOP,
    LWS_NAME,
    NOTEBOOK_CREATOR,
    NOTEBOOK_STOPPED,
    NOTEBOOK_USERNAME,
    PREFIX,
    PROFILE_OWNER,
    WORKSPACE_CREATOR,
)
from gpu_pruner.model.units import Timestamp, parse_rfc3339
from gpu_pruner.model.workload import (
    NamespaceRecord,
    NodeRecord,
    OwnerRef,
    PodPhase,
    PodRecord,
)
from gpu_pruner.observe.gpu_requests import gpu_requests, whole_gpus

UNREADABLE_RESOURCE = "unreadable/gpu"
"""Stands in the requests of a pod whose containers cannot be read: one GPU that nobody finds."""

_SHARING = "nvidia.com/gpu.sharing-strategy"
_PRODUCT = "nvidia.com/gpu.product"
_VIRTUAL = "nvidia.com/vgpu.present"
_YOUNGEST: Timestamp = 253_402_300_799.0
"""The last second that RFC 3339 can write."""
_NONE: Mapping[str, str] = {}
_OF_PLATFORMS = frozenset(
    {NOTEBOOK_STOPPED, KSERVE_STOP, NOTEBOOK_USERNAME, NOTEBOOK_CREATOR, WORKSPACE_CREATOR}
)
"""Keys of others that are read on workloads."""
_OF_PROFILES = frozenset({PROFILE_OWNER})
"""Keys of others that are read on namespaces."""


def pod_record(pod: Pod) -> PodRecord | None:
    """Return a pod that requests GPUs, or may own one that does; None for any other."""
    if pod.spec is None:
        return unreadable_pod(pod.metadata)
    requests, leads = gpu_requests(pod.spec).counts, _leads(pod.metadata)
    if not requests and not leads:
        return None
    meta, status = pod.metadata, pod.status or PodStatus()
    return PodRecord(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        phase=_phase(status.phase),
        created_at=_created(meta),
        node=intern(pod.spec.node_name or ""),
        requests=requests,
        owner=owner_ref(meta),
        ready_since=_ready_since(status.conditions),
        containers_started_at=_newest_start(status),
        terminating=meta.deletion_timestamp is not None,
        leads=leads,
        server=server_of(meta),
        labels=concerning_us(meta.labels),
        annotations=concerning_us(meta.annotations),
    )


def _leads(meta: Meta) -> bool:
    """Return whether a pod may lead a group: worth keeping for its workers, whatever it is."""
    above = meta.controller
    return above is not None and LWS_NAME in (meta.labels or _NONE)


def unreadable_pod(meta: Meta) -> PodRecord:
    """Return a pod of which only the metadata could be read.

    It counts as one GPU that no telemetry will be found for, so that its workload is kept.
    """
    return PodRecord(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        phase=PodPhase.UNKNOWN,
        created_at=_created(meta),
        requests={UNREADABLE_RESOURCE: 1},
        owner=owner_ref(meta),
        terminating=meta.deletion_timestamp is not None,
        server=server_of(meta),
        labels=concerning_us(meta.labels),
        annotations=concerning_us(meta.annotations),
    )


def odd_requests(pod: Pod) -> tuple[str, ...]:
    """Return the GPU quantities of a pod that are no whole numbers, for the log."""
    return gpu_requests(pod.spec).odd if pod.spec else ()


def node_record(node: Node) -> NodeRecord:
    """Return a node."""
    labels = node.metadata.labels or _NONE
    status = node.status
    return NodeRecord(
        name=intern(node.metadata.name),
        ready=status is not None and _ready(status.conditions) is not None,
        gpus=whole_gpus(status.allocatable) if status else {},
        sharing=_sharing(labels),
        product=labels.get(_PRODUCT, ""),
    )


def _sharing(labels: Mapping[str, str]) -> str:
    """Return how a node shares its GPUs, as `NodeRecord.sharing` writes it."""
    if labels.get(_VIRTUAL) == "true":
        return "vgpu"
    strategy = labels.get(_SHARING, "none")
    if strategy not in {"", "none"}:
        return strategy
    return "time-slicing" if labels.get(_PRODUCT, "").endswith("-SHARED") else ""


def unreadable_node(meta: Meta) -> NodeRecord:
    """Return a node of which only the metadata could be read: not Ready, as far as we know."""
    return NodeRecord(name=intern(meta.name), ready=False)


def namespace_record(namespace: Bare) -> NamespaceRecord:
    """Return a namespace."""
    meta = namespace.metadata
    return NamespaceRecord(
        name=intern(meta.name),
        labels=concerning_us(meta.labels),
        annotations=concerning_us(meta.annotations, others=_OF_PROFILES),
    )


def owner_ref(meta: Meta) -> OwnerRef | None:
    """Return the owner that controls an object; other owners do not count."""
    one = meta.controller
    if one is None:
        return None
    return OwnerRef(intern(group_of(one.api_version)), intern(one.kind), one.name, one.uid)


def _phase(text: str | None) -> PodPhase:
    """Return a pod's phase; one that we do not know is Unknown, as is none."""
    try:
        return PodPhase(text or "")
    except ValueError:
        return PodPhase.UNKNOWN


def _created(meta: Meta) -> Timestamp:
    """Return the creation time; unreadable: the youngest, so that nothing follows from age."""
    moment = _moment(meta.creation_timestamp)
    return _YOUNGEST if moment is None else moment


def _ready(conditions: Iterable[Condition] | None) -> Condition | None:
    """Return the Ready condition while it is True."""
    found = (one for one in conditions or () if one.type == "Ready" and one.status == "True")
    return next(found, None)


def _ready_since(conditions: Iterable[Condition] | None) -> Timestamp | None:
    """Return since when a pod is Ready; None where it is not, or where nobody says since when."""
    ready = _ready(conditions)
    return _moment(ready.last_transition_time) if ready else None


def _newest_start(status: PodStatus) -> Timestamp | None:
    starts = [
        _moment(one.state.running.started_at)
        for one in status.container_statuses or ()
        if one.state and one.state.running
    ]
    return max((moment for moment in starts if moment is not None), default=None)


def _moment(text: str | None) -> Timestamp | None:
    """Return a time; None where there is none that can be read."""
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None


def concerning_us(
    words: Mapping[str, str] | None, *, others: frozenset[str] = _OF_PLATFORMS
) -> Mapping[str, str]:
    """Return the labels or annotations that concern us.

    Args:
        words: as sent.
        others: keys that are not under our prefix and are read nevertheless.
    """
    if not words:
        return _NONE
    return {
        intern(key): value
        for key, value in words.items()
        if key.startswith(PREFIX) or key in others
    } or _NONE

"""One part's scene, read from what the simulated API server holds, and writes read from its log.

Nothing here listens to the controller. Called by `stage` with every look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from gpu_pruner.model.annotations import KSERVE_STOP, NOTEBOOK_STOPPED
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.happenings import leaf
from gpu_pruner.sim.journal import RequestRecord
from gpu_pruner.sim.judge import Request, Scene
from gpu_pruner.sim.story import Part


def scene_of(part: Part, cluster: SimulatedCluster) -> Scene:
    """Return what there is of a part now."""
    found = cluster.get(part.kind, name=part.name, namespace=part.namespace)
    pods = [
        pod
        for pod in cluster.pods_of(part.kind, name=part.name, namespace=part.namespace)
        if not leaf(pod, "metadata", "deletionTimestamp")
    ]
    annotations = leaf(found, "metadata", "annotations")
    kept = (
        {str(key): str(value) for key, value in annotations.items()}
        if isinstance(annotations, Mapping)
        else {}
    )
    book = _book(part, cluster)
    return Scene(
        size=_size(found, kept),
        annotations=kept,
        pods=frozenset(str(leaf(pod, "metadata", "uid")) for pod in pods),
        ready=sum(_is_ready(pod) for pod in pods),
        phase=str(leaf(book, "status", "phase") or ""),
        kept_by=str(leaf(book, "spec", "keepBy") or ""),
    )


def _book(part: Part, cluster: SimulatedCluster) -> object:
    """Return the part's GPUWorkload, or None."""
    for one in cluster.all("GPUWorkload", part.namespace):
        name, kind = leaf(one, "spec", "rootRef", "name"), leaf(one, "spec", "rootRef", "kind")
        if (kind, name) == (part.kind, part.name):
            return one
    return None


def _size(found: object, annotations: Mapping[str, str]) -> int | None:
    if found is None:
        return None
    if NOTEBOOK_STOPPED in annotations or annotations.get(KSERVE_STOP) == "true":
        return 0
    replicas = leaf(found, "spec", "replicas")
    return replicas if isinstance(replicas, int) else 1


def _is_ready(pod: object) -> bool:
    conditions = leaf(pod, "status", "conditions")
    return isinstance(conditions, Sequence) and any(
        leaf(one, "type") == "Ready" and leaf(one, "status") == "True" for one in conditions
    )


def request_of(record: RequestRecord) -> Request:
    """Return a line of the request log with its body decoded; what is no JSON object is empty."""
    try:
        body = json.loads(record.body or b"{}")
    except ValueError:
        body = {}
    return Request(
        at=record.at,
        user=record.user,
        method=record.method,
        path=record.path,
        body=body if isinstance(body, Mapping) else {},
        status=record.status,
    )

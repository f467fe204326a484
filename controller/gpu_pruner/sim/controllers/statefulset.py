"""StatefulSet → Pod, in order.

Imitates the statefulset controller with OrderedReady: pod n+1 is made when pod n is Ready, the
highest ordinal goes first and one at a time, a name is used again only when its pod is gone, and
``status.replicas`` counts terminating pods too.
"""

from __future__ import annotations

from gpu_pruner.sim.controllers.toolbox import (
    Toolbox,
    counts,
    generation,
    is_ready,
    is_terminating,
    template_of,
)
from gpu_pruner.sim.resources import PODS
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, child, number, texts

INDEX_LABEL = "apps.kubernetes.io/pod-index"


def reconcile_stateful_set(tools: Toolbox, item: Item) -> None:
    """Take one step towards the size that a StatefulSet asks for, and report."""
    desired = number(item.body, "spec", "replicas", default=1)
    pods = {ordinal_of(one): one for one in tools.children(item, PODS)}
    in_parallel = child(item.body, "spec", "podManagementPolicy") == "Parallel"
    for ordinal in range(desired):
        pod = pods.get(ordinal)
        if pod is None:
            pods[ordinal] = pod = tools.create(item, PODS, _pod(item, ordinal))
        if not in_parallel and (is_terminating(pod) or not is_ready(pod)):
            break
    else:
        _shrink(tools, pods, desired)
    _report(tools, item, list(pods.values()))


def _shrink(tools: Toolbox, pods: dict[int, Item], desired: int) -> None:
    surplus = sorted((one for one in pods if one >= desired), reverse=True)
    if surplus and not is_terminating(pods[surplus[0]]):
        tools.delete(pods[surplus[0]])


def ordinal_of(pod: Item) -> int:
    """Return the ordinal at the end of a StatefulSet pod's name, or -1."""
    tail = pod.name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else -1


def _pod(item: Item, ordinal: int) -> JsonObject:
    metadata, spec = template_of(item)
    name = f"{item.name}-{ordinal}"
    labels = texts(metadata, "labels") | {
        "statefulset.kubernetes.io/pod-name": name,
        INDEX_LABEL: str(ordinal),
    }
    return {
        "metadata": metadata | {"name": name, "labels": labels},
        "spec": spec | {"hostname": name},
    }


def _report(tools: Toolbox, item: Item, pods: list[Item]) -> None:
    ready = sum(is_ready(one) and not is_terminating(one) for one in pods)
    revision = f"{item.name}-1"
    status: JsonObject = {
        "observedGeneration": generation(item),
        "replicas": len(pods),
        "availableReplicas": ready,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }
    current = len(pods)
    status |= counts(readyReplicas=ready, currentReplicas=current, updatedReplicas=current)
    tools.report(item, status)

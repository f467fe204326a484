"""StatefulSet → Pod, in order.

Imitates the statefulset controller with OrderedReady: pod n+1 is made when pod n is Ready; the
highest ordinal goes first, one at a time; a name is used again only when its pod is gone; pods of
an older template are replaced one by one; ``status.replicas`` counts terminating pods too.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.sim.controllers.toolbox import (
    Toolbox,
    counts,
    generation,
    is_ready,
    is_terminating,
    template_of,
)
from gpu_pruner.sim.identity import word_of
from gpu_pruner.sim.resources import PODS
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, child, mapping, number, text, texts, with_value

INDEX_LABEL = "apps.kubernetes.io/pod-index"
_REVISION_LABEL = "controller-revision-hash"


def reconcile_stateful_set(tools: Toolbox, item: Item) -> None:
    """Take one step towards the size that a StatefulSet asks for, and report."""
    desired = number(item.body, "spec", "replicas", default=1)
    revision = _revision(item)
    pods = {ordinal_of(one): one for one in tools.children(item, PODS)}
    in_parallel = child(item.body, "spec", "podManagementPolicy") == "Parallel"
    first = number(item.body, "spec", "ordinals", "start")
    for ordinal in range(first, first + desired):
        pod = pods.get(ordinal)
        if pod is None and tools.store.get(PODS, (item.namespace, f"{item.name}-{ordinal}")):
            break  # a pod of a former owner is still on its way out
        if pod is None:
            pods[ordinal] = pod = tools.create(
                PODS, _pod(item, ordinal, revision=revision), owner=item
            )
        if not in_parallel and (is_terminating(pod) or not is_ready(pod)):
            break
    else:
        _delete_one(tools, pods, end=first + desired, revision=revision)
    _report(tools, item, pods=list(pods.values()), revision=revision)


def _delete_one(tools: Toolbox, pods: dict[int, Item], *, end: int, revision: str) -> None:
    """Delete the highest pod that is too many, else the highest of an older template."""
    if any(map(is_terminating, pods.values())):
        return
    surplus = [one for one in pods if one >= end]
    outdated = [one for one, pod in pods.items() if _revision_of(pod) != revision]
    for ordinals in (surplus, outdated):
        if ordinals:
            tools.delete(pods[max(ordinals)])
            return


def ordinal_of(pod: Item) -> int:
    """Return the ordinal at the end of a StatefulSet pod's name, or -1."""
    tail = pod.name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else -1


def _revision(item: Item) -> str:
    template = msgspec.json.encode(mapping(item.body, "spec", "template"), order="sorted")
    return f"{item.name}-{word_of(10, template.decode())}"


def _revision_of(pod: Item) -> str:
    return texts(pod.body, "metadata", "labels").get(_REVISION_LABEL, "")


def _pod(item: Item, ordinal: int, *, revision: str) -> JsonObject:
    metadata, spec = template_of(item)
    name = f"{item.name}-{ordinal}"
    labels = texts(metadata, "labels") | {
        "statefulset.kubernetes.io/pod-name": name,
        INDEX_LABEL: str(ordinal),
        _REVISION_LABEL: revision,
    }
    return {
        "metadata": metadata | {"name": name, "labels": labels},
        "spec": with_value(spec, ("hostname",), to=name),
    }


def _report(tools: Toolbox, item: Item, *, pods: list[Item], revision: str) -> None:
    ready = sum(is_ready(one) and not is_terminating(one) for one in pods)
    updated = sum(_revision_of(one) == revision for one in pods)
    is_complete = updated == len(pods)
    previous = text(item.body, "status", "currentRevision") or revision
    status: JsonObject = {
        "observedGeneration": generation(item),
        "replicas": len(pods),
        "availableReplicas": ready,
        "currentRevision": revision if is_complete else previous,
        "updateRevision": revision,
        "collisionCount": 0,
    }
    current = len(pods) if is_complete else len(pods) - updated
    status |= counts(readyReplicas=ready, currentReplicas=current, updatedReplicas=updated)
    tools.report(item, status)

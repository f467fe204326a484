"""Deployment → ReplicaSet → Pod.

Imitates the deployment and replicaset controllers: a ReplicaSet per template, named after its
hash; the old one is emptied once the new one is Ready; a Deployment's annotations are copied onto
its ReplicaSet, where they stay; ``status.replicas`` counts live pods only,
so it is 0 while the last pods still terminate. Zero counters are absent from a Deployment's status.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.sim.controllers.toolbox import (
    Toolbox,
    counts,
    generation,
    is_ready,
    live_pods,
    template_of,
)
from gpu_pruner.sim.identity import word_of
from gpu_pruner.sim.resources import PODS, REPLICASETS
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, child, mapping, number, text, texts

_HASH = "pod-template-hash"


def reconcile_deployment(tools: Toolbox, item: Item) -> None:
    """Bring the ReplicaSets of a Deployment to what it asks for, and report."""
    template = msgspec.json.encode(mapping(item.body, "spec", "template"), order="sorted")
    wanted_hash = word_of(10, template.decode())
    desired = number(item.body, "spec", "replicas", default=1)
    sets = tools.children(item, REPLICASETS)
    current = next((one for one in sets if _hash_of(one) == wanted_hash), None)
    if current is None:
        current = tools.create(
            REPLICASETS, _replica_set(item, wanted_hash, replicas=desired), owner=item
        )
        sets.append(current)
    tools.scale(current, desired)
    tools.annotate(current, _copied_annotations(item))
    ready = number(current.body, "status", "readyReplicas")
    for old in sets:
        if old is not current and ready >= desired:
            tools.scale(old, 0)
    _report(tools, item, sets=sets, current=current)


def _hash_of(replica_set: Item) -> str:
    return texts(replica_set.body, "metadata", "labels").get(_HASH, "")


def _copied_annotations(item: Item) -> dict[str, str]:
    return {
        key: value
        for key, value in texts(item.body, "metadata", "annotations").items()
        if not key.startswith("kubectl.kubernetes.io/")
    }


def _replica_set(item: Item, template_hash: str, *, replicas: int) -> JsonObject:
    metadata, spec = template_of(item)
    labels = texts(metadata, "labels") | {_HASH: template_hash}
    return {
        "metadata": {
            "name": f"{item.name}-{template_hash}",
            "labels": labels,
            "annotations": _copied_annotations(item),
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata | {"labels": labels}, "spec": spec},
        },
    }


def _report(tools: Toolbox, item: Item, *, sets: list[Item], current: Item) -> None:
    desired = number(item.body, "spec", "replicas", default=1)
    replicas = sum(number(one.body, "status", "replicas") for one in sets)
    ready = sum(number(one.body, "status", "readyReplicas") for one in sets)
    updated = number(current.body, "status", "replicas")
    complete = updated == desired == ready == replicas
    status: JsonObject = {"observedGeneration": generation(item)}
    status |= counts(
        replicas=replicas,
        updatedReplicas=updated,
        readyReplicas=ready,
        availableReplicas=ready,
        unavailableReplicas=max(0, desired - ready),
    )
    status["conditions"] = [
        tools.condition(
            item,
            "Available",
            holds=ready >= desired - desired // 4,
            reason="MinimumReplicasAvailable",
        ),
        tools.condition(
            item,
            "Progressing",
            holds=True,
            reason="NewReplicaSetAvailable" if complete else "ReplicaSetUpdated",
        ),
    ]
    tools.report(item, status)


def reconcile_replica_set(tools: Toolbox, item: Item) -> None:
    """Bring the number of a ReplicaSet's pods to what it asks for, and report."""
    desired = number(item.body, "spec", "replicas", default=1)
    pods = live_pods(tools, item)
    for _ in range(desired - len(pods)):
        metadata, spec = template_of(item)
        named: JsonObject = metadata | {"generateName": f"{item.name}-"}
        pods.append(tools.create(PODS, {"metadata": named, "spec": spec}, owner=item))
    surplus = sorted(pods, key=_keep_last)[: max(0, len(pods) - desired)]
    for pod in surplus:
        tools.delete(pod)
    kept = [one for one in pods if one not in surplus]
    ready = sum(is_ready(one) for one in kept)
    status: JsonObject = {"replicas": len(kept), "observedGeneration": generation(item)}
    status |= counts(fullyLabeledReplicas=len(kept), readyReplicas=ready, availableReplicas=ready)
    tools.report(item, status)


def _keep_last(pod: Item) -> tuple[bool, bool, int]:
    """Order by what goes first: unscheduled, then not Ready, then the newest."""
    bound = bool(child(pod.body, "spec", "nodeName"))
    return (bound, is_ready(pod), -_created(pod))


def _created(pod: Item) -> int:
    digits = text(pod.body, "metadata", "creationTimestamp")
    return int("".join(one for one in digits if one.isdecimal()) or 0)

"""LeaderWorkerSet → StatefulSet of leaders, and of each leader a StatefulSet of its workers.

Imitates kubernetes-sigs/lws (``leaderworkerset_controller.go``, ``pod_controller.go``): the workers
belong to the leader *pod* and go with it, and their ordinals begin at 1; a group is as large as
``leaderWorkerTemplate.size``, the leader counted; the status counts groups.
"""

from __future__ import annotations

from gpu_pruner.model.annotations import LWS_NAME
from gpu_pruner.sim.controllers.toolbox import Toolbox, generation, is_live, is_ready
from gpu_pruner.sim.resources import PODS, STATEFULSETS
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, mapping, number, texts

_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"


def reconcile_leader_worker_set(tools: Toolbox, item: Item) -> None:
    """Bring the StatefulSets of a LeaderWorkerSet to what it asks for, and report."""
    groups = number(item.body, "spec", "replicas", default=1)
    size = number(item.body, "spec", "leaderWorkerTemplate", "size", default=1)
    owned = tools.children(item, STATEFULSETS)
    if owned:
        tools.scale(owned[0], groups)
    else:
        body = _stateful_set(item, item.name, groups, labels={_WORKER_INDEX: "0"})
        tools.create(STATEFULSETS, body, owner=item)
    leaders = [pod for one in owned for pod in tools.children(one, PODS) if is_live(pod)]
    for leader in leaders:
        if size > 1 and not tools.children(leader, STATEFULSETS):
            group = {_GROUP_INDEX: leader.name.rpartition("-")[2]}
            body = _stateful_set(item, leader.name, size - 1, labels=group, first=1)
            tools.create(STATEFULSETS, body, owner=leader)
    _report(tools, item, leaders=leaders, size=size)


def _stateful_set(
    item: Item, name: str, replicas: int, *, labels: dict[str, str], first: int = 0
) -> JsonObject:
    """Return a StatefulSet of leaders (from 0) or of one group's workers (from 1)."""
    role = "workerTemplate" if first else "leaderTemplate"
    templates = mapping(item.body, "spec", "leaderWorkerTemplate")
    template = mapping(templates, role) or mapping(templates, "workerTemplate")
    selected = {LWS_NAME: item.name} | labels
    metadata: JsonObject = {
        "labels": texts(template, "metadata", "labels") | selected,
        "annotations": texts(template, "metadata", "annotations"),
    }
    return {
        "metadata": {"name": name, "labels": selected},
        "spec": {
            "replicas": replicas,
            "serviceName": item.name,
            "podManagementPolicy": "Parallel",
            "ordinals": {"start": first},
            "selector": {"matchLabels": selected},
            "template": {"metadata": metadata, "spec": mapping(template, "spec")},
        },
    }


def _report(tools: Toolbox, item: Item, *, leaders: list[Item], size: int) -> None:
    ready = sum(_is_group_ready(tools, one, size=size) for one in leaders)
    desired = number(item.body, "spec", "replicas", default=1)
    status: JsonObject = {
        "observedGeneration": generation(item),
        "replicas": len(leaders),
        "readyReplicas": ready,
        "updatedReplicas": len(leaders),
        "hpaPodSelector": f"{LWS_NAME}={item.name},{_WORKER_INDEX}=0",
        "conditions": [tools.condition(item, "Available", holds=ready >= desired)],
    }
    tools.report(item, status)


def _is_group_ready(tools: Toolbox, leader: Item, *, size: int) -> bool:
    workers = sum(
        number(one.body, "status", "readyReplicas") for one in tools.children(leader, STATEFULSETS)
    )
    return is_ready(leader) and workers >= size - 1

"""Kubeflow Notebook → StatefulSet.

Imitates the notebook controller: the StatefulSet's size comes from the stop annotation alone, so
scaling the StatefulSet itself is undone at once. The status mirrors the pod's first container.
"""

from __future__ import annotations

from gpu_pruner.model.annotations import NOTEBOOK_STOPPED
from gpu_pruner.sim.controllers.toolbox import Toolbox, is_ready, template_of
from gpu_pruner.sim.resources import PODS, STATEFULSETS
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, elements, mapping, number, texts


def reconcile_notebook(tools: Toolbox, item: Item) -> None:
    """Bring the StatefulSet of a Notebook to what its stop annotation says, and report."""
    stopped = NOTEBOOK_STOPPED in texts(item.body, "metadata", "annotations")
    replicas = 0 if stopped else 1
    owned = tools.children(item, STATEFULSETS)
    if owned:
        tools.scale(owned[0], replicas)
    else:
        tools.create(STATEFULSETS, _stateful_set(item, replicas), owner=item)
    _report(tools, item, owned=owned)


def _stateful_set(item: Item, replicas: int) -> JsonObject:
    metadata, spec = template_of(item)
    labels = {"statefulset": item.name, "notebook-name": item.name}
    merged = texts(item.body, "metadata", "labels") | labels
    return {
        "metadata": {"name": item.name, "labels": {"notebook-name": item.name}},
        "spec": {
            "replicas": replicas,
            "serviceName": item.name,
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata | {"labels": merged}, "spec": spec},
        },
    }


def _report(tools: Toolbox, item: Item, *, owned: list[Item]) -> None:
    pods = [pod for one in owned for pod in tools.children(one, PODS)]
    states = [one for pod in pods for one in elements(pod.body, "status", "containerStatuses")]
    ready = sum(number(one.body, "status", "readyReplicas") for one in owned)
    status: JsonObject = {
        "conditions": [tools.condition(item, "Ready", holds=any(map(is_ready, pods)))],
        "readyReplicas": ready,
        "containerState": mapping(states[0], "state") if states else {},
    }
    tools.report(item, status)

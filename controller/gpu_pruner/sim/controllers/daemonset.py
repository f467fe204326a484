"""DaemonSet → one Pod per node. It has no size, which is why nobody can pause it."""

from __future__ import annotations

from gpu_pruner.sim.controllers.toolbox import (
    Toolbox,
    generation,
    is_ready,
    live_pods,
    template_of,
)
from gpu_pruner.sim.resources import NODES, PODS
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, text, texts


def reconcile_daemon_set(tools: Toolbox, item: Item) -> None:
    """Give every node that the selector names a pod, and report."""
    metadata, spec = template_of(item)
    wanted = texts(spec, "nodeSelector")
    nodes = [
        one.name
        for one in tools.store.all(NODES)
        if wanted.items() <= texts(one.body, "metadata", "labels").items()
    ]
    pods = live_pods(tools, item)
    served = {_pinned_to(one) for one in pods}
    for node in nodes:
        if node not in served:
            pinned = texts(spec, "nodeSelector") | {"kubernetes.io/hostname": node}
            named: JsonObject = metadata | {"generateName": f"{item.name}-"}
            body: JsonObject = {"metadata": named, "spec": spec | {"nodeSelector": pinned}}
            pods.append(tools.create(PODS, body, owner=item))
    ready = sum(is_ready(one) for one in pods)
    tools.report(
        item,
        {
            "currentNumberScheduled": sum(bool(text(p.body, "spec", "nodeName")) for p in pods),
            "desiredNumberScheduled": len(nodes),
            "numberMisscheduled": 0,
            "numberReady": ready,
            "numberAvailable": ready,
            "updatedNumberScheduled": len(pods),
            "observedGeneration": generation(item),
        },
    )


def _pinned_to(pod: Item) -> str:
    return texts(pod.body, "spec", "nodeSelector").get("kubernetes.io/hostname", "")

"""Builds the objects of a world as the simulation begins: nodes, namespaces, workloads.

Workloads are created through the same controllers and kubelet as later ones, with the present moved
back to when they were started, so that their pods, times and devices are consistent.
Called by `cluster`.
"""

from __future__ import annotations

from collections import Counter

from gpu_pruner.model.units import MINUTE, Timestamp, rfc3339
from gpu_pruner.settings.lease import OWN_NAMESPACE
from gpu_pruner.sim.controllers.loop import ControlLoop
from gpu_pruner.sim.meter import board_of
from gpu_pruner.sim.resources import NAMESPACES, NODES, Resource
from gpu_pruner.sim.state import State
from gpu_pruner.sim.targets import Target
from gpu_pruner.sim.tree import JsonObject, mapping, with_value
from gpu_pruner.sim.world import Namespace, Node, Workload

_SIZED = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
_A_DAY = 24 * 60 * MINUTE


def seed(state: State, control: ControlLoop, *, begin: Timestamp) -> None:
    """Create everything, the oldest first, and let the controllers settle after each."""
    world, moments = state.world, state.moments
    oldest = max((one.started_minutes_ago for one in world.workloads), default=0.0)
    with moments.at(begin - oldest * MINUTE - _A_DAY):
        _create_namespaces(state)
        for node in world.nodes:
            _create_node(state, node)
    for workload in sorted(world.workloads, key=lambda one: -one.started_minutes_ago):
        resource = state.catalogue.of_kind(workload.kind)
        if resource is None:
            continue
        with moments.at(begin - workload.started_minutes_ago * MINUTE):
            state.writer.create(Target(resource, workload.namespace), manifest_of(workload))
            control.drain()


def _create_namespaces(state: State) -> None:
    described = {one.name: one for one in state.world.namespaces}
    used = {one.namespace for one in state.world.workloads}
    for name in sorted({"default", "kube-system", OWN_NAMESPACE, *used, *described}):
        namespace = described.get(name, Namespace(name=name))
        metadata: JsonObject = {
            "name": name,
            "labels": {"kubernetes.io/metadata.name": name} | namespace.labels,
            "annotations": dict(namespace.annotations),
        }
        _put(state, NAMESPACES, body={"metadata": metadata, "status": {"phase": "Active"}})


def _create_node(state: State, node: Node) -> None:
    labels = {
        "kubernetes.io/hostname": node.name,
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": node.model.replace(" ", "-"),
        "nvidia.com/gpu.count": str(node.gpus),
        "nvidia.com/gpu.memory": str(board_of(node.model).memory_mib),
    }
    if node.shares > 1:
        labels["nvidia.com/gpu.replicas"] = str(node.shares)
        labels["nvidia.com/gpu.sharing-strategy"] = "time-slicing"
    devices = Counter(one.resource for one in state.occupancy.devices[node.name])
    room = {"cpu": "96", "memory": "1056763348Ki", "pods": "110"}
    room |= {name: str(count) for name, count in devices.items()}
    ready = node_condition(ready=node.ready, at=rfc3339(state.moments.now()))
    body: JsonObject = {
        "metadata": {"name": node.name, "labels": labels | node.labels},
        "spec": {},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }
    _put(state, NODES, body=body)


def _put(state: State, resource: Resource, *, body: JsonObject) -> None:
    owned: JsonObject = {
        "uid": state.identities.uid(),
        "creationTimestamp": rfc3339(state.moments.now()),
    }
    metadata = mapping(body, "metadata") | owned
    state.store.put(resource, with_value(body, ("metadata",), to=metadata))


def node_condition(*, ready: bool, at: str) -> JsonObject:
    """Return the Ready condition of a node; Unknown is what a lost node shows."""
    return {
        "type": "Ready",
        "status": "True" if ready else "Unknown",
        "reason": "KubeletReady" if ready else "NodeStatusUnknown",
        "lastTransitionTime": at,
        "lastHeartbeatTime": at,
    }


def manifest_of(workload: Workload) -> JsonObject:
    """Return what somebody would have applied to get this workload."""
    labels = {"app": workload.name} | workload.labels
    metadata: JsonObject = {
        "name": workload.name,
        "labels": labels,
        "annotations": dict(workload.annotations),
    }
    pod = _pod_spec(workload)
    if workload.kind == "Pod":
        return {"metadata": metadata, "spec": pod}
    if workload.kind == "Notebook":
        return {"metadata": metadata, "spec": {"template": {"spec": pod}}}
    if workload.kind == "InferenceService":
        return {
            "metadata": metadata,
            "spec": {"predictor": {"minReplicas": workload.replicas} | pod},
        }
    if workload.kind == "LeaderWorkerSet":
        template = {"size": workload.group_size, "workerTemplate": {"spec": pod}}
        groups: JsonObject = {"replicas": workload.replicas, "leaderWorkerTemplate": template}
        return {"metadata": metadata, "spec": groups}
    selector = {"app": workload.name}
    spec: JsonObject = {
        "selector": {"matchLabels": selector},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if workload.kind in _SIZED:
        spec = {"replicas": workload.replicas} | spec
    if workload.kind == "StatefulSet":
        spec["serviceName"] = workload.name
    return {"metadata": metadata, "spec": spec}


def _pod_spec(workload: Workload) -> JsonObject:
    room = {workload.resource: str(workload.gpus)} if workload.gpus else {}
    container: JsonObject = {
        "name": workload.name if workload.kind == "Notebook" else "main",
        "image": f"registry.example/{workload.name}:1",
        "resources": {"limits": room, "requests": room},
    }
    spec: JsonObject = {"containers": [container]}
    if workload.node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": workload.node}
    return spec

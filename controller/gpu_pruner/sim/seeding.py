"""Builds the objects of a world as the simulation begins: nodes, namespaces, workloads.

Workloads are created through the same controllers and kubelet as later ones, with the present moved
back to when they were started, so that their pods, times and devices are consistent.
Called by `cluster`.
"""

from __future__ import annotations

from gpu_pruner.model.units import MINUTE, Timestamp, rfc3339
from gpu_pruner.sim.controllers.loop import ControlLoop
from gpu_pruner.sim.identity import Identities
from gpu_pruner.sim.meter import board_of
from gpu_pruner.sim.moments import Moments
from gpu_pruner.sim.occupancy import Occupancy
from gpu_pruner.sim.resources import NAMESPACES, NODES, Catalogue, Resource
from gpu_pruner.sim.store import Store
from gpu_pruner.sim.tree import JsonObject
from gpu_pruner.sim.world import Node, Workload, World
from gpu_pruner.sim.writes import Target, Writer

_SIZED = frozenset({"Deployment", "StatefulSet"})
_A_DAY = 24 * 60 * MINUTE


class Seeder:
    """Brings a world into an empty store."""

    def __init__(
        self,
        world: World,
        store: Store,
        *,
        writer: Writer,
        catalogue: Catalogue,
        moments: Moments,
        identities: Identities,
    ) -> None:
        self._world = world
        self._store = store
        self._writer = writer
        self._catalogue = catalogue
        self._moments = moments
        self._identities = identities

    def seed(self, control: ControlLoop, occupancy: Occupancy, *, begin: Timestamp) -> None:
        """Create everything, the oldest first, and let the controllers settle after each."""
        oldest = max((one.started_minutes_ago for one in self._world.workloads), default=0.0)
        with self._moments.at(begin - oldest * MINUTE - _A_DAY):
            self._namespaces()
            for node in self._world.nodes:
                resources = [one.resource for one in occupancy.devices[node.name]]
                self._node(node, {name: resources.count(name) for name in resources})
        for workload in sorted(self._world.workloads, key=lambda one: -one.started_minutes_ago):
            with self._moments.at(begin - workload.started_minutes_ago * MINUTE):
                self._create(workload)
                control.drain()

    def _namespaces(self) -> None:
        described = {one.name: one for one in self._world.namespaces}
        used = {one.namespace for one in self._world.workloads}
        for name in sorted({"default", "kube-system", *used, *described}):
            metadata: JsonObject = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
            if name in described:
                metadata["annotations"] = dict(described[name].annotations)
                metadata["labels"] = {"kubernetes.io/metadata.name": name} | described[name].labels
            self._put(NAMESPACES, metadata, {"status": {"phase": "Active"}})

    def _node(self, node: Node, resources: dict[str, int]) -> None:
        board = board_of(node.model)
        labels = {
            "kubernetes.io/hostname": node.name,
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": node.model.replace(" ", "-"),
            "nvidia.com/gpu.count": str(node.gpus),
            "nvidia.com/gpu.memory": str(board.memory_mib),
        }
        room = {"cpu": "96", "memory": "1056763348Ki", "pods": "110"}
        room |= {name: str(count) for name, count in resources.items()}
        moment = rfc3339(self._moments.now())
        ready = node_condition(ready=node.ready, at=moment)
        metadata: JsonObject = {"name": node.name, "labels": labels | node.labels}
        status: JsonObject = {"capacity": room, "allocatable": room, "conditions": [ready]}
        self._put(NODES, metadata, {"spec": {}, "status": status})

    def _put(self, resource: Resource, metadata: JsonObject, rest: JsonObject) -> None:
        owned: JsonObject = {
            "uid": self._identities.uid(),
            "creationTimestamp": rfc3339(self._moments.now()),
        }
        self._store.put(resource, {"metadata": metadata | owned} | rest)

    def _create(self, workload: Workload) -> None:
        resource = self._catalogue.of_kind(workload.kind)
        if resource is not None:
            self._writer.create(Target(resource, workload.namespace), manifest_of(workload))


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

"""Scheduler, kubelet and device plugin in one: pods get a node, GPUs, and a life.

Imitates what they show through the API: a pod without free GPUs stays Pending and Unschedulable;
a bound one starts, becomes Ready, and holds its devices until it is gone for good; a deleted one
keeps running for its grace. Called by `controllers.loop`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.model.units import Seconds, rfc3339
from gpu_pruner.sim.controllers.statefulset import INDEX_LABEL
from gpu_pruner.sim.controllers.toolbox import Toolbox, is_terminating
from gpu_pruner.sim.identity import digest
from gpu_pruner.sim.occupancy import Device, Holding, Occupancy
from gpu_pruner.sim.resources import NODES, PODS
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, elements, mapping, number, text, texts, with_value
from gpu_pruner.sim.world import Behaviour, World

_ANY_INDEX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long the steps of a pod's life take, in simulated seconds."""

    start_seconds: Seconds = 12.0
    """From bound to running containers."""
    ready_seconds: Seconds = 8.0
    """From running to Ready."""
    stop_seconds: Seconds = 10.0
    """From deleted to gone."""


class Kubelet:
    """Runs the pods of all nodes."""

    def __init__(self, tools: Toolbox, occupancy: Occupancy, *, world: World, pace: Pace) -> None:
        self._tools = tools
        self._occupancy = occupancy
        self._world = world
        self._pace = pace
        self._stopping: set[str] = set()
        self._indices: dict[str, dict[str, int]] = {}

    def reconcile(self, pod: Item) -> None:
        """Take the next step of a pod's life."""
        if is_terminating(pod):
            self._stop(pod)
        elif not text(pod.body, "spec", "nodeName"):
            self._schedule(pod)

    def retry(self) -> None:
        """Try again to find a node for every pod that has none."""
        for pod in self._tools.store.all(PODS):
            if not text(pod.body, "spec", "nodeName") and not is_terminating(pod):
                self._schedule(pod)

    def forget(self, pod: Item) -> None:
        """Take back what a pod that is gone held."""
        self._stopping.discard(pod.uid)
        self._occupancy.release(pod.uid, self._tools.moments.now())
        for indices in self._indices.values():
            indices.pop(pod.uid, None)
        self.retry()

    def _schedule(self, pod: Item) -> None:
        wanted = gpu_requests(pod.body)
        node = self._node_for(pod, wanted)
        if node is None:
            condition = self._tools.condition(
                pod, "PodScheduled", holds=False, reason="Unschedulable"
            )
            self._tools.report(pod, {"phase": "Pending", "conditions": [condition]})
            return
        bound = with_value(pod.body, ("spec", "nodeName"), to=node)
        scheduled = self._tools.condition(pod, "PodScheduled", holds=True)
        status: JsonObject = {"phase": "Pending", "conditions": [scheduled]}
        item = self._tools.store.put(PODS, with_value(bound, ("status",), to=status))
        self._allocate(item, node)
        self._tools.moments.after(self._pace.start_seconds, lambda: self._run(item))

    def _node_for(self, pod: Item, wanted: dict[str, int]) -> str | None:
        selector = texts(pod.body, "spec", "nodeSelector")
        fitting: list[tuple[int, str]] = []
        for node in self._tools.store.all(NODES):
            free = {name: len(self._occupancy.free(node.name, name)) for name in wanted}
            has_room = all(free[name] >= count for name, count in wanted.items())
            labels = texts(node.body, "metadata", "labels")
            if has_room and selector.items() <= labels.items() and _is_node_ready(node):
                fitting.append((-sum(free.values()), node.name))
        return min(fitting)[1] if fitting else None

    def _allocate(self, pod: Item, node: str) -> None:
        devices: list[Device] = []
        for name, count in gpu_requests(pod.body).items():
            devices += self._occupancy.free(node, name)[:count]
        root = self._tools.root_of(pod)
        index = self._index_of(pod, root)
        containers = [
            text(one, "name")
            for one in elements(pod.body, "spec", "containers")
            for _ in range(sum(_gpus(one).values()))
        ]
        self._occupancy.hold(
            tuple(
                Holding(
                    device=device,
                    namespace=pod.namespace,
                    pod=pod.name,
                    uid=pod.uid,
                    container=container,
                    behaviour=self._behaviour(root, pod=index, gpu=position),
                    since=self._tools.moments.now(),
                )
                for position, (device, container) in enumerate(
                    zip(devices, containers, strict=False)
                )
            )
        )

    def _behaviour(self, root: Item, *, pod: int, gpu: int) -> Behaviour:
        described = self._world.workload(
            root.resource.kind, namespace=root.namespace, name=root.name
        )
        return described.behaviour_of(pod, gpu) if described else Behaviour()

    def _index_of(self, pod: Item, root: Item) -> int:
        ordinal = texts(pod.body, "metadata", "labels").get(INDEX_LABEL, "")
        if ordinal.isdecimal():
            return int(ordinal)
        taken = self._indices.setdefault(root.uid, {})
        free = next(one for one in range(_ANY_INDEX) if one not in taken.values())
        taken[pod.uid] = free
        return free

    def _run(self, pod: Item) -> None:
        item = self._current(pod)
        if item is None:
            return
        moment = rfc3339(self._tools.moments.now())
        self._tools.report(item, self._status(item, ready=False, started_at=moment))
        self._tools.moments.after(self._pace.ready_seconds, lambda: self._become_ready(pod))

    def _become_ready(self, pod: Item) -> None:
        item = self._current(pod)
        if item is not None:
            started = text(item.body, "status", "startTime")
            self._tools.report(item, self._status(item, ready=True, started_at=started))

    def _current(self, pod: Item) -> Item | None:
        """Return the newest version, unless the pod is gone, another, or being deleted."""
        item = self._tools.store.get(PODS, pod.key)
        if item is None or item.uid != pod.uid or is_terminating(item):
            return None
        return item

    def _status(self, pod: Item, *, ready: bool, started_at: str) -> JsonObject:
        condition = self._tools.condition
        address = "10.0." + ".".join(str(byte) for byte in digest(pod.uid)[:2])
        containers = [
            {
                "name": text(one, "name"),
                "image": text(one, "image"),
                "imageID": text(one, "image"),
                "containerID": f"containerd://{digest(pod.uid, text(one, 'name')).hex()}",
                "ready": ready,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": started_at}},
            }
            for one in elements(pod.body, "spec", "containers")
        ]
        return {
            "phase": "Running",
            "startTime": started_at,
            "podIP": address,
            "conditions": [
                condition(pod, "PodScheduled", holds=True),
                condition(pod, "Initialized", holds=True),
                condition(pod, "ContainersReady", holds=ready),
                condition(pod, "Ready", holds=ready),
            ],
            "containerStatuses": containers,
        }

    def _stop(self, pod: Item) -> None:
        if pod.uid in self._stopping:
            return
        self._stopping.add(pod.uid)
        self._tools.moments.after(self._pace.stop_seconds, lambda: self._remove(pod))

    def _remove(self, pod: Item) -> None:
        item = self._tools.store.get(PODS, pod.key)
        if item is not None and item.uid == pod.uid:
            self._tools.delete(item, grace_seconds=0)


def _is_node_ready(node: Item) -> bool:
    return any(
        text(one, "type") == "Ready" and text(one, "status") == "True"
        for one in elements(node.body, "status", "conditions")
    )


def _gpus(container: JsonObject) -> dict[str, int]:
    limits = mapping(container, "resources", "limits")
    return {name: number(limits, name) for name in limits if name.startswith("nvidia.com/")}


def gpu_requests(pod: JsonObject) -> dict[str, int]:
    """Return how many devices of each GPU resource the containers of a pod ask for."""
    total: dict[str, int] = {}
    for container in elements(pod, "spec", "containers"):
        for name, count in _gpus(container).items():
            total[name] = total.get(name, 0) + count
    return total

"""A few random workloads that live for days: what the API server and the exporters say of them.

Roots and GPUWorkloads are objects of `memory_cluster`, which the product's own actor patches. Pods
follow their root as a kubelet would have it. Telemetry comes a sample a minute, and every sample
that was ever shown can be read again in `Gpu` and `Life`, by whoever wants to know the truth.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import msgspec
from support.devices import signed
from support.manual_clock import ManualClock
from support.memory_cluster import MemoryCluster, tree
from support.screens import screen_of

from gpu_pruner.kube.bookkeeping import to_bookkeeping
from gpu_pruner.kube.gpuworkloads import GPUWorkload
from gpu_pruner.kube.resources import (
    DEPLOYMENTS,
    GPUWORKLOADS,
    NAMESPACES,
    NOTEBOOKS,
    STATEFULSETS,
    Resource,
)
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import EXEMPT, OWNER, PAUSED
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.signals import DeviceId, Period, PodName, Signal, Track
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.workload import (
    NodeRecord,
    OwnerObject,
    OwnerRef,
    PodPhase,
    PodRecord,
    RootRef,
)
from gpu_pruner.observe.owner_records import owner_object

MINUTE = 60.0
RESOURCES = {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFULSETS, "Notebook": NOTEBOOKS}
BETWEEN = {"Deployment": "ReplicaSet", "Notebook": "StatefulSet"}
"""What stands between a root of a kind and its pods."""
STOPPED = "kubeflow-resource-stopped"
_METRICS = {
    Signal.ENGINE: "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    Signal.UTIL: "DCGM_FI_DEV_GPU_UTIL",
    Signal.ENERGY: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
}


@dataclass
class Gpu:
    """One device. Its lists hold one entry per minute since the begin."""

    uuid: str
    model: str
    engine: list[float]
    """What its program does, ratio 0-1, in each minute in which it runs."""
    dark: list[bool]
    """Whether the minute has no sample."""


@dataclass
class Life:
    """The pods of a workload, which come and go together."""

    begin: float
    ready: float
    gone: float = math.inf

    def holds(self, at: float) -> bool:
        """Whether the pods are there, Ready or not."""
        return self.begin <= at < self.gone


@dataclass
class App:
    """One workload; `pods` are the devices of each of its pods."""

    root: RootRef
    owner: str
    pods: list[list[Gpu]]
    exempt: bool = False
    resource: str = "nvidia.com/gpu"
    lives: list[Life] = field(default_factory=list)

    @property
    def between(self) -> RootRef:
        """Return what owns the pods: the root, or what it makes."""
        kind = BETWEEN.get(self.root.kind)
        if kind is None:
            return self.root
        uid = f"{self.root.uid}-{kind.lower()}"
        return RootRef(kind, self.root.namespace, f"{self.root.name}-part", "apps", uid)

    @property
    def between_ref(self) -> OwnerRef:
        one = self.between
        return OwnerRef(one.group, one.kind, one.name, one.uid)

    @property
    def gpus(self) -> list[Gpu]:
        return [gpu for pod in self.pods for gpu in pod]

    def life(self, at: float) -> Life | None:
        return next((one for one in self.lives if one.holds(at)), None)

    def works(self, gpu: Gpu, minute: int, begin: float) -> float:
        """Return what a device's program did in a minute; 0 where no pod was Ready at its end."""
        life = self.life(begin + (minute + 1) * MINUTE)
        there = life is not None and life.ready < begin + (minute + 1) * MINUTE
        return gpu.engine[minute] if there and minute < len(gpu.engine) else 0.0


@dataclass
class SmallCluster:
    """The cluster, as the controller's stages want it: `TelemetrySource` and `Cluster`."""

    apps: list[App]
    begin: float
    minutes: int
    clock: ManualClock
    rng: Random
    api: MemoryCluster = field(default_factory=MemoryCluster)

    def __post_init__(self) -> None:
        for namespace in {one.root.namespace for one in self.apps}:
            self.api.put(NAMESPACES, {"metadata": {"name": namespace, "uid": f"uid-{namespace}"}})
        for app in self.apps:
            app.lives.append(Life(self.begin - 86_400, self.begin - 86_300))
            self._put(app)

    # What people and kubelets do.

    def is_off(self, app: App) -> bool:
        """Whether the root wants no pods."""
        root = self._root(app)
        if app.root.kind == "Notebook":
            return STOPPED in root["metadata"]["annotations"]
        return bool(root["spec"]["replicas"] == 0)

    def is_paused(self, app: App) -> bool:
        """Whether the controller's record stands on a root that wants no pods."""
        return self.is_off(app) and PAUSED in self._root(app)["metadata"]["annotations"]

    def settle(self, at: float) -> None:
        """Let the pods follow their roots: they end within the minute, and start at once."""
        for app in self.apps:
            life = app.lives[-1]
            if self.is_off(app) and life.gone == math.inf:
                life.gone = at + self.rng.uniform(2, 40)
            elif not self.is_off(app) and life.gone <= at:
                app.lives.append(Life(at, at + self.rng.uniform(5, 55)))

    def start_by_hand(self, app: App) -> None:
        """Start a paused root as somebody does who has kubectl, and leave the record."""
        root = json.loads(json.dumps(self._root(app)))
        if app.root.kind == "Notebook":
            del root["metadata"]["annotations"][STOPPED]
        else:
            root["spec"]["replicas"] = len(app.pods)
        self.api.put(RESOURCES[app.root.kind], root)

    def _root(self, app: App) -> Any:
        return self.api.stored(RESOURCES[app.root.kind], app.root.namespace, app.root.name)

    def _put(self, app: App) -> None:
        notes = {OWNER: app.owner} if app.owner else {}
        notes |= {EXEMPT: "true"} if app.exempt else {}
        size = {} if app.root.kind == "Notebook" else {"replicas": len(app.pods)}
        meta = {"name": app.root.name, "namespace": app.root.namespace, "uid": app.root.uid}
        body = {"metadata": {**meta, "generation": 1, "annotations": notes}, "spec": size}
        self.api.put(RESOURCES[app.root.kind], body)

    # What the API server says.

    def view(self) -> ClusterView:
        """Return everything as it is now."""
        now = self.clock.now()
        self.settle(now)
        owners = [one for app in self.apps for one in self._owners(app, now)]
        books = {}
        for plural, namespace, name in list(self.api._objects):
            if plural == GPUWORKLOADS.plural:
                text = json.dumps(self.api.stored(GPUWORKLOADS, namespace, name))
                found = to_bookkeeping(msgspec.json.decode(text, type=GPUWorkload))
                assert found is not None
                books[found.root.uid] = found
        pods = tuple(pod for app in self.apps for pod in self._pods(app, now))
        nodes = {app.root.uid: NodeRecord(name=app.root.uid, ready=True) for app in self.apps}
        return ClusterView(
            pods=pods, nodes=nodes, owners={one.root.uid: one for one in owners}, books=books
        )

    def _owners(self, app: App, now: float) -> Iterator[OwnerObject]:
        root = self._owner(app, RESOURCES[app.root.kind], now)
        yield root
        if app.between != app.root:
            own = OwnerRef(app.root.group, app.root.kind, app.root.name, app.root.uid)
            yield replace(root, root=app.between, owner=own, annotations={})

    def _owner(self, app: App, resource: Resource, now: float) -> OwnerObject:
        life = app.life(now)
        there = len(app.pods) if life else 0
        ready = there if life and life.ready <= now else 0
        told = dict(self._root(app))
        counted = {"replicas": there, "readyReplicas": ready, "updatedReplicas": there}
        told["status"] = {"observedGeneration": tree(told["metadata"])["generation"], **counted}
        return owner_object(msgspec.json.decode(json.dumps(told), type=Owner), resource)

    def _pods(self, app: App, now: float) -> Iterator[PodRecord]:
        life = app.life(now)
        if life is None:
            return
        for number, devices in enumerate(app.pods):
            name = self._pod_name(app, number, life)
            is_ready = life.ready <= now
            yield PodRecord(
                uid=f"uid-{name.namespace}-{name.name}-{life.begin}",
                namespace=name.namespace,
                name=name.name,
                phase=PodPhase.RUNNING,
                created_at=life.begin,
                node=app.root.uid,
                requests={app.resource: len(devices)},
                owner=app.between_ref,
                ready_since=life.ready if is_ready else None,
                containers_started_at=life.ready if is_ready else None,
                terminating=life.gone < math.inf,
            )

    def _pod_name(self, app: App, number: int, life: Life) -> PodName:
        told = number if app.root.kind == "StatefulSet" else f"{number}-{app.lives.index(life)}"
        return PodName(app.root.namespace, f"{app.root.name}-{told}")

    # What the exporters say.

    async def screen(self, *, now: float, back_to: float) -> Screen:
        period = Period.ending(now, length=max(now - back_to, 3 * MINUTE), step_seconds=MINUTE)
        tracks = [
            track
            for app in self.apps
            for number in range(len(app.pods))
            for gpu in app.pods[number]
            for track in self._tracks(app, number, gpu, period.first - 6, period.last)
        ]
        return screen_of(tracks, period)

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        wanted = {one.uuid for one in devices}
        return tuple(
            track
            for app in self.apps
            for number in range(len(app.pods))
            for gpu in app.pods[number]
            if gpu.uuid in wanted
            for track in self._tracks(app, number, gpu, period.first - 1, period.last)
        )

    def _tracks(self, app: App, number: int, gpu: Gpu, first: int, last: int) -> Iterator[Track]:
        """Yield a device's tracks, under whatever labels it had in each step."""
        zero = round(self.begin / MINUTE)
        groups: dict[PodName | None, list[int]] = {}
        for step in range(first, last + 1):
            minute = step - zero
            if not (0 <= minute < len(gpu.dark) and gpu.dark[minute]):
                life = app.life((step + 1) * MINUTE)
                name = self._pod_name(app, number, life) if life else None
                groups.setdefault(name, []).append(step)
        for name, steps in groups.items():
            labels = signed(
                name, "exported", uid="", node=app.root.uid, model=gpu.model, replica="",
                mig_profile="",
            )  # fmt: skip
            for signal, metric in _METRICS.items():
                points = tuple((step, self._value(signal, app, gpu, step - zero)) for step in steps)
                yield Track(DeviceId(gpu.uuid), signal, metric, labels, points)

    def _value(self, signal: Signal, app: App, gpu: Gpu, minute: int) -> float:
        if signal is Signal.ENERGY:
            return 70.0 * MINUTE * (minute + 10**6)
        busy = app.works(gpu, minute, self.begin) if minute >= 0 else 0.0
        return busy if signal is Signal.ENGINE else float(round(busy * 100))


def random_gpu(rng: Random, uuid: str, model: str, minutes: int) -> Gpu:
    """Return a device that works and rests in turns, with noise far below work, and some gaps."""
    engine: list[float] = []
    while len(engine) < minutes:
        engine += [rng.uniform(0.05, 0.95)] * round(rng.uniform(20, 200))
        engine += [rng.choice((0.0, 0.0, 0.004))] * round(rng.uniform(10, 500))
    dark = [False] * minutes
    for _ in range(rng.choice((0, 1, 2)) * minutes // 1440):
        start, length = rng.randrange(minutes), rng.choice((1, 2, 5, 40))
        dark[start : start + length] = [True] * len(dark[start : start + length])
    return Gpu(uuid, model, engine[:minutes], dark)

"""A cluster told in a few lines: workloads, their pods and devices, as `ClusterView` and tracks.

A workload of a case; everything has a default, which is a healthy idle Deployment of one pod:

    kind: Deployment | StatefulSet | Notebook | ReplicaSet | Pod | DaemonSet | Job | Rollout
          | LeaderWorkerSet | InferenceService
    namespace: team-a
    gpus: 4 | [idle, busy, {engine: 0.4 at -20m}]      devices of the only pod
    pods: 3 | [{gpus: 2, ready: -10m}, {phase: Pending, created: -5m, gpus: 1}]
    owner: {desired: 2, ready: 1, updated: 1, generation: 2, halted: true, deletes_volumes: true,
            sized_by: kubectl, paused_by_us: true, annotations: {}, labels: {}, hidden: true}
    intent: {keep_until: 2h, keep_by: jo, exempt: true, exempt_until: 1d, released: -30s,
             release_by: ada, release_reason: done for today}
    book: {phase: Warned, warned_at: -10m, pause_at: 5m, warned_mode: scale-down}

A pod: name, ready (time or never), created, started, phase, terminating, node, requests,
annotations, labels, working (an init container holds the devices of a pending pod).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from support.devices import STEP_SECONDS, Device, device_spec
from support.telling_time import moment

from gpu_pruner.model.book import Book, PauseRecord, Phase
from gpu_pruner.model.cluster import Bookkeeping, ClusterView
from gpu_pruner.model.signals import DeviceId, PodName
from gpu_pruner.model.workload import (
    Intent,
    NamespaceRecord,
    NodeRecord,
    OwnerObject,
    OwnerRef,
    PodPhase,
    PodRecord,
    Release,
    RootRef,
)

# From the pod upwards: what owns what.
CHAINS: dict[str, list[tuple[str, str]]] = {
    "Deployment": [("apps", "ReplicaSet"), ("apps", "Deployment")],
    "ReplicaSet": [("apps", "ReplicaSet")],
    "StatefulSet": [("apps", "StatefulSet")],
    "Notebook": [("apps", "StatefulSet"), ("kubeflow.org", "Notebook")],
    "Pod": [],
    "DaemonSet": [("apps", "DaemonSet")],
    "Job": [("batch", "Job")],
    "Rollout": [("apps", "ReplicaSet"), ("argoproj.io", "Rollout")],
    "CronJob": [("batch", "Job"), ("batch", "CronJob")],
    "LeaderWorkerSet": [
        ("apps", "StatefulSet"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    ],
    "InferenceService": [
        ("apps", "ReplicaSet"),
        ("apps", "Deployment"),
        ("serving.kserve.io", "InferenceService"),
    ],
    "NIMService": [
        ("apps", "ReplicaSet"),
        ("apps", "Deployment"),
        ("apps.nvidia.com", "NIMService"),
    ],
}
UNREADABLE = {"DaemonSet", "CronJob", "NIMService"}
SIZED = {"ReplicaSet", "Deployment", "StatefulSet", "Rollout", "LeaderWorkerSet"}
LONG_AGO = "-7d"

Spec = dict[str, Any]


@dataclass
class World:
    """The told cluster. Specs may be changed between two views of it."""

    workloads: dict[str, Spec]
    namespaces: dict[str, Spec] = field(default_factory=dict)
    nodes: dict[str, Spec] = field(default_factory=dict)
    loose: list[Spec] = field(default_factory=list)
    """Devices that no pod holds."""
    missing_kinds: frozenset[str] = frozenset()
    step_seconds: float = STEP_SECONDS
    books: dict[str, Book] = field(default_factory=dict)
    """By root uid; what was written since the story began."""

    def view(self) -> ClusterView:
        """Return what the API server would say now."""
        told = [Told(name, spec) for name, spec in self.workloads.items()]
        pods = tuple(pod for one in told for pod in one.pods)
        owners = {owner.root.uid: owner for one in told for owner in one.owners()}
        nodes = {pod.node for pod in pods if pod.node} | set(self.nodes)
        return ClusterView(
            pods=pods,
            nodes={
                name: NodeRecord(name=name, **({"ready": True} | self.nodes.get(name, {})))
                for name in nodes
            },
            namespaces={
                name: NamespaceRecord(name=name, **spec) for name, spec in self.namespaces.items()
            },
            owners=owners,
            books={
                one.root.uid: kept
                for one in told
                if one.root.uid and (kept := one.kept(self.books)) is not None
            },
            missing_kinds=self.missing_kinds,
        )

    def devices(self) -> list[Device]:
        """Return every device of the cluster."""
        found = [
            device
            for name, spec in self.workloads.items()
            for device in Told(name, spec).devices(self.step_seconds)
        ]
        for spec in self.loose:
            uuid = str(spec.get("uuid", "GPU-loose"))
            found.append(Device(DeviceId(uuid), dict(spec), step_seconds=self.step_seconds))
        return found

    def root(self, name: str) -> RootRef:
        """Return a workload's root."""
        return Told(name, self.workloads[name]).root


@lru_cache(maxsize=1 << 12)
def chain_of(kind: str, namespace: str, name: str) -> tuple[RootRef, ...]:
    """Return the owners of a workload's pods, from the pod upwards."""
    kinds = CHAINS[kind]
    return tuple(
        RootRef(
            kind=one,
            namespace=namespace,
            name=name if place == len(kinds) - 1 else f"{name}-part",
            group=group,
            uid=f"uid-{name}-{one.lower()}",
        )
        for place, (group, one) in enumerate(kinds)
    )


@dataclass
class Told:
    """One workload of a world, as it is told now."""

    name: str
    spec: Spec

    @property
    def kind(self) -> str:
        return str(self.spec.get("kind", "Deployment"))

    @property
    def namespace(self) -> str:
        return str(self.spec.get("namespace", "team-a"))

    @property
    def chain(self) -> tuple[RootRef, ...]:
        """Owners from the pod upwards."""
        return chain_of(self.kind, self.namespace, self.name)

    @property
    def root(self) -> RootRef:
        if self.chain:
            return self.chain[-1]
        pod = self.pods[0]
        return RootRef("Pod", self.namespace, pod.name, "", pod.uid)

    def pod_specs(self) -> list[Spec]:
        """Return one mapping per pod."""
        told = self.spec.get("pods", 1)
        if isinstance(told, list):
            return told
        return [{"gpus": self.spec.get("gpus", 1)} for _ in range(int(told))]

    def device_specs(self, pod: Spec) -> list[Spec]:
        """Return one mapping per device of a pod."""
        told = pod.get("gpus", 1)
        given = told if isinstance(told, list) else ["idle"] * int(told)
        return [device_spec(one) for one in given]

    @cached_property
    def pods(self) -> tuple[PodRecord, ...]:
        return tuple(self._pods())

    def _pods(self) -> Iterator[PodRecord]:
        for number, spec in enumerate(self.pod_specs()):
            ready = spec.get("ready", LONG_AGO)
            phase = PodPhase(spec.get("phase", "Running"))
            begun = spec.get("created", LONG_AGO if ready == "never" else ready)
            is_ready = phase is PodPhase.RUNNING and ready != "never"
            is_started = phase is PodPhase.RUNNING
            yield PodRecord(
                uid=str(spec.get("uid", f"uid-{self.name}-pod-{number}")),
                namespace=self.namespace,
                name=self.pod_name(number, spec).name,
                phase=phase,
                created_at=moment(begun),
                node=str(spec.get("node", "node-1")),
                requests=spec.get("requests", {"nvidia.com/gpu": len(self.device_specs(spec))}),
                owner=self._owner(0),
                ready_since=moment(ready) if is_ready else None,
                containers_started_at=moment(spec.get("started", begun)) if is_started else None,
                terminating=bool(spec.get("terminating", False)),
                labels=spec.get("labels", {}),
                annotations=spec.get("annotations", {}),
            )

    def pod_name(self, number: int, spec: Spec) -> PodName:
        return PodName(self.namespace, str(spec.get("name", f"{self.name}-{number}")))

    def _owner(self, place: int) -> OwnerRef | None:
        if place >= len(self.chain):
            return None
        one = self.chain[place]
        return OwnerRef(one.group, one.kind, one.name, one.uid)

    def owners(self) -> Iterator[OwnerObject]:
        for place, ref in enumerate(self.chain):
            told = self.spec.get("owner", {}) if ref == self.chain[-1] else {}
            if ref.kind in UNREADABLE or told.get("hidden"):
                continue
            size = told.get("desired", len(self.pod_specs()))
            ready = sum(one.ready_since is not None for one in self.pods)
            has_size = ref.kind in SIZED
            generation = int(told.get("generation", 1))
            yield OwnerObject(
                root=ref,
                owner=self._owner(place + 1),
                generation=generation,
                observed_generation=int(told.get("observed_generation", generation)),
                desired=size if has_size else None,
                observed=told.get("observed", size) if has_size else None,
                ready=told.get("ready", ready) if has_size else None,
                updated=told.get("updated", size) if has_size else None,
                halted=bool(told.get("halted", False)),
                sized_by=str(told.get("sized_by", "")),
                deletes_volumes=bool(told.get("deletes_volumes", False)),
                unstoppable=bool(told.get("unstoppable", False)),
                paused_by_us=bool(told.get("paused_by_us", False)),
                governor=str(told.get("governor", "")),
                governor_uid=str(told.get("governor_uid", "")),
                pods_per_replica=told.get("pods_per_replica", 1),
                labels=told.get("labels", {}),
                annotations=told.get("annotations", {}),
            )

    def devices(self, step_seconds: float) -> Iterator[Device]:
        for number, spec in enumerate(self.pod_specs()):
            if spec.get("phase", "Running") != "Running" and not spec.get("working"):
                continue
            for place, told in enumerate(self.device_specs(spec)):
                uuid = str(told.get("uuid", f"GPU-{self.name}-{number}-{place}"))
                yield Device(
                    DeviceId(uuid, str(told.get("slice", ""))),
                    told,
                    pod=self.pod_name(number, spec),
                    node=str(spec.get("node", "node-1")),
                    step_seconds=step_seconds,
                )

    def kept(self, books: Mapping[str, Book]) -> Bookkeeping | None:
        """Return the workload's GPUWorkload, where there is one."""
        book = books.get(self.root.uid)
        if book is None and "book" in self.spec:
            book = told_book(self.spec["book"])
        if book is None and "intent" not in self.spec:
            return None
        held = book if book is not None else Book(resource_version="1")
        return Bookkeeping(
            root=self.root, intent=told_intent(self.spec.get("intent", {})), book=held
        )


def told_intent(told: Spec) -> Intent:
    """Return what people want; times are relative to the story."""
    given = dict(told)
    for name in ("keep_until", "exempt_until"):
        if given.get(name) is not None:
            given[name] = moment(given[name])
    if "released" in given:
        at, by = moment(given.pop("released")), given.pop("release_by", "")
        given["release"] = Release(at=at, by=by, reason=given.pop("release_reason", ""))
    return Intent(**given)


def told_book(told: Spec) -> Book:
    """Return a book; every value whose name speaks of a time is relative to the story."""
    given: Spec = {"resource_version": "1"}
    for name, value in told.items():
        given[name] = value
        if name.endswith(("_at", "_since", "_until")):
            given[name] = moment(value)
    given["phase"] = Phase(given.get("phase", "Watching"))
    if given["phase"] is Phase.WARNED:
        given["warned_via"] = tuple(given.get("warned_via", ("event",)))
    if "replicas" in given:
        given["pause"] = PauseRecord(
            lever="Deployment",
            replicas=given.pop("replicas"),
            uid="uid",
            generation=1,
            at=given.get("paused_at", moment(0)),
            decision="d",
            why="idle",
        )
    return Book(**given)

"""One namespace, one root, and an actor on it: what the tests of `act` are played in."""

from __future__ import annotations

import json

import msgspec
from support.manual_clock import NOON, ManualClock
from support.memory_cluster import Json, MemoryCluster, tree

from gpu_pruner.act.actor import Actor
from gpu_pruner.kube.bookkeeping import to_bookkeeping
from gpu_pruner.kube.gpuworkloads import GPUWorkload, manifest_for, name_for, status_patch
from gpu_pruner.kube.resources import (
    DEPLOYMENTS,
    GPUWORKLOADS,
    JOBS,
    NAMESPACES,
    NOTEBOOKS,
    STATEFULSETS,
    Resource,
)
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.cluster import Bookkeeping
from gpu_pruner.model.orders import Outcome, PauseOrder, Result
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.snapshot import Workload
from gpu_pruner.model.workload import OwnerObject, RootRef

SPACE = "team-a"
DEPLOYMENT = RootRef("Deployment", SPACE, "server", "apps", "uid-d")
STATEFUL_SET = RootRef("StatefulSet", SPACE, "store", "apps", "uid-s")
NOTEBOOK = RootRef("Notebook", SPACE, "notebook-1", "kubeflow.org", "uid-n")
RESOURCES = {
    "Deployment": DEPLOYMENTS,
    "StatefulSet": STATEFULSETS,
    "Notebook": NOTEBOOKS,
    "Job": JOBS,
}
BOOK = Book(
    phase=Phase.WARNED,
    warned_at=NOON - 900,
    warned_via=("event",),
    warned_mode="scale-down",
    pause_at=NOON,
    nominated_at=NOON - 960,
    gpus=4,
)


def a_root(
    root: RootRef,
    *,
    replicas: int | None = 3,
    annotations: dict[str, str] | None = None,
    spec: dict[str, Json] | None = None,
) -> dict[str, Json]:
    notes: dict[str, Json] = {"owner-note": "mine", **(annotations or {})}
    size: dict[str, Json] = {} if root.kind == "Notebook" else {"replicas": replicas}
    return {
        "metadata": {
            "name": root.name,
            "namespace": root.namespace,
            "uid": root.uid,
            "generation": 7,
            "annotations": notes,
        },
        "spec": {**size, **(spec or {})},
    }


class World:
    """One namespace with one root, and an actor on it."""

    def __init__(self, root: RootRef = DEPLOYMENT, *, mode: Mode = Mode.SCALE_DOWN) -> None:
        self.root = root
        self.clock = ManualClock()
        self.cluster = MemoryCluster()
        self.cluster.put(NAMESPACES, {"metadata": {"name": SPACE, "uid": "uid-space"}})
        self.actor = Actor(
            self.cluster, clock=self.clock, mode=mode, protected=frozenset({"kube-system"})
        )

    @property
    def resource(self) -> Resource:
        return RESOURCES[self.root.kind]

    def has(self, body: dict[str, Json]) -> None:
        self.cluster.put(self.resource, body)

    async def has_book(self, book: Book = BOOK, *, intent: dict[str, Json] | None = None) -> Book:
        """Store a GPUWorkload and return its book as the watch would show it."""
        name = name_for(self.root)
        await self.cluster.create(GPUWORKLOADS, manifest_for(self.root), namespace=SPACE)
        await self.cluster.patch(
            GPUWORKLOADS, name, status_patch(book), namespace=SPACE, subresource="status"
        )
        if intent:
            self.says(intent)
        self.cluster.writes.clear()
        return self.bookkeeping.book

    def says(self, intent: dict[str, Json]) -> None:
        """Change the GPUWorkload's spec, as a person does."""
        stored = self.cluster.stored(GPUWORKLOADS, SPACE, name_for(self.root))
        self.cluster.put(GPUWORKLOADS, {**stored, "spec": {**tree(stored["spec"]), **intent}})

    def touched(self) -> None:
        """Somebody changes the lever object."""
        self.has(self.live)

    @property
    def bookkeeping(self) -> Bookkeeping:
        stored = self.cluster.stored(GPUWORKLOADS, SPACE, name_for(self.root))
        found = to_bookkeeping(msgspec.json.decode(json.dumps(stored), type=GPUWorkload))
        assert found is not None
        return found

    @property
    def live(self) -> dict[str, Json]:
        return self.cluster.stored(self.resource, SPACE, self.root.name)

    @property
    def replicas(self) -> Json:
        return tree(self.live["spec"])["replicas"]

    def annotation(self, key: str) -> Json:
        return tree(tree(self.live["metadata"])["annotations"]).get(key)

    def wrote(self) -> list[tuple[str, str, str]]:
        return [(one.verb, one.plural, one.subresource) for one in self.cluster.writes]

    def knew(self, *, generation: int = 7, annotations: dict[str, str] | None = None) -> Workload:
        """The root as a decision knew it, with what its GPUWorkload says now."""
        owner = OwnerObject(root=self.root, generation=generation, annotations=annotations or {})
        return Workload(root=self.root, owner=owner, intent=self.bookkeeping.intent)

    def order(
        self,
        *,
        by: str = "gpu-pruner",
        decision_id: str = "d-1",
        decided_on: Workload | None = None,
    ) -> PauseOrder:
        return PauseOrder(
            decided_on=decided_on,
            root=self.root,
            decision_id=decision_id,
            why="No GPU work on 4 of 4 GPUs.",
            by=by,
        )


def assert_untouched(world: World, before: dict[str, Json], outcome: Outcome) -> None:
    assert outcome.result in {Result.REFUSED, Result.CONFLICT, Result.DRY_RUN}
    assert outcome.detail
    assert world.live == before

"""What `act` and `notify` write over real HTTP, judged by the request log and the objects."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml
from support.decisions import a_decision
from support.memory_cluster import Json, tree

from gpu_pruner.act.actor import Actor
from gpu_pruner.kube.bookkeeping import to_bookkeeping
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.gpuworkloads import GPUWorkload, name_for
from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model.annotations import NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.cluster import Bookkeeping
from gpu_pruner.model.letters import Letter
from gpu_pruner.model.orders import Delivery, MessageKind, PauseOrder, Result
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.workload import RootRef
from gpu_pruner.notify.event import EventChannel
from gpu_pruner.notify.notifier import Notifier
from gpu_pruner.settings.clock import ScaledClock, SystemClock
from gpu_pruner.settings.schema import KubernetesSettings
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.faults import Fault
from gpu_pruner.sim.world import Workload, World

CRD = Path(__file__).parents[2] / "deploy" / "crds" / "gpuworkloads.yaml"
ROOTS = (
    RootRef("Deployment", "team-a", "server", "apps"),
    RootRef("StatefulSet", "team-a", "store", "apps"),
    RootRef("Notebook", "team-b", "notebook-1", "kubeflow.org"),
)
SERVER = ROOTS[0]
WORLD = World(
    workloads=tuple(
        Workload(kind=one.kind, namespace=one.namespace, name=one.name, replicas=2, gpus=1)
        for one in ROOTS
    )
)
Wrote: TypeAlias = list[tuple[str, str, str, int]]
each_root = pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.kind)


@dataclass(frozen=True, slots=True)
class Stage:
    cluster: SimulatedCluster
    client: ClusterClient
    clock: ScaledClock

    def actor(self, mode: Mode = Mode.SCALE_DOWN) -> Actor:
        return Actor(self.client, clock=self.clock, mode=mode)

    def live(self, root: RootRef) -> dict[str, Json]:
        stored = self.cluster.get(root.kind, namespace=root.namespace, name=root.name)
        assert stored is not None
        return tree(stored)

    def found(self, root: RootRef) -> RootRef:
        """The root with its uid."""
        return replace(root, uid=str(tree(self.live(root)["metadata"])["uid"]))

    def wanted(self, root: RootRef) -> tuple[Json, Json]:
        """What the object asks for: its spec and its annotations."""
        live = self.live(root)
        return live["spec"], tree(live["metadata"]).get("annotations")

    async def bookkeeping(self, root: RootRef) -> Bookkeeping:
        stored = await self.client.get(
            GPUWORKLOADS, name_for(root), namespace=root.namespace, decode=GPUWorkload
        )
        found = to_bookkeeping(stored)
        assert found is not None
        return found

    async def nominated(self, root: RootRef) -> tuple[RootRef, Book]:
        """The root with a book that was written and read back."""
        found = self.found(root)
        now = self.clock.now()
        book = Book(phase=Phase.WARNED, warned_at=now - 900, pause_at=now, warned_via=("event",))
        outcome = await self.actor().write_book(a_decision(found), book)
        assert outcome.result is Result.DONE
        return found, (await self.bookkeeping(found)).book

    async def told(self, decision: Decision) -> Delivery:
        """Warn by an Event, as a process that remembers nothing."""
        event = EventChannel(self.client)
        notifier = Notifier([event], clock=self.clock, mode=Mode.SCALE_DOWN)
        root, kind = decision.workload.root, MessageKind.WARNING
        (delivery,) = await notifier.deliver([Letter(root=root, kind=kind, decision=decision)])
        return delivery

    def order(self, root: RootRef) -> PauseOrder:
        return PauseOrder(root=root, decision_id="d-1", why="idle")

    def wrote(self) -> Wrote:
        """Our accepted and refused writes, in order: verb, resource, subresource, status."""
        return [
            (one.verb, one.resource, one.subresource, one.status)
            for one in self.cluster.requests
            if one.user == "gpu-pruner" and one.method != "GET"
        ]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for the cluster's own controllers; the test's timeout ends a wait in vain."""
        while not holds():
            await self.clock.sleep(1)


@asynccontextmanager
async def on_stage(directory: Path) -> AsyncIterator[Stage]:
    now = SystemClock().now()
    clock = ScaledClock(now, now, 30.0)
    crd = yaml.safe_load(CRD.read_text(encoding="utf-8"))
    async with SimulatedCluster(WORLD, clock, crds=[crd]) as cluster:
        path = directory / "kubeconfig"
        path.write_text(cluster.kubeconfig(), encoding="utf-8")
        client = await ClusterClient.connect(KubernetesSettings(kubeconfig=path), clock=clock)
        try:
            yield Stage(cluster, client, clock)
        finally:
            await client.close()


@each_root
async def test_a_pause_empties_the_root_and_a_restore_gives_everything_back(
    root: RootRef, tmp_path: Path
) -> None:
    async with on_stage(tmp_path) as stage:

        def pods() -> int:
            return len(stage.cluster.pods_of(root.kind, namespace=root.namespace, name=root.name))

        before, size = stage.wanted(root), pods()
        found, book = await stage.nominated(root)
        paused = await stage.actor().pause(stage.order(found), book)
        assert paused.result is Result.DONE
        await stage.until(lambda: pods() == 0)
        assert (await stage.bookkeeping(found)).book.phase is Phase.PAUSING
        restored = await stage.actor().restore(found, by="ada", why="needed")
        assert restored.result is Result.DONE
        await stage.until(lambda: pods() == size)
        assert stage.wanted(root) == before
        assert (await stage.bookkeeping(found)).book.phase is Phase.RESTORING


@each_root
async def test_a_workload_is_written_to_exactly_once_and_after_its_book(
    root: RootRef, tmp_path: Path
) -> None:
    async with on_stage(tmp_path) as stage:
        found, book = await stage.nominated(root)
        await stage.actor().pause(stage.order(found), book)
        plural = f"{root.kind.lower()}s"
        assert stage.wrote() == [
            ("create", "gpuworkloads", "", 201),
            ("patch", "gpuworkloads", "status", 200),
            ("patch", "gpuworkloads", "status", 200),
            ("patch", plural, "", 200),
        ]


@each_root
async def test_a_dry_run_writes_nothing(root: RootRef, tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        outcome = await stage.actor(Mode.DRY_RUN).pause(stage.order(root))
        assert outcome.result is Result.DRY_RUN
        assert stage.wrote() == []


async def test_a_wish_that_arrives_meanwhile_wins(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        found, book = await stage.nominated(SERVER)
        before = stage.wanted(SERVER)
        wish = {"spec": {"keepUntil": "2099-01-01T00:00:00Z", "keepBy": "ada"}}
        await stage.client.patch(GPUWORKLOADS, book.object_name, wish, namespace=found.namespace)
        outcome = await stage.actor().pause(stage.order(found), book)
        assert (outcome.result, outcome.detail) == (
            Result.REFUSED,
            "it is kept until 2099-01-01T00:00:00Z by ada",
        )
        assert stage.wanted(SERVER) == before


async def test_a_book_that_somebody_else_wrote_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        found, book = await stage.nominated(SERVER)
        decision = a_decision(found)
        first = await stage.actor().write_book(decision, replace(book, gpus=1))
        second = await stage.actor().write_book(decision, replace(book, gpus=2))
        assert (first.result, second.result) == (Result.DONE, Result.CONFLICT)
        assert (await stage.bookkeeping(found)).book.gpus == 1


@pytest.mark.parametrize("status", [403, 409, 429, 500])
async def test_a_server_that_refuses_the_lever_leaves_a_book_that_says_pausing(
    status: int, tmp_path: Path
) -> None:
    async with on_stage(tmp_path) as stage:
        found, book = await stage.nominated(SERVER)
        before = stage.wanted(SERVER)
        stage.cluster.faults.add(Fault(method="PATCH", path="/deployments/", status=status))
        outcome = await stage.actor().pause(stage.order(found), book)
        assert outcome.result is (Result.CONFLICT if status == 409 else Result.FAILED)
        assert outcome.detail
        assert stage.wanted(SERVER) == before
        now = (await stage.bookkeeping(found)).book
        assert now.phase is Phase.PAUSING
        assert now.pause is not None
        assert now.pause.replicas == 2


async def test_a_message_is_one_event_on_the_root_however_often_it_is_sent(
    tmp_path: Path,
) -> None:
    async with on_stage(tmp_path) as stage:
        found, book = await stage.nominated(SERVER)
        decision = a_decision(found, book=replace(book, nominated_at=stage.clock.now()))
        first, second = await stage.told(decision), await stage.told(decision)
        assert first.via == second.via == ("event",)
        ours = [
            tree(one)
            for one in stage.cluster.all("Event", found.namespace)
            if tree(one).get("reason") == "GpuIdleWarning"
        ]
        (event,) = ours
        assert tree(event["involvedObject"])["uid"] == found.uid
        assert re.search(r"paused at \S+Z", str(event["message"]))


async def test_an_event_that_is_forbidden_is_no_delivery(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        stage.cluster.faults.add(Fault(method="POST", path="/events", status=403))
        delivery = await stage.told(a_decision(stage.found(SERVER)))
        assert delivery.via == ()
        assert delivery.problem


async def test_a_notebook_is_stopped_by_its_own_annotation(tmp_path: Path) -> None:
    root = ROOTS[2]
    async with on_stage(tmp_path) as stage:
        await stage.actor().pause(stage.order(root))
        annotations = tree(stage.wanted(root)[1])
        assert {NOTEBOOK_STOPPED, PAUSED} <= annotations.keys()

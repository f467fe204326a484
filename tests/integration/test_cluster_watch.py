"""The watch follows the simulated cluster over real HTTP, through its faults."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from support.scripted_api import eventually

from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.gpuworkloads import manifest_for, name_for, status_patch
from gpu_pruner.kube.resources import DEPLOYMENTS, GPUWORKLOADS, Resource
from gpu_pruner.kube.throttle import Pace
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.workload import OwnerObject
from gpu_pruner.observe.cluster import ClusterWatch
from gpu_pruner.settings.clock import ScaledClock, SystemClock
from gpu_pruner.settings.schema import KubernetesSettings
from gpu_pruner.sim.cluster import SimulatedCluster, Tuning
from gpu_pruner.sim.faults import Fault, Trouble
from gpu_pruner.sim.world import Workload, World

CRD = Path(__file__).parents[2] / "deploy" / "crds" / "gpuworkloads.yaml"
SPEED = 30.0
QUICK = Pace(first=0.01, longest=0.05, absent=0.05, silence=0.5, brief=0.05)
WORLD = World(
    workloads=(
        Workload(kind="Deployment", namespace="team-a", name="train", replicas=2, gpus=1),
        Workload(kind="Notebook", namespace="team-b", name="notebook-1", gpus=1),
    )
)
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
SIMULATED = {
    *("Pod", "Node", "Namespace", "ReplicaSet", "Deployment", "StatefulSet", "Notebook"),
    GPUWORKLOADS.kind,
}
"""What every simulated cluster has; other kinds of owners may be missing there."""
ANY_WATCHED = r"/(pods|deployments|statefulsets|notebooks)$"


@dataclass(frozen=True, slots=True)
class Scene:
    cluster: SimulatedCluster
    client: ClusterClient
    watch: ClusterWatch

    def owner(self, kind: str) -> OwnerObject:
        (found,) = (one for one in self.watch.view().owners.values() if one.root.kind == kind)
        return found

    def sees_pods(self, *, team_a: int, team_b: int) -> bool:
        seen = [pod.namespace for pod in self.watch.view().pods]
        return (seen.count("team-a"), seen.count("team-b")) == (team_a, team_b)

    async def scale(self, replicas: int) -> None:
        await self.client.patch(
            DEPLOYMENTS, "train", {"spec": {"replicas": replicas}}, namespace="team-a"
        )


@asynccontextmanager
async def scene(
    folder: Path, *, crd: bool = True, tuning: Tuning | None = None
) -> AsyncIterator[Scene]:
    now = SystemClock().now()
    clock = ScaledClock(now, now, SPEED)
    crds = [yaml.safe_load(CRD.read_text("utf-8"))] if crd else []
    async with SimulatedCluster(WORLD, clock, crds=crds, tuning=tuning) as cluster:
        path = folder / "kubeconfig"
        path.write_text(cluster.kubeconfig(), encoding="utf-8")
        client = await ClusterClient.connect(KubernetesSettings(kubeconfig=path), clock=clock)
        watch = ClusterWatch(client, clock=clock, pace=QUICK)
        await watch.start()
        try:
            yield Scene(cluster, client, watch)
        finally:
            await watch.close()
            await client.close()


async def test_sees_pods_with_their_owners_up_to_the_root(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        view = it.watch.view()
        assert it.sees_pods(team_a=2, team_b=1)
        roots = set()
        for pod in view.pods:
            owner = pod.owner
            while owner is not None:
                above = view.owners[owner.uid]
                assert (above.root.kind, above.root.group) == (owner.kind, owner.group)
                owner = above.owner
                if owner is None:
                    roots.add(above.root.ref)
        assert roots == {"deployment/team-a/train", "notebook/team-b/notebook-1"}
        assert {pod.gpus for pod in view.pods} == {1}
        assert all(view.nodes[pod.node].ready for pod in view.pods)
        assert not SIMULATED & view.missing_kinds


async def test_follows_a_scale_down_to_its_end(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.scale(0)
        await eventually(lambda: it.owner("Deployment").halted)
        await eventually(lambda: it.sees_pods(team_a=0, team_b=1), seconds=30)
        assert it.owner("Deployment").observed == 0


async def test_a_written_book_is_read_back_equal(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        root = it.owner("Deployment").root
        await it.client.create(GPUWORKLOADS, manifest_for(root), namespace="team-a")
        book = Book(phase=Phase.WARNED, verdict="idle", gpus=2, pause_at=1_769_860_800.0)
        await it.client.patch(
            GPUWORKLOADS,
            name_for(root),
            status_patch(book),
            namespace="team-a",
            subresource="status",
        )
        await eventually(
            lambda: (
                root.uid in it.watch.view().books
                and it.watch.view().books[root.uid].book.phase is Phase.WARNED
            )
        )
        found = it.watch.view().books[root.uid]
        assert found.root == root
        assert status_patch(found.book)["status"] == status_patch(book)["status"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(path=ANY_WATCHED, method="GET", status=410, reason="Expired", times=12),
        Fault(path=ANY_WATCHED, method="GET", status=500, times=12),
        Fault(path=ANY_WATCHED, method="GET", trouble=Trouble.CUT, times=12),
        Fault(path=ANY_WATCHED, method="GET", trouble=Trouble.GARBAGE, times=12),
        Fault(path=ANY_WATCHED, method="GET", trouble=Trouble.HTML, times=12),
        Fault(path=ANY_WATCHED, method="GET", trouble=Trouble.REFUSED, times=12),
    ],
    ids=lambda fault: f"{fault.trouble.value} {fault.status}",
)
async def test_comes_through_trouble_with_the_truth(tmp_path: Path, fault: Fault) -> None:
    async with scene(tmp_path, tuning=Tuning(history=1)) as it:
        it.cluster.faults.add(Fault(path=ANY_WATCHED, method="GET", trouble=Trouble.STALL, times=8))
        it.cluster.faults.add(fault)
        await it.scale(1)
        await eventually(lambda: it.sees_pods(team_a=1, team_b=1), seconds=40)
        assert fault.struck > 0
        it.cluster.faults.clear()
        await it.scale(2)
        await eventually(lambda: it.sees_pods(team_a=2, team_b=1), seconds=40)


async def test_a_kind_installed_later_is_picked_up(tmp_path: Path) -> None:
    async with scene(tmp_path, crd=False) as it:
        assert not it.watch.view().books_available
        assert SIMULATED & it.watch.view().missing_kinds == {GPUWORKLOADS.kind}
        await it.client.create(CRDS, yaml.safe_load(CRD.read_text("utf-8")))
        await eventually(lambda: it.watch.view().books_available)
        assert not SIMULATED & it.watch.view().missing_kinds


async def test_watching_writes_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        assert {one.method for one in it.cluster.requests} == {"GET"}

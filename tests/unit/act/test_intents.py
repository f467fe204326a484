"""What people ask for is written into a GPUWorkload: one that is there, or a new one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.memory_cluster import Json, MemoryCluster, tree

from gpu_pruner.act.intents import Exempt, Keep, Kind, Release, Wish, Withdrawal, ask
from gpu_pruner.act.levers import Levers
from gpu_pruner.errors import ActionRefused
from gpu_pruner.kube.gpuworkloads import manifest_for, name_for
from gpu_pruner.kube.resources import GPUWORKLOADS, NAMESPACES, Resource
from gpu_pruner.model.workload import RootRef
from gpu_pruner.settings.levers import CustomLever

SERVER = RootRef("Deployment", "team-a", "server", "apps", "uid-d")
THING = RootRef("Server", "team-a", "llm", "ml.example.org", "uid-x")
LEVERS = Levers.of_settings(
    [
        CustomLever(
            group="ml.example.org",
            version="v1",
            plural="servers",
            kind="Server",
            replicas="spec.pool.size",
        )
    ]
)
KEEP = Keep(until=1_769_860_800.0, by="ada", reason="a demonstration")
RELEASE = Release(at=1_769_860_800.0, by="ada", reason="done")
WISHES: tuple[Wish, ...] = (KEEP, Exempt(until=None, by="ada", reason="a course"), RELEASE)


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster()
    made.put(NAMESPACES, {"metadata": {"name": "team-a"}})
    return made


def spec_of(cluster: MemoryCluster, root: RootRef) -> dict[str, Json]:
    return tree(cluster.stored(GPUWORKLOADS, root.namespace, name_for(root))["spec"])


@pytest.mark.parametrize("wish", WISHES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("root", [SERVER, THING], ids=lambda one: one.kind)
async def test_where_there_is_no_gpuworkload_one_is_made_that_goes_with_its_root(
    cluster: MemoryCluster, root: RootRef, wish: Wish
) -> None:
    await ask(cluster, root, wish, levers=LEVERS)
    stored = cluster.stored(GPUWORKLOADS, root.namespace, name_for(root))
    [owner] = tree(stored["metadata"])["ownerReferences"]
    assert (tree(owner)["kind"], tree(owner)["uid"]) == (root.kind, root.uid)
    assert None not in spec_of(cluster, root).values()
    [by] = [value for name, value in spec_of(cluster, root).items() if name.endswith("By")]
    assert by == "ada"


class Crowded(MemoryCluster):
    """Somebody else makes what we are about to make."""

    async def create(
        self, resource: Resource, body: Mapping[str, object], *, namespace: str = ""
    ) -> bytes:
        if resource is GPUWORKLOADS:
            await super().create(resource, manifest_for(SERVER), namespace=namespace)
        return await super().create(resource, body, namespace=namespace)


async def test_a_leader_that_makes_the_gpuworkload_at_the_same_moment_loses_nobodys_wish() -> None:
    cluster = Crowded()
    cluster.put(NAMESPACES, {"metadata": {"name": "team-a"}})
    await ask(cluster, SERVER, KEEP)
    assert spec_of(cluster, SERVER)["keepBy"] == "ada"
    assert [one.verb for one in cluster.writes] == ["create", "patch"]


@pytest.mark.parametrize("kind", list(Kind))
async def test_a_wish_that_was_asked_for_twice_is_one_and_can_be_taken_back_twice(
    cluster: MemoryCluster, kind: Kind
) -> None:
    wish = {Kind.KEEP: KEEP, Kind.EXEMPT: WISHES[1], Kind.RELEASE: RELEASE}[kind]
    for _ in range(2):
        await ask(cluster, SERVER, wish)
        told = dict(spec_of(cluster, SERVER))
    assert told["rootRef"]
    assert len(told) == {Kind.KEEP: 4, Kind.EXEMPT: 4, Kind.RELEASE: 5}[kind]
    for _ in range(2):
        await ask(cluster, SERVER, Withdrawal(of=kind, by="bob", reason="over"))
        assert set(spec_of(cluster, SERVER)) == {"rootRef"}


async def test_names_and_reasons_are_cut_to_what_the_schema_takes(cluster: MemoryCluster) -> None:
    await ask(cluster, SERVER, Keep(until=0.0, by="a" * 300, reason="r" * 2000))
    spec = spec_of(cluster, SERVER)
    assert (len(str(spec["keepBy"])), len(str(spec["keepReason"]))) == (256, 1024)


async def test_somebodys_keep_in_a_second_gpuworkload_stands_against_a_release_as_well(
    cluster: MemoryCluster,
) -> None:
    await ask(cluster, SERVER, Exempt(until=0.0, by="ada", reason="over"))
    second = dict(manifest_for(SERVER))
    wish: dict[str, Json] = {"keepUntil": "2026-02-01T00:00:00Z", "keepBy": "bob"}
    meta = {"name": "second", "namespace": "team-a"}
    cluster.put(GPUWORKLOADS, second | {"metadata": meta, "spec": tree(second["spec"]) | wish})
    with pytest.raises(ActionRefused, match="kept by bob"):
        await ask(cluster, SERVER, RELEASE)

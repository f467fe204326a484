"""What somebody typed becomes a root with its uid, or an error that says what it may have meant."""

from __future__ import annotations

import pytest
from support.memory_cluster import Json, MemoryCluster

from gpu_pruner.act.levers import Levers
from gpu_pruner.cli.naming import must_exist, root_named
from gpu_pruner.errors import ActionRefused, ConfigurationError, Forbidden
from gpu_pruner.kube.resources import (
    DEPLOYMENTS,
    NOTEBOOKS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.model.workload import RootRef

POD = RootRef("Pod", "team-a", "server-1")
SERVER = RootRef("Deployment", "team-a", "server", "apps")


def has(
    cluster: MemoryCluster, resource: Resource, name: str, *, owner: tuple[Resource, str] | None
) -> None:
    """Store an object with its controller."""
    meta: dict[str, Json] = {"name": name, "namespace": "team-a", "uid": f"uid-{name}"}
    if owner is not None:
        above, called = owner
        told: dict[str, Json] = {"apiVersion": above.api_version, "kind": above.kind}
        meta["ownerReferences"] = [told | {"name": called, "uid": "u", "controller": True}]
    cluster.put(resource, {"metadata": meta})


async def named(cluster: MemoryCluster, root: RootRef) -> RootRef:
    return await root_named(cluster, root, levers=Levers())


async def test_a_workload_gets_the_uid_that_it_has_now() -> None:
    cluster = MemoryCluster()
    has(cluster, DEPLOYMENTS, "server", owner=None)
    assert (await named(cluster, SERVER)).uid == "uid-server"


async def test_a_pod_leads_to_the_top_of_its_owners() -> None:
    cluster = MemoryCluster()
    has(cluster, PODS, "server-1", owner=(REPLICASETS, "server-7"))
    has(cluster, REPLICASETS, "server-7", owner=(DEPLOYMENTS, "server"))
    has(cluster, DEPLOYMENTS, "server", owner=None)
    assert await named(cluster, POD) == RootRef(
        "Deployment", "team-a", "server", "apps", "uid-server"
    )


async def test_an_owner_that_nobody_knows_ends_the_way_up_as_it_does_for_the_controller() -> None:
    cluster = MemoryCluster()
    stranger = Resource(group="example.org", version="v1", plural="things", kind="Thing")
    has(cluster, PODS, "server-1", owner=(STATEFULSETS, "server"))
    has(cluster, STATEFULSETS, "server", owner=(stranger, "thing"))
    with pytest.raises(ActionRefused, match="kind that we do not know"):
        await named(cluster, POD)


async def test_a_pod_that_nobody_controls_is_refused() -> None:
    cluster = MemoryCluster()
    has(cluster, PODS, "server-1", owner=None)
    with pytest.raises(ActionRefused, match="never paused"):
        await named(cluster, POD)


@pytest.mark.parametrize("kind", ["Pod", "JupyterServer"])
async def test_the_pod_of_a_jupyterhub_server_leads_to_the_server(kind: str) -> None:
    cluster = MemoryCluster()
    notes: Json = {"hub.jupyter.org/username": "ada"}
    meta: Json = {"name": "jupyter-ada", "namespace": "team-a", "uid": "u", "annotations": notes}
    cluster.put(PODS, {"metadata": meta})
    found = await named(cluster, RootRef(kind, "team-a", "jupyter-ada", "any"))
    assert found.ref == "jupyterserver/team-a/jupyter-ada"
    assert found.uid == ServerName("team-a", "ada").uid


async def test_owners_in_a_circle_are_refused() -> None:
    cluster = MemoryCluster()
    has(cluster, PODS, "server-1", owner=(STATEFULSETS, "a"))
    has(cluster, STATEFULSETS, "a", owner=(NOTEBOOKS, "b"))
    has(cluster, NOTEBOOKS, "b", owner=(STATEFULSETS, "a"))
    with pytest.raises(ActionRefused, match="too many owners"):
        await named(cluster, POD)


async def test_a_name_that_is_not_there_is_bad_input_with_the_likest_ones() -> None:
    cluster = MemoryCluster()
    for name in ("server", "service", "batch"):
        has(cluster, DEPLOYMENTS, name, owner=None)
    with pytest.raises(ConfigurationError, match="did you mean deployment/team-a/server or"):
        await named(cluster, RootRef("Deployment", "team-a", "servr", "apps"))


async def test_who_may_not_list_is_told_no_names() -> None:
    cluster = MemoryCluster()
    has(cluster, DEPLOYMENTS, "server", owner=None)
    cluster.failures["list", "deployments"] = Forbidden("no")
    with pytest.raises(ConfigurationError, match=r"there is no deployment/team-a/servr$"):
        await named(cluster, RootRef("Deployment", "team-a", "servr", "apps"))


async def test_an_order_about_what_never_existed_is_bad_input_with_the_likest_names() -> None:
    cluster = MemoryCluster()
    has(cluster, DEPLOYMENTS, "server", owner=None)
    await must_exist(cluster, SERVER, levers=Levers())
    with pytest.raises(ConfigurationError, match="did you mean deployment/team-a/server"):
        await must_exist(cluster, RootRef("Deployment", "team-a", "servr", "apps"), levers=Levers())


async def test_a_stopped_jupyterhub_server_has_no_object_to_miss() -> None:
    server = RootRef("JupyterServer", "team-a", "jupyter-ada", "hub.jupyter.org")
    await must_exist(MemoryCluster(), server, levers=Levers())

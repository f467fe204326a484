from __future__ import annotations

import pytest
from support.acting import DEPLOYMENT, NOTEBOOK, World, a_root
from support.memory_cluster import Json

from gpu_pruner.cli.orders import holds_no_gpu
from gpu_pruner.kube.resources import PODS
from gpu_pruner.model.workload import RootRef


def pods(limits: dict[str, Json]) -> dict[str, Json]:
    container: Json = {"name": "main", "resources": {"limits": limits}}
    return {"template": {"spec": {"containers": [container]}}}


@pytest.mark.parametrize("root", [DEPLOYMENT, NOTEBOOK])
async def test_a_workload_without_gpus_is_told_apart(root: RootRef) -> None:
    world = World(root)
    world.has(a_root(root, spec=pods({"cpu": "2"})))
    assert "request no GPU" in await holds_no_gpu(world.cluster, root)
    world.has(a_root(root, spec=pods({"nvidia.com/gpu": "1"})))
    assert await holds_no_gpu(world.cluster, root) == ""


async def test_what_does_not_exist_is_left_to_the_order() -> None:
    assert await holds_no_gpu(World().cluster, DEPLOYMENT) == ""
    assert await holds_no_gpu(World().cluster, RootRef("Pod", "team-a", "p")) == ""


async def test_a_jupyterhub_server_is_what_its_pod_asks_for() -> None:
    world, server = World(), RootRef("JupyterServer", "team-a", "jupyter-alice", "hub.jupyter.org")
    assert await holds_no_gpu(world.cluster, server) == ""
    for limits, without in (({"cpu": "2"}, True), ({"nvidia.com/gpu": "1"}, False)):
        spec = pods(limits)["template"]
        meta: Json = {"name": "jupyter-alice", "namespace": "team-a"}
        world.cluster.put(PODS, {"metadata": meta, **spec})
        assert ("request no GPU" in await holds_no_gpu(world.cluster, server)) is without

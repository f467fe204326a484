from __future__ import annotations

import pytest
from support.memory_cluster import MemoryCluster

from gpu_pruner.errors import ClusterError, Forbidden
from gpu_pruner.kube.resources import CONFIGMAPS
from gpu_pruner.observe.hold import NAME, HoldSwitch

SPACE = "gpu-pruner-system"


def switched(cluster: MemoryCluster, data: dict | None = None, *, name: str = NAME) -> HoldSwitch:
    body = {"metadata": {"name": name, "namespace": SPACE}}
    cluster.put(CONFIGMAPS, body if data is None else body | {"data": data})
    return HoldSwitch(cluster, namespace=SPACE)


async def test_no_configmap_is_no_hold():
    assert await HoldSwitch(MemoryCluster(), namespace=SPACE).hold() == ""
    assert await switched(MemoryCluster(), name="another").hold() == ""


@pytest.mark.parametrize("data", [None, {}, {"hold": "false"}, {"reason": ""}])
async def test_that_it_exists_is_enough(data):
    told = await switched(MemoryCluster(), data).hold()
    assert told == (
        "ConfigMap gpu-pruner-hold in namespace gpu-pruner-system holds everything until it is "
        "deleted"
    )


async def test_its_reason_is_told_as_far_as_it_is_fit_for_a_sentence():
    told = await switched(MemoryCluster(), {"reason": "upgrade\n" + "x" * 500}).hold()
    assert "upgrade" in told
    assert "\n" not in told
    assert len(told) < 200


@pytest.mark.parametrize("failure", [Forbidden("no", status=403), ClusterError("no answer")])
async def test_a_switch_that_cannot_be_read_holds(failure):
    cluster = MemoryCluster(failures={("get", "configmaps"): failure})
    told = await HoldSwitch(cluster, namespace=SPACE).hold()
    assert "read" in told

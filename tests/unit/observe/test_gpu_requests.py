"""GPUs are counted as the API server counts requests."""

from __future__ import annotations

import pytest

from gpu_pruner.kube.wire import Container, PodSpec, Quantity, Resources
from gpu_pruner.observe.gpu_requests import gpu_requests, is_gpu, whole_gpus

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"


def box(name: str = GPU, count: Quantity = "1", *, always: bool = False) -> Container:
    return Container(
        resources=Resources(requests={name: count, "cpu": "250m"}),
        restart_policy="Always" if always else None,
    )


def counted(*containers: Container, init: tuple[Container, ...] = ()) -> dict[str, int]:
    return dict(gpu_requests(PodSpec(containers=containers, init_containers=init)).counts)


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-1g.10gb.shared",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "aliyun.com/gpu-mem",
    ],
)
def test_a_vendors_gpu_is_one(name: str) -> None:
    assert is_gpu(name)


@pytest.mark.parametrize(
    "name", ["cpu", "memory", "nvidia.com/hostdev", "requests.nvidia.com/x", "gpu", "example.com/x"]
)
def test_other_resources_are_none(name: str) -> None:
    assert not is_gpu(name)


def test_containers_add_up_per_resource() -> None:
    assert counted(box(count="2"), box(count=1), box(MIG)) == {GPU: 3, MIG: 1}


def test_an_init_container_counts_where_it_needs_more_than_the_rest() -> None:
    assert counted(box(count="1"), init=(box(count="4"), box(count="2"))) == {GPU: 4}
    assert counted(box(count="4"), init=(box(count="1"),)) == {GPU: 4}


def test_a_sidecar_runs_beside_everything_that_starts_after_it() -> None:
    sidecar = box(count="1", always=True)
    assert counted(box(count="2"), init=(sidecar,)) == {GPU: 3}
    assert counted(box(count="1"), init=(sidecar, box(count="4"))) == {GPU: 5}
    assert counted(box(count="1"), init=(box(count="4"), sidecar)) == {GPU: 4}


def test_limits_count_where_no_request_is_written() -> None:
    limits = Container(resources=Resources(limits={GPU: "2"}))
    assert counted(limits) == {GPU: 2}


def test_a_pod_without_gpus_has_none() -> None:
    assert counted() == {}
    assert counted(Container(), Container(resources=Resources()), box(count="0")) == {}
    assert gpu_requests(PodSpec()).counts == {}


@pytest.mark.parametrize("quantity", ["half", "", "1.5", None, "-1", 1.5, "1" * 30, "\u0661"])
def test_a_quantity_that_is_no_whole_number_counts_as_one_and_is_reported(
    quantity: Quantity,
) -> None:
    found = gpu_requests(PodSpec(containers=(box(count=quantity),)))
    assert found.counts == {GPU: 1}
    assert len(found.odd) == 1
    assert GPU in found.odd[0]


def test_shares_of_a_gpu_are_one_device_and_no_more_devices_beside_one() -> None:
    memory = box("nvidia.com/gpumem", "3000")
    assert counted(memory) == {"nvidia.com/gpumem": 1}
    assert counted(memory, box(count="1")) == {GPU: 1}


def test_a_nodes_gpus_are_what_it_can_allocate() -> None:
    allocatable: dict[str, Quantity] = {
        "cpu": "64",
        GPU: "8",
        MIG: 0,
        "nvidia.com/gpumem": "80000",
        "amd.com/gpu": "?",
    }
    assert whole_gpus(allocatable) == {GPU: 8}
    assert whole_gpus(None) == {}

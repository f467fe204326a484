from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from support.telling_time import START

from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period, PodName, SeriesLabels
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import NodeRecord, PodPhase, PodRecord
from gpu_pruner.resolve.attribution import attribute, node_key

PERIOD = Period(0, 34, 60.0)
EXPORTER = PodName("gpu-operator", "exporter-1")


def pod(
    name: str, *, phase: PodPhase = PodPhase.RUNNING, gpus: int = 1, uid: str = ""
) -> PodRecord:
    return PodRecord(
        uid=uid or f"uid-{name}",
        namespace="team-a",
        name=name,
        phase=phase,
        created_at=START,
        node="node-1",
        requests={"nvidia.com/gpu": gpus},
    )


def device(
    *labels: SeriesLabels, uuid: str = "GPU-1", slice_: str = "", node: str = "node-1"
) -> DeviceEvidence:
    return DeviceEvidence(
        device=DeviceId(uuid, slice_), period=PERIOD, signals=(), owners=labels, node=node
    )


def exported(name: str, *, uid: str = "") -> SeriesLabels:
    return SeriesLabels(exported=PodName("team-a", name), native=EXPORTER, pod_uid=uid)


def native(name: str) -> SeriesLabels:
    return SeriesLabels(native=PodName("team-a", name))


def found(
    pods: Iterable[PodRecord],
    *devices: DeviceEvidence,
    honor: bool | None = None,
    nodes: tuple[str, ...] = ("node-1", "node-2"),
) -> tuple[dict[str, tuple[list[str], Reason | None]], list[str]]:
    view = ClusterView(
        pods=tuple(pods), nodes={name: NodeRecord(name=name, ready=True) for name in nodes}
    )
    answer = attribute(view, {one.device: one for one in devices}, honor_labels=honor)
    held = {
        one.record.name: ([str(device.device) for device in one.devices], one.gap)
        for one in answer.pods
    }
    return held, [str(one.device) for one in answer.loose]


def test_an_exported_label_names_the_holder() -> None:
    assert found([pod("p")], device(exported("p"))) == ({"p": (["GPU-1"], None)}, [])


def test_a_native_label_names_the_holder_where_it_names_a_gpu_pod() -> None:
    assert found([pod("p")], device(native("p"))) == ({"p": (["GPU-1"], None)}, [])


def test_the_exporters_own_name_is_nobody() -> None:
    labels = SeriesLabels(native=EXPORTER)
    assert found([pod("p")], device(labels)) == ({"p": ([], Reason.NO_SERIES)}, ["GPU-1"])


@pytest.mark.parametrize(
    ("honor", "labels", "held"),
    [
        (True, native("p"), ["GPU-1"]),
        (True, exported("p"), []),
        (False, exported("p"), ["GPU-1"]),
        (False, native("p"), []),
    ],
)
def test_the_setting_forces_one_scheme(
    honor: bool,  # noqa: FBT001 - a parameter of the table above
    labels: SeriesLabels,
    held: list[str],
) -> None:
    answer, _ = found([pod("p")], device(labels), honor=honor)
    assert answer["p"][0] == held


def test_a_label_of_a_pod_that_is_over_holds_nothing() -> None:
    answer, loose = found([pod("p", phase=PodPhase.SUCCEEDED)], device(exported("p")))
    assert (answer, loose) == ({}, ["GPU-1"])


def test_a_pod_uid_tells_incarnations_apart() -> None:
    mine, yesterdays = exported("p", uid="uid-p"), exported("p", uid="uid-old")
    assert found([pod("p")], device(mine))[0] == {"p": (["GPU-1"], None)}
    assert found([pod("p")], device(yesterdays))[0] == {"p": ([], Reason.NO_SERIES)}
    both = found([pod("p")], device(yesterdays, mine))[0]
    assert both == {"p": (["GPU-1"], Reason.OWNER_CHANGED)}


def test_the_same_pod_under_two_schemes_is_one_holder() -> None:
    assert found([pod("p")], device(native("p"), exported("p")))[0] == {"p": (["GPU-1"], None)}


def test_a_stranger_in_the_window_is_a_doubt() -> None:
    answer, _ = found([pod("p")], device(exported("gone"), exported("p")))
    assert answer == {"p": (["GPU-1"], Reason.OWNER_CHANGED)}


def test_a_known_pod_that_is_over_is_a_stranger_under_the_native_scheme_too() -> None:
    over = pod("old", phase=PodPhase.FAILED)
    answer, _ = found([pod("p"), over], device(native("old"), native("p")))
    assert answer == {"p": (["GPU-1"], Reason.OWNER_CHANGED)}


def test_two_live_pods_share() -> None:
    view = ClusterView(
        pods=(pod("p"), pod("q")), nodes={"node-1": NodeRecord(name="node-1", ready=True)}
    )
    one = device(exported("p"), exported("q"))
    answer = attribute(view, {one.device: one})
    assert [(held.gap, held.devices[0].shared) for held in answer.pods] == [(None, True)] * 2


def on_node(
    one: PodRecord, *devices: DeviceEvidence, node: NodeRecord
) -> tuple[Reason | None, list[tuple[bool, str]]]:
    view = ClusterView(pods=(one,), nodes={node.name: node})
    answer = attribute(view, {device.device: device for device in devices})
    (held,) = answer.pods
    return held.gap, [(found.shared, found.model) for found in (*held.devices, *answer.loose)]


def test_every_device_of_a_node_that_shares_is_shared_even_one_that_nobody_holds() -> None:
    node = NodeRecord(name="node-1", ready=True, sharing="mps", product="NVIDIA-L4")
    spare = device(SeriesLabels(native=EXPORTER), uuid="GPU-2")
    told = [(True, "NVIDIA-L4"), (True, "")]
    assert on_node(pod("p"), device(exported("p")), spare, node=node) == (None, told)


def test_several_shares_may_be_of_one_gpu_but_none_is_a_gap() -> None:
    node = NodeRecord(name="node-1", ready=True, sharing="time-slicing")
    assert on_node(pod("p", gpus=2), device(exported("p")), node=node)[0] is None
    assert on_node(pod("p", gpus=2), node=node)[0] is Reason.NO_SERIES


def test_a_share_is_told_by_its_resource_name_too() -> None:
    node = NodeRecord(name="node-1", ready=True)
    shares = replace(pod("p"), requests={"nvidia.com/gpu.shared": 1})
    assert on_node(shares, device(exported("p")), node=node) == (None, [(True, "")])


@pytest.mark.parametrize(
    ("resource", "sharing"),
    [("aliyun.com/gpu-mem", ""), ("volcano.sh/vgpu-number", ""), ("nvidia.com/gpu", "vgpu")],
)
def test_parts_of_other_plug_ins_and_virtual_gpus_are_never_judged(
    resource: str, sharing: str
) -> None:
    node = NodeRecord(name="node-1", ready=True, sharing=sharing)
    one = replace(pod("p"), requests={resource: 1})
    assert on_node(one, device(exported("p")), node=node)[0] is Reason.SHARED_DEVICE


def test_a_board_with_slices_is_held_by_nobody() -> None:
    board, part = device(exported("p")), device(exported("p"), slice_="1")
    assert found([pod("p")], board, part) == ({"p": (["GPU-1/1"], None)}, [])


def test_series_of_another_node_are_left_out() -> None:
    far = device(exported("p"), node="node-2.example.org")
    assert found([pod("p")], far) == ({"p": ([], Reason.WRONG_NODE)}, ["GPU-1"])
    near = device(exported("p"), uuid="GPU-2", node="NODE-1")
    assert found([pod("p")], far, near)[0] == {"p": (["GPU-2"], Reason.WRONG_NODE)}


def test_series_of_another_cluster_are_left_out_though_its_pod_has_the_same_name() -> None:
    far = device(exported("p"), node="node-of-another-cluster")
    assert found([pod("p")], far) == ({"p": ([], Reason.WRONG_NODE)}, ["GPU-1"])
    honored = device(native("p"), node="node-of-another-cluster")
    assert found([pod("p")], honored) == ({"p": ([], Reason.WRONG_NODE)}, ["GPU-1"])


def test_an_exporter_that_tells_its_own_name_for_the_node_proves_nothing() -> None:
    own = device(exported("p"), node=EXPORTER.name)
    assert found([pod("p")], own)[0] == {"p": (["GPU-1"], None)}


def test_a_node_named_by_its_address_is_not_its_network() -> None:
    assert node_key("10.0.0.1") != node_key("10.0.0.2")
    far = device(exported("p"), node="10.0.0.2")
    there = replace(pod("p"), node="10.0.0.1")
    held = found([there], far, nodes=("10.0.0.1", "10.0.0.2"))
    assert held[0] == {"p": ([], Reason.WRONG_NODE)}


def test_the_count_has_to_be_the_request() -> None:
    one, two = device(exported("p")), device(exported("p"), uuid="GPU-2")
    assert found([pod("p", gpus=2)], one)[0] == {"p": (["GPU-1"], Reason.DEVICE_MISMATCH)}
    assert found([pod("p", gpus=2)], one, two)[0] == {"p": (["GPU-1", "GPU-2"], None)}


def test_a_node_is_known_by_its_first_label() -> None:
    assert node_key("Node-1.example.org") == node_key("node-1") == "node-1"

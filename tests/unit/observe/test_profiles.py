"""Each exporter generation is read at its own scale, and doubted where a name has two."""

from __future__ import annotations

import math

import pytest

from gpu_pruner.model.signals import DeviceId, Period, SeriesLabels, Signal, Subject, Track
from gpu_pruner.observe.labels import identify
from gpu_pruner.observe.profiles import BY_METRIC, FIELDS, PROFILES, fields_of, unknown_names
from gpu_pruner.observe.tracks import TrackTable
from gpu_pruner.settings.schema import ProfileName, PrometheusSettings

DCGM = (ProfileName.DCGM,)
ALL = Period(0, 100, 60.0)
ONE = Subject(DeviceId("GPU-a"), SeriesLabels())


def read(metric: str, *values: float) -> tuple[Track, ...]:
    table = TrackTable()
    table.record(BY_METRIC[metric], ONE, list(enumerate(values)))
    return table.tracks(ALL)


def test_a_name_stands_in_one_row_only() -> None:
    assert len(BY_METRIC) == len(FIELDS)


def test_every_profile_can_be_chosen_and_only_dcgm_is() -> None:
    assert set(PROFILES) == set(ProfileName)
    assert PrometheusSettings(url="http://prometheus:9090").profiles == DCGM


@pytest.mark.parametrize(
    ("old", "classic", "renamed", "signal"),
    [
        ("dcgm_fi_prof_gr_engine_active", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
         "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", Signal.ENGINE),
        ("dcgm_fi_prof_sm_active", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO",
         Signal.SM),
        ("dcgm_fi_prof_dram_active", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO",
         Signal.DRAM),
        ("dcgm_power_usage", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS",
         Signal.POWER),
        ("dcgm_gpu_temp", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS",
         Signal.TEMPERATURE),
    ],
)  # fmt: skip
def test_three_generations_say_the_same_in_the_same_unit(
    old: str, classic: str, renamed: str, signal: Signal
) -> None:
    for metric in (old, classic, renamed):
        (track,) = read(metric, 0.25)
        assert (track.signal, track.steps) == (signal, ((0, 0.25),))


@pytest.mark.parametrize(
    ("metric", "exported", "value"),
    [
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 2_500_000.0, 2500.0),
        ("dcgm_total_energy_consumption", 2_500_000.0, 2500.0),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 2500.0, 2500.0),
        ("DCGM_FI_DEV_FB_USED", 2.0, 2.0 * 2**20),
        ("DCGM_FI_DEV_FB_USED_BYTES", 4096.0, 4096.0),
        ("DCGM_FI_DEV_GPU_UTIL", 37.0, 37.0),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", 0.37, 37.0),
        ("nvidia_smi_utilization_gpu_ratio", 0.5, 50.0),
        ("kubernetes_io:container_accelerator_duty_cycle", 12.0, 12.0),
        ("amd_gpu_gfx_activity", 7.0, 7.0),
    ],
)
def test_every_name_has_its_own_scale(metric: str, exported: float, value: float) -> None:
    (track,) = read(metric, exported)
    assert track.steps == ((0, pytest.approx(value)),)


@pytest.mark.parametrize(
    ("metric", "exported"),
    [("DCGM_FI_DEV_GPU_UTIL_RATIO", 37.0), ("DCGM_FI_DEV_GPU_UTIL", 0.5),
     ("DCGM_FI_DEV_ENC_UTIL_RATIO", 60.0)],
)  # fmt: skip
def test_a_value_at_another_scale_is_work_seen_and_cannot_be_believed(
    metric: str, exported: float
) -> None:
    flawed, healthy = sorted(read(metric, 0.0, exported), key=lambda one: len(one.steps))
    assert healthy.steps == ((0, 0.0), (1, exported))
    ((step, value),) = flawed.steps
    assert step == 1
    assert math.isnan(value)


@pytest.mark.parametrize("metric", ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO"])
def test_zero_is_zero_at_any_scale(metric: str) -> None:
    (track,) = read(metric, 0.0)
    assert track.steps == ((0, 0.0),)


def test_both_directions_of_traffic_add_up() -> None:
    table = TrackTable()
    table.record(BY_METRIC["DCGM_FI_PROF_PCIE_RX_BYTES"], ONE, [(1, 6e6), (2, 1e6)])
    table.record(BY_METRIC["DCGM_FI_PROF_PCIE_TX_BYTES"], ONE, [(1, 6e6), (3, 2e6)])
    (track,) = table.tracks(ALL)
    assert (track.signal, track.metric) == (Signal.PCIE, "PCIe RX+TX")
    assert track.steps == ((1, 12e6), (2, 1e6), (3, 2e6))


def test_amd_shows_work_and_never_silence() -> None:
    (track,) = read("gpu_gfx_activity", 0.0, 30.0, 0.0)
    assert track.steps == ((1, 30.0),)
    assert read("gpu_gfx_activity", 0.0) == ()


def test_only_chosen_profiles_are_read() -> None:
    assert {one.metric for one in fields_of(DCGM)}.isdisjoint(
        one.metric for one in fields_of((ProfileName.AMD, ProfileName.GOOGLE))
    )
    assert fields_of((ProfileName.DCGM, ProfileName.DCGM)) == fields_of(DCGM)


def test_a_name_like_dcgms_that_stands_nowhere_is_unknown() -> None:
    names = ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_SM_CLOCK_HZ", "up",
             "DCGM_FI_PROF_NVLINK_L3_RX_BYTES", "DCGM_FI_DEV_NEW_UTIL_RATIO",
             "dcgm_new_utilization", "node_load1"]  # fmt: skip
    assert unknown_names(names, DCGM) == {"DCGM_FI_DEV_NEW_UTIL_RATIO", "dcgm_new_utilization"}


@pytest.mark.parametrize(
    ("labels", "device", "pod", "node"),
    [
        ({"uuid": "GPU-a", "pod_namespace": "ns", "pod_name": "p"}, DeviceId("GPU-a"), "ns/p", ""),
        ({"gpu_uuid": "GPU-a", "model_name": "H100"}, DeviceId("GPU-a"), None, ""),
        ({"UUID": "GPU-a", "dra_mig_device_uuid": "MIG-1", "dra_pool_name": "node-e",
          "dra_mig_profile": "1g.10gb"}, DeviceId("GPU-a", "MIG-1"), None, "node-e"),
        ({"UUID": "GPU-a", "GPU_I_ID": "7", "dra_mig_device_uuid": "MIG-1"},
         DeviceId("GPU-a", "7"), None, ""),
        ({"gpu_uuid": "A-1", "gpu_partition_id": "0", "hostname": "n"}, DeviceId("A-1"), None, "n"),
        ({"gpu_uuid": "A-1", "gpu_partition_id": "2"}, DeviceId("A-1", "2"), None, ""),
        ({"accelerator_id": "GPU-g", "namespace_name": "ns", "pod_name": "p"}, DeviceId("GPU-g"),
         "ns/p", ""),
        ({"UUID": "GPU-a", "Hostname": "pod-name", "kubernetes_node": "n"}, DeviceId("GPU-a"),
         None, "n"),
    ],
)  # fmt: skip
def test_every_spelling_names_the_device_its_pod_and_its_node(
    labels: dict[str, str], device: DeviceId, pod: str | None, node: str
) -> None:
    found = identify(labels, node_label="kubernetes_node")
    assert found is not None
    assert (found.device, found.labels.node) == (device, node)
    assert found.labels.exported == found.labels.native
    assert (found.labels.exported and str(found.labels.exported)) == pod


def test_an_old_pod_label_is_not_the_exporters_own() -> None:
    target = {"namespace": "gpu-operator", "pod": "exporter-x"}
    found = identify({"uuid": "GPU-a", "pod_namespace": "ns", "pod_name": "p", **target})
    assert found is not None
    assert (str(found.labels.exported), str(found.labels.native)) == (
        "ns/p",
        "gpu-operator/exporter-x",
    )

"""A series' labels name a device and, perhaps, pods."""

from __future__ import annotations

from gpu_pruner.model.signals import DeviceId, PodName, SeriesLabels
from gpu_pruner.observe.labels import Subjects, identify

TARGET = {"namespace": "gpu-operator", "pod": "exporter-x", "job": "dcgm-exporter"}


def test_both_triples_are_kept_apart() -> None:
    found = identify(
        {"UUID": "GPU-a", "exported_namespace": "team-a", "exported_pod": "notebook-1", **TARGET}
    )
    assert found is not None
    assert found.device == DeviceId("GPU-a")
    assert found.labels == SeriesLabels(
        exported=PodName("team-a", "notebook-1"),
        native=PodName("gpu-operator", "exporter-x"),
        job="dcgm-exporter",
    )


def test_empty_labels_are_absent_ones() -> None:
    found = identify({"UUID": "GPU-a", "namespace": "", "pod": "", "GPU_I_ID": ""})
    assert found is not None
    assert found.device == DeviceId("GPU-a")
    assert found.labels == SeriesLabels()


def test_half_a_pod_name_names_no_pod() -> None:
    found = identify({"UUID": "GPU-a", "pod": "notebook-1", "exported_namespace": "team-a"})
    assert found is not None
    assert (found.labels.native, found.labels.exported) == (None, None)


def test_a_slice_keeps_its_boards_uuid() -> None:
    found = identify({"UUID": "GPU-a", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.10gb", "vgpu": "3"})
    assert found is not None
    assert found.device == DeviceId("GPU-a", "7")
    assert (found.labels.mig_profile, found.labels.replica) == ("1g.10gb", "3")


def test_either_spelling_of_the_host_label_is_the_node() -> None:
    for name in ("Hostname", "hostname"):
        found = identify({"UUID": "GPU-a", name: "node-a"})
        assert found is not None
        assert found.labels.node == "node-a"


def test_a_series_without_uuid_is_about_no_device() -> None:
    assert identify({"cpu": "0", "Hostname": "node-a"}) is None


def test_labels_are_read_once_per_series() -> None:
    reads: list[str] = []

    def read(key: str) -> dict[str, str]:
        reads.append(key)
        return {"UUID": key}

    subjects = Subjects(read, job="10.0.0.1:9400")
    first, again, other = subjects.of("GPU-a"), subjects.of("GPU-a"), subjects.of("GPU-b")
    assert first is again
    assert reads == ["GPU-a", "GPU-b"]
    assert other is not None
    assert other.labels.job == "10.0.0.1:9400"


def test_label_sets_that_say_the_same_are_one_subject() -> None:
    subjects = Subjects(lambda key: {"UUID": "GPU-a", key: "node-a"})
    assert subjects.of("Hostname") is subjects.of("hostname")
    assert subjects.of("vgpu") is not subjects.of("hostname")

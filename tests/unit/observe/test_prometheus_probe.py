"""The probe finds fields, label scheme and interval, and says so in words."""

from __future__ import annotations

import json

import msgspec
import pytest

from gpu_pruner.model.signals import Signal
from gpu_pruner.observe.prometheus_probe import (
    Probe,
    read_hint,
    read_probe,
    scrape_interval,
    step_seconds,
)
from gpu_pruner.observe.prometheus_replies import Series

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
POWER = "DCGM_FI_DEV_POWER_USAGE"
TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"


def row(value: float, **labels: str) -> Series:
    return Series(msgspec.Raw(json.dumps(labels).encode()), value=(0.0, str(value)))


def samples(*moments: float) -> Series:
    return Series(values=tuple((moment, "0") for moment in moments))


def test_the_answer_is_read_row_by_row() -> None:
    probe = read_probe(
        [
            row(3, mode="exported"),
            row(2, mode="duplicates"),
            row(5, mode=ENGINE),
            row(1, mode="sample", UUID="GPU-b"),
            row(1, mode="sample", UUID="GPU-a"),
        ]
    )
    assert probe == Probe(devices={ENGINE: 5}, exported=3, duplicates=2, sample=("GPU-a", "GPU-b"))
    assert probe.series == 10


def test_an_empty_answer_is_no_devices() -> None:
    assert read_probe([]).devices == {}


def test_a_screen_asks_for_all_activity_and_for_liveness_of_every_device() -> None:
    both = Probe(devices={ENGINE: 8, UTIL: 8, ENERGY: 6, POWER: 8, TEMPERATURE: 8})
    assert [field.metric for field in both.screened] == [ENGINE, UTIL, ENERGY, POWER]
    usual = Probe(
        devices={ENGINE: 8, ENERGY: 8, POWER: 8, TEMPERATURE: 8, "DCGM_FI_DEV_FB_USED": 8}
    )
    assert [field.signal for field in usual.screened] == [Signal.ENGINE, Signal.ENERGY]
    assert [field.metric for field in Probe(devices={TEMPERATURE: 1}).screened] == [TEMPERATURE]


@pytest.mark.parametrize(
    ("exported", "native", "said"),
    [
        (4, 0, "workloads are in exported_pod (honorLabels false) on 4 series"),
        (0, 4, "workloads are in pod (honorLabels true) on 4 series"),
        (3, 2, "label schemes are mixed: exported_pod on 3 series, pod on 2"),
        (0, 0, "no series names a pod: nothing is allocated, or the exporter's pod mapping is off"),
    ],
)
def test_the_label_scheme_is_said_in_words(exported: int, native: int, said: str) -> None:
    probe = Probe(devices={ENGINE: 4}, exported=exported, native=native)
    assert probe.notes(honor_labels=None) == (said,)


def test_a_setting_that_contradicts_the_labels_is_said() -> None:
    exported = Probe(devices={ENGINE: 4}, exported=4)
    native = Probe(devices={ENGINE: 4}, native=4)
    assert "honor_labels is true" in exported.notes(honor_labels=True)[1]
    assert "honor_labels is false" in native.notes(honor_labels=False)[1]
    assert len(exported.notes(honor_labels=False)) == 1


def test_weak_and_doubled_telemetry_are_said() -> None:
    _, weak, doubled = Probe(devices={UTIL: 9}, exported=9, util_only=7, duplicates=2).notes(
        honor_labels=None
    )
    assert weak.startswith("7 devices export only GPU_UTIL")
    assert doubled.startswith("up to 2 series say the same")


@pytest.mark.parametrize(
    ("series", "interval"),
    [
        ([samples(0, 30.01, 59.99, 90)], 30.0),
        ([samples(0, 15, 30), samples(7, 22, 300)], 15.0),
        ([samples(0, 0.4)], 1.0),
        ([samples(0), samples(5)], None),
        ([], None),
    ],
)
def test_the_scrape_interval_is_the_usual_gap(series: list[Series], interval: float | None) -> None:
    assert scrape_interval(series) == interval


@pytest.mark.parametrize(
    ("interval", "step"), [(1, 60), (30, 60), (60, 60), (61, 60), (75, 90), (120, 120), (121, 150)]
)
def test_a_step_is_a_minute_or_a_slower_scrape(interval: float, step: float) -> None:
    assert step_seconds(interval) == step


def test_unknown_gpu_metrics_are_named() -> None:
    rows = [row(4, __name__="dcgm_gpu_utilization"), row(4, __name__="amd_gpu_gfx_activity")]
    assert read_hint(rows) == ("amd_gpu_gfx_activity", "dcgm_gpu_utilization")

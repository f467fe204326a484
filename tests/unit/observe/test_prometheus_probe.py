"""The probe finds fields, label scheme and interval, and says so in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import msgspec
import pytest

from gpu_pruner.model.signals import Signal
from gpu_pruner.observe import notes
from gpu_pruner.observe.profiles import BY_METRIC, Field, fields_of
from gpu_pruner.observe.prometheus_probe import (
    Ask,
    Names,
    Probe,
    read_hint,
    read_names,
    read_probe,
    scrape_interval,
    step_seconds,
)
from gpu_pruner.observe.prometheus_replies import Series
from gpu_pruner.settings.schema import ProfileName, PrometheusSettings

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
POWER = "DCGM_FI_DEV_POWER_USAGE"
TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
ENC = "DCGM_FI_DEV_ENC_UTIL"
USED = "DCGM_FI_DEV_FB_USED"
DCGM = (ProfileName.DCGM,)
ALL = fields_of(DCGM)


def row(value: float, **labels: str) -> Series:
    return Series(msgspec.Raw(json.dumps(labels).encode()), value=(0.0, str(value)))


def samples(*moments: float) -> Series:
    return Series(values=msgspec.Raw(json.dumps([(moment, "0") for moment in moments]).encode()))


def probe(*, fields: tuple[Field, ...] = (), **more: object) -> Probe:
    devices = cast("Mapping[str, int]", more.pop("devices", {ENGINE: 4}))
    known = fields or tuple(one for one in ALL if one.metric in devices)
    return replace(Probe(fields=known, devices=devices), **more)


def said(found: Probe, **settings: object) -> tuple[str, ...]:
    told = PrometheusSettings.model_validate({"url": "http://prometheus:9090", **settings})
    return tuple(notes.found(found, told))


def test_the_answer_is_read_row_by_row() -> None:
    names = read_names([row(9, __name__=ENGINE)], ALL, DCGM)
    found = read_probe(
        [
            row(3, mode="exported"),
            row(2, mode="duplicates"),
            row(5, mode=ENGINE),
            row(4, mode="weaker_util"),
            row(7, mode="nameless"),
            row(2, mode="clusters"),
            row(6, mode="rescaled"),
            row(1, mode="sample", UUID="GPU-b"),
            row(1, mode="sample", uuid="GPU-a"),
        ],
        names,
    )
    assert found == Probe(
        fields=(BY_METRIC[ENGINE],),
        devices={ENGINE: 5},
        exported=3,
        duplicates=2,
        weaker={Signal.UTIL: 4},
        nameless=7,
        clusters=2,
        rescaled=6,
        sample=(("UUID", "GPU-b"), ("uuid", "GPU-a")),
    )
    assert found.series == 10


def test_an_empty_answer_is_no_devices() -> None:
    assert read_probe([], Names(known=(), unknown={})).devices == {}


def test_a_name_that_we_do_not_know_is_counted_and_one_without_use_is_not() -> None:
    rows = [
        row(8, __name__=ENGINE),
        row(8, __name__="DCGM_FI_PROF_WARP_DRIVE_RATIO"),
        row(8, __name__="dcgm_sm_clock"),
        row(8, __name__="DCGM_FI_DEV_SM_CLOCK"),
        row(1, __name__="dcgm_exporter_build_info"),
    ]
    names = read_names(rows, ALL, DCGM)
    assert [one.metric for one in names.known] == [ENGINE]
    assert names.unknown == {"DCGM_FI_PROF_WARP_DRIVE_RATIO": 8}
    (_, told) = said(replace(probe(), exported=1, unknown=names.unknown))
    assert told.startswith("1 GPU metrics are not known to this version and not read: DCGM_FI_PROF")


def test_a_screen_asks_for_silence_only_where_it_can_prove_something() -> None:
    usual = probe(devices=dict.fromkeys((ENGINE, UTIL, ENC, ENERGY, POWER, TEMPERATURE, USED), 8))
    asked = {field.metric: ask for field, ask in usual.screened}
    assert asked == {ENGINE: Ask.PEAKS, UTIL: Ask.WORK, ENC: Ask.WORK, ENERGY: Ask.MOVES}


def test_a_screen_asks_for_utilisation_in_full_where_a_device_has_nothing_better() -> None:
    mixed = probe(devices={ENGINE: 8, UTIL: 9, ENERGY: 9}, weaker={Signal.UTIL: 1})
    assert dict(mixed.screened)[BY_METRIC[UTIL]] is Ask.PEAKS


def test_a_screen_asks_for_liveness_of_every_device() -> None:
    both = probe(devices={ENGINE: 8, ENERGY: 6, POWER: 8, TEMPERATURE: 8})
    assert [field.metric for field, _ in both.screened] == [ENGINE, ENERGY, POWER]
    split = probe(
        devices={ENGINE: 8, ENERGY: 5, POWER: 3},
        weaker={Signal.ENERGY: 5, Signal.POWER: 3},
    )
    assert [field.metric for field, _ in split.screened] == [ENGINE, ENERGY, POWER]
    hot = probe(devices={TEMPERATURE: 1})
    assert [field.metric for field, _ in hot.screened] == [TEMPERATURE]


@pytest.mark.parametrize(
    ("exported", "native", "words"),
    [
        (4, 0, "workloads are in exported_pod (honorLabels false) on 4 series"),
        (0, 4, "workloads are in pod (honorLabels true) on 4 series"),
        (3, 2, "label schemes are mixed: exported_pod on 3 series, pod on 2"),
        (0, 0, "no series names a pod: nothing is allocated, or the exporter's pod mapping is off"),
    ],
)
def test_the_label_scheme_is_said_in_words(exported: int, native: int, words: str) -> None:
    assert said(probe(exported=exported, native=native)) == (words,)


def test_a_setting_that_contradicts_the_labels_is_said() -> None:
    exported, native = probe(exported=4), probe(native=4)
    assert "honor_labels is true" in said(exported, honor_labels=True)[1]
    assert "honor_labels is false" in said(native, honor_labels=False)[1]
    assert len(said(exported, honor_labels=False)) == 1


def test_weak_rescaled_nameless_and_doubled_telemetry_are_said() -> None:
    _, weak, rescaled, nameless, doubled = said(
        probe(exported=9, weaker={Signal.UTIL: 7}, rescaled=3, nameless=5, duplicates=2)
    )
    assert weak.startswith("7 devices export only GPU_UTIL")
    assert rescaled.startswith("3 devices have utilisation at another scale")
    assert nameless.startswith("5 series name no device")
    assert doubled.startswith("up to 2 series say the same")


@pytest.mark.parametrize("name", ["google", "azure", "nvidia_smi", "amd"])
def test_every_profile_that_is_opted_into_tells_its_limits(name: str) -> None:
    assert len(said(probe(exported=1), profiles=["dcgm", name])) == 2


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

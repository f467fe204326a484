"""The models that were seen at work in the last days."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from gpu_pruner.model.signals import Signal
from gpu_pruner.model.units import DAY
from gpu_pruner.observe.profiles import BY_METRIC
from gpu_pruner.observe.prometheus_meters import days, questions, read
from gpu_pruner.observe.prometheus_replies import Series
from gpu_pruner.observe.promql import Scope

ENGINE = BY_METRIC["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]
UTIL = BY_METRIC["DCGM_FI_DEV_GPU_UTIL"]
ENERGY = BY_METRIC["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]


def test_only_what_could_convict_is_asked_for() -> None:
    assert dict(questions([ENGINE, UTIL, ENERGY], Scope(matcher='cluster="east"'))) == {
        ENGINE: 'group by (modelName, model_name) '
        '(DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID!="",cluster="east"} > 0.01 <= 1.1)',
        UTIL: 'group by (modelName, model_name) '
        '(DCGM_FI_DEV_GPU_UTIL{UUID!="",cluster="east"} > 0 <= 100)',
    }  # fmt: skip


def test_a_week_is_asked_for_day_by_day_without_a_gap() -> None:
    found = list(days(1_767_268_740.0))
    assert len(found) == 7
    assert all(one.steps * one.step_seconds == DAY for one in found)
    assert all(late.first == early.last + 1 for late, early in pairwise(found))


def test_models_are_read_by_either_label_and_nameless_ones_are_left_out() -> None:
    rows = [b'{"modelName":"NVIDIA X9"}', b'{"model_name":"Y1"}', b'{"modelName":""}', b"{}"]
    assert read(UTIL, [Series(msgspec.Raw(one)) for one in rows]) == {
        ("NVIDIA X9", Signal.UTIL),
        ("Y1", Signal.UTIL),
    }

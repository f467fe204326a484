"""Queries say what they mean, and every cut of a question covers the whole of it once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_pruner.model.signals import Period
from gpu_pruner.observe import labels
from gpu_pruner.observe.profiles import BY_METRIC, FIELDS
from gpu_pruner.observe.promql import (
    MATCH_BATCH,
    MOST_STEPS,
    Scope,
    Slice,
    everything,
    flaws,
    literal,
    moves,
    named_moves,
    names,
    peaks,
    quoted,
    slices_for,
    slices_for_all,
    work,
)

UTIL = BY_METRIC["DCGM_FI_DEV_GPU_UTIL"]


WHOLE = Slice(Period(1, 3, 60.0))


def test_peaks_are_maxima_over_every_identity_label() -> None:
    query = peaks(UTIL, WHOLE, Scope())
    assert query.endswith('(max_over_time(DCGM_FI_DEV_GPU_UTIL{UUID!=""}[60s]))')
    assert query.startswith("max by (" + ", ".join(labels.IDENTITY) + ")")


def test_a_renamed_node_label_tells_series_apart_and_a_cluster_limits_them() -> None:
    query = peaks(UTIL, WHOLE, Scope(matcher='cluster="east"', node_label="kubernetes_node"))
    assert ", job, kubernetes_node) (" in query
    assert '{UUID!="",cluster="east"}[60s]' in query


def test_a_screen_asks_for_work_above_the_noise_only() -> None:
    traffic = BY_METRIC["DCGM_FI_PROF_PCIE_RX_BYTES"]
    assert work(UTIL, WHOLE, Scope()).endswith("[60s])) > 0")
    assert work(traffic, WHOLE, Scope()).endswith("[60s])) > 1e+06")


def test_movement_is_told_by_device_and_compared_with_a_step_before() -> None:
    energy = BY_METRIC["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
    series = 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{UUID!=""}'
    by = ", ".join(labels.DEVICE)
    assert moves(energy, WHOLE, Scope()) == (
        f"max by ({by}) ({series}) != bool max by ({by}) ({series} offset 60s)"
    )
    assert named_moves(energy, WHOLE, Scope()).startswith(f"max by ({Scope().by}) (")


def test_every_label_that_may_hold_the_device_is_asked_for() -> None:
    query = peaks(BY_METRIC["DCGM_FI_PROF_NVLINK_RX_BYTES"], WHOLE, Scope())
    assert '{UUID!=""}[60s]) or max_over_time(' in query
    assert '{gpu_uuid!=""}[60s])' in query


def test_new_xid_codes_add_up_to_a_change() -> None:
    query = peaks(BY_METRIC["DCGM_FI_DEV_XID_ERRORS"], WHOLE, Scope())
    assert query.startswith("sum by (")
    assert ", job, err_code) (max_over_time(" in query


def test_flaws_are_values_that_no_maximum_shows() -> None:
    series = 'DCGM_FI_DEV_GPU_UTIL{UUID!=""}[60s]'
    assert (
        f"((sum_over_time({series}) != sum_over_time({series})) or (min_over_time({series}) < 0))"
        in flaws(UTIL, WHOLE, Scope())
    )


def test_which_metrics_there_are_is_one_question_per_uuid_label() -> None:
    fields = [UTIL, BY_METRIC["dcgm_gpu_utilization"]]
    query = names(fields, Slice(WHOLE.period, ("GPU-a",)), Scope(matcher='cluster="east"'))
    both = "DCGM_FI_DEV_GPU_UTIL|dcgm_gpu_utilization"
    assert query == (
        f'group by (__name__) ({{__name__=~"{both}",UUID=~"GPU-a",cluster="east"}} or '
        '{__name__=~"dcgm_gpu_utilization",uuid=~"GPU-a",cluster="east"})'
    )


def test_metric_names_are_unique() -> None:
    assert len(BY_METRIC) == len(FIELDS)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("GPU-1a2b", "GPU-1a2b"),
        ("GPU-a.*", r"GPU-a\\.\\*"),
        ('a"} or vector(1) #', r"a\\\"\\}\\ or\\ vector\\(1\\)\\ \\#"),
        ("a\nb\\", r"ab\\\\"),
        ("GPU\u2013\u00e9", "GPU\u2013\u00e9"),
    ],
)
def test_a_hostile_uuid_matches_only_itself(text: str, pattern: str) -> None:
    assert literal(text) == pattern


def test_a_hostile_cluster_name_stays_between_its_quotes() -> None:
    assert quoted('a"} or vector(1) #\\') == 'a\\"} or vector(1) #\\\\'


@given(first=st.integers(0, 1000), steps=st.integers(1, 40_000), devices=st.integers(0, 10**6))
def test_slices_of_all_devices_cover_the_period_once(first: int, steps: int, devices: int) -> None:
    period = Period(first, first + steps - 1, 60.0)
    parts = list(slices_for_all(period, devices))
    assert parts[0].period.first == period.first
    assert parts[-1].period.last == period.last
    assert all(later.period.first == earlier.period.last + 1 for earlier, later in pairwise(parts))
    assert max(part.period.steps for part in parts) <= MOST_STEPS


def test_some_devices_are_asked_for_in_bounded_batches() -> None:
    uuids = tuple(f"GPU-{n}" for n in range(MATCH_BATCH * 2 + 1))
    parts = list(slices_for(uuids, Period(0, 34, 60.0)))
    assert [len(part.uuids or ()) for part in parts] == [MATCH_BATCH, MATCH_BATCH, 1]
    assert parts[2].matcher("UUID") == f'UUID=~"GPU-{MATCH_BATCH * 2}"'


@given(steps=st.integers(1, 50), uuids=st.integers(1, 9))
def test_splitting_covers_every_step_of_every_device_once(steps: int, uuids: int) -> None:
    names = tuple(f"GPU-{n}" for n in range(uuids))
    found = Counter[tuple[str, int]]()
    waiting = [Slice(Period(1, steps, 60.0), names)]
    while waiting:
        part = waiting.pop()
        smaller = part.split()
        waiting += smaller
        if not smaller:
            assert part.uuids is not None
            found.update(
                (uuid, step)
                for uuid in part.uuids
                for step in range(part.period.first, part.period.last + 1)
            )
    assert found == {(uuid, step): 1 for uuid in names for step in range(1, steps + 1)}


def test_all_devices_are_divided_by_their_first_digit_and_a_rest() -> None:
    whole = Slice(Period(1, 3, 60.0))
    shards = whole.split()
    assert len(shards) == 17
    assert shards[10].matcher("UUID") == 'UUID=~"GPU-a.*"'
    assert shards[16].matcher("UUID") == 'UUID!="",UUID!~"GPU-[0123456789abcdef].*"'
    assert replace(shards[3], shard="") == whole
    assert shards[3].split() == ()


def test_a_verify_asks_everything_at_once_and_says_which_row_is_what() -> None:
    query = everything([UTIL], WHOLE, Scope())
    assert query == (
        f'label_replace({peaks(UTIL, WHOLE, Scope())}, "asked", "{UTIL.metric}", "", "") or '
        f'label_replace({flaws(UTIL, WHOLE, Scope())}, "asked", "!{UTIL.metric}", "", "")'
    )

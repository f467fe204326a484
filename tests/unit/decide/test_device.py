from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.story import told_rules

from gpu_pruner.decide.device import Yardstick, judge_device, needed_seconds
from gpu_pruner.model.plan import DeviceFinding
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period, Signal, SignalEvidence
from gpu_pruner.model.verdict import Reason, Verdict

PERIOD = Period(first=1000, last=1034, step_seconds=60)
RULES = told_rules()
ENGINE = SignalEvidence(
    signal=Signal.ENGINE,
    metric="DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    seen_steps=35,
    active_steps=0,
    last_active_at=None,
    invalid_steps=0,
    changes=0,
    newest_at=PERIOD.end,
)
UTIL = replace(ENGINE, signal=Signal.UTIL, metric="DCGM_FI_DEV_GPU_UTIL")
ENERGY = replace(ENGINE, signal=Signal.ENERGY, metric="energy", changes=34)
ENERGY = replace(ENERGY, last_changed_at=PERIOD.end)


def judged(
    *signals: SignalEvidence,
    at: float = PERIOD.end,
    scrape: float = 30.0,
    born_at: float = 0.0,
    period: Period = PERIOD,
    mig_instance: str = "",
    model: str = "NVIDIA H100 80GB HBM3",
    shared: bool = False,
    known: dict[str, Any] | None = None,
) -> DeviceFinding:
    evidence = DeviceEvidence(
        device=DeviceId("GPU-x", mig_instance),
        period=period,
        signals=signals,
        model=model,
        shared=shared,
    )
    yardstick = Yardstick(rules=RULES, at=at, scrape_interval_seconds=scrape, **(known or {}))
    return judge_device(evidence, yardstick, born_at=born_at, node="node-1")


def test_a_whole_and_quiet_window_is_idle() -> None:
    found = judged(ENGINE, UTIL, ENERGY)
    assert (found.verdict, found.reason) == (Verdict.IDLE, Reason.IDLE)
    assert found.detail == "35 of 35 minutes seen"


@pytest.mark.parametrize(
    ("scrape", "age", "reason"),
    [
        (30.0, 90.0, Reason.IDLE),
        (30.0, 90.5, Reason.STALE),
        (15.0, 90.0, Reason.IDLE),
        (60.0, 180.0, Reason.IDLE),
        (60.0, 181.0, Reason.STALE),
    ],
)
def test_the_newest_sample_may_be_three_scrapes_old_and_at_least_90_seconds(
    scrape: float, age: float, reason: Reason
) -> None:
    assert judged(ENGINE, ENERGY, at=PERIOD.end + age, scrape=scrape).reason is reason


@pytest.mark.parametrize(("seen", "reason"), [(33, Reason.IDLE), (32, Reason.LOW_COVERAGE)])
def test_33_of_35_steps_are_enough(seen: int, reason: Reason) -> None:
    assert judged(replace(ENGINE, seen_steps=seen), ENERGY).reason is reason


@pytest.mark.parametrize(("changes", "reason"), [(10, Reason.IDLE), (9, Reason.NOT_LIVE)])
def test_ten_changes_show_that_telemetry_lives(changes: int, reason: Reason) -> None:
    assert judged(ENGINE, replace(ENERGY, changes=changes)).reason is reason


@pytest.mark.parametrize(
    ("signal", "minutes", "reason"),
    [
        (Signal.ENERGY, 3, Reason.IDLE),
        (Signal.ENERGY, 4, Reason.NOT_LIVE),
        (Signal.POWER, 10, Reason.IDLE),
        (Signal.POWER, 11, Reason.NOT_LIVE),
    ],
)
def test_what_stood_still_at_the_end_does_not_live(
    signal: Signal, minutes: int, reason: Reason
) -> None:
    still = replace(ENERGY, signal=signal, last_changed_at=PERIOD.end - 60 * minutes)
    assert judged(ENGINE, still).reason is reason


@pytest.mark.parametrize(("changes", "reason"), [(4, Reason.IDLE), (3, Reason.NOT_LIVE)])
def test_a_window_of_few_steps_asks_for_a_third_of_them(changes: int, reason: Reason) -> None:
    short = Period(first=1023, last=1034, step_seconds=180)
    seen = {"seen_steps": 12, "newest_at": short.end}
    found = judged(
        replace(ENGINE, **seen),
        replace(ENERGY, **seen, changes=changes, last_changed_at=short.end),
        at=short.end,
        period=short,
    )
    assert found.reason is reason


@pytest.mark.parametrize(("born_at", "reason"), [(5999.0, Reason.GPU_ACTIVE),
                                                 (6000.0, Reason.OWNER_CHANGED)])  # fmt: skip
def test_work_that_ended_before_the_pod_was_there_is_not_its_work(
    born_at: float, reason: Reason
) -> None:
    busy = replace(ENGINE, active_steps=1, last_active_at=6000.0)
    assert judged(busy, ENERGY, born_at=born_at).reason is reason


def test_the_newest_work_is_told() -> None:
    early = replace(ENGINE, active_steps=3, last_active_at=PERIOD.end - 600, peak=0.9,
                    peak_at=PERIOD.end - 900)  # fmt: skip
    late = replace(UTIL, active_steps=1, last_active_at=PERIOD.end - 60, peak=3.0,
                   peak_at=PERIOD.end - 60)  # fmt: skip
    assert judged(early, late, ENERGY).detail.startswith("utilisation peak 3 at ")
    assert judged(early, ENERGY).detail.startswith("engine peak 0.900 at ")


def test_a_device_of_a_longer_judged_period_must_be_whole_over_all_of_it() -> None:
    long = Period(first=900, last=1034, step_seconds=60)
    assert judged(ENGINE, ENERGY, period=long).reason is Reason.LOW_COVERAGE
    whole = replace(ENGINE, seen_steps=128)
    assert judged(whole, ENERGY, period=long).reason is Reason.IDLE


def test_only_a_device_without_a_profiling_signal_needs_twice_the_window() -> None:
    def needed(*signals: SignalEvidence, mig_instance: str = "") -> float:
        device = DeviceId("GPU-x", mig_instance)
        evidence = DeviceEvidence(device=device, period=PERIOD, signals=signals)
        return needed_seconds(evidence, RULES)

    assert needed(ENGINE, UTIL) == needed() == needed(UTIL, mig_instance="1") == 2100
    assert needed(UTIL, ENERGY) == 4200


XID = replace(ENGINE, signal=Signal.XID, metric="DCGM_FI_DEV_XID_ERRORS")


@pytest.mark.parametrize(
    ("changes", "there", "reason"),
    [
        (0, 0, Reason.IDLE),
        (1, 10, Reason.DEVICE_ERROR),
        (0, 1, Reason.DEVICE_ERROR),
        (0, 32, Reason.DEVICE_ERROR),
        (0, 33, Reason.IDLE),
        (0, 35, Reason.IDLE),
    ],
)
def test_an_error_that_is_new_in_the_window_is_a_doubt(
    changes: int, there: int, reason: Reason
) -> None:
    xid = replace(XID, changes=changes, loud_steps=there)
    assert judged(ENGINE, ENERGY, xid).reason is reason


def test_an_error_does_not_hide_work() -> None:
    busy = replace(ENGINE, active_steps=1, last_active_at=PERIOD.end)
    assert judged(busy, replace(XID, changes=1)).reason is Reason.GPU_ACTIVE


def test_a_shared_device_is_idle_by_its_engine_only_and_on_a_quiet_node_only() -> None:
    assert judged(ENGINE, UTIL, ENERGY, shared=True).reason is Reason.IDLE
    assert judged(UTIL, ENERGY, shared=True).reason is Reason.NO_PRIMARY_SIGNAL
    restless = {"restless_nodes": frozenset({"node-1"})}
    assert judged(ENGINE, ENERGY, shared=True, known=restless).reason is Reason.SHARED_DEVICE
    assert judged(ENGINE, ENERGY, known=restless).reason is Reason.IDLE


def test_utilisation_of_a_shared_device_can_prove_work_and_contradict() -> None:
    busy = replace(UTIL, active_steps=1, last_active_at=PERIOD.end)
    assert judged(ENGINE, busy, shared=True).reason is Reason.GPU_ACTIVE
    assert judged(ENGINE, replace(busy, loud_steps=1), shared=True).reason is Reason.CONTRADICTION


def test_a_device_that_fell_quiet_with_many_is_held_unless_it_works() -> None:
    known = {"silenced": {DeviceId("GPU-x"): PERIOD.end + 60}}
    found = judged(ENGINE, ENERGY, known=known)
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, Reason.SUDDEN_SILENCE)
    busy = replace(ENGINE, active_steps=1, last_active_at=PERIOD.end)
    assert judged(busy, ENERGY, known=known).reason is Reason.GPU_ACTIVE


def test_a_zero_counts_on_a_model_that_was_seen_at_work_only() -> None:
    assert judged(ENGINE, ENERGY, model="NVIDIA GB10").reason is Reason.UNPROVEN_METER
    assert judged(ENGINE, ENERGY, model="").reason is Reason.UNPROVEN_METER
    seen = {"proven": frozenset({("NVIDIA GB10", Signal.ENGINE)})}
    assert judged(ENGINE, ENERGY, model="NVIDIA GB10", known=seen).reason is Reason.IDLE

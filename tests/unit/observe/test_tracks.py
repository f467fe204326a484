"""Peaks per step, in which nothing bad hides behind something good."""

from __future__ import annotations

import math

from gpu_pruner.model.signals import DeviceId, Period, SeriesLabels, Signal, Subject
from gpu_pruner.observe.profiles import BY_METRIC
from gpu_pruner.observe.tracks import TrackTable

ENGINE = BY_METRIC["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]
ENERGY = BY_METRIC["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
ALL = Period(0, 100, 60.0)


def identity(uuid: str = "GPU-a", instance: str = "") -> Subject:
    return Subject(DeviceId(uuid, instance), SeriesLabels())


def test_the_highest_value_of_a_step_stays() -> None:
    table, one = TrackTable(), identity()
    table.record(ENGINE, one, [(3, 0.1), (3, 0.7), (3, 0.2), (4, 0.0)])
    (track,) = table.tracks(ALL)
    assert track.steps == ((3, 0.7), (4, 0.0))


def test_steps_come_out_ascending_however_they_came_in() -> None:
    table, one = TrackTable(), identity()
    table.record(ENGINE, one, [(9, 0.0)])
    table.record(ENGINE, one, [(2, 0.0), (5, 0.0)])
    (track,) = table.tracks(ALL)
    assert [step for step, _ in track.steps] == [2, 5, 9]


def test_values_are_scaled_to_the_signals_unit() -> None:
    table = TrackTable()
    table.record(ENERGY, identity(), [(1, 2_500_000.0)])
    (track,) = table.tracks(ALL)
    assert (track.signal, track.steps) == (Signal.ENERGY, ((1, 2500.0),))


def test_a_flawed_value_is_a_track_of_its_own() -> None:
    table, one = TrackTable(), identity()
    table.record(ENGINE, one, [(1, 0.5), (1, math.nan), (2, -1.0), (2, 0.0)])
    healthy, flawed = table.tracks(ALL)
    assert healthy.steps == ((1, 0.5), (2, 0.0))
    assert flawed.device == healthy.device
    (nan_step, nan), negative = flawed.steps
    assert (nan_step, negative) == (1, (2, -1.0))
    assert math.isnan(nan)


def test_only_the_asked_period_comes_out() -> None:
    table = TrackTable()
    table.record(ENGINE, identity(), [(n, 0.0) for n in range(10)])
    table.record(ENGINE, identity("GPU-b"), [(9, 0.0)])
    (track,) = table.tracks(Period(3, 5, 60.0))
    assert [step for step, _ in track.steps] == [3, 4, 5]


def test_a_slice_is_asked_for_with_its_board() -> None:
    table = TrackTable()
    for one in (identity(), identity(instance="7"), identity(instance="8"), identity("GPU-b")):
        table.record(ENGINE, one, [(1, 0.0)])
    found = table.tracks(ALL, [DeviceId("GPU-a", "7")])
    assert {track.device for track in found} == {DeviceId("GPU-a"), DeviceId("GPU-a", "7")}


def test_what_is_forgotten_is_gone() -> None:
    table = TrackTable()
    table.record(ENGINE, identity(), [(1, 0.0), (5, 0.0)])
    table.record(ENGINE, identity("GPU-old"), [(1, 0.0)])
    table.forget_before(5)
    (track,) = table.tracks(ALL)
    assert track.steps == ((5, 0.0),)
    assert len(table) == 1

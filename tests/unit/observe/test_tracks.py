"""Peaks per step, in which nothing bad hides behind something good."""

from __future__ import annotations

import math

from gpu_pruner.model.signals import DeviceId, Period, SeriesLabels, Signal, Subject
from gpu_pruner.observe.profiles import BY_METRIC
from gpu_pruner.observe.tracks import TrackTable

ENGINE = BY_METRIC["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]
ENERGY = BY_METRIC["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
ALL = Period(0, 100, 60.0)


def subject(uuid: str = "GPU-a", instance: str = "") -> Subject:
    return Subject(DeviceId(uuid, instance), SeriesLabels())


def test_the_highest_value_of_a_step_stays() -> None:
    table, one = TrackTable(), subject()
    table.record(ENGINE, one, [(3, 0.1), (3, 0.7), (3, 0.2), (4, 0.0)])
    (track,) = table.tracks(ALL)
    assert track.steps == ((3, 0.7), (4, 0.0))


def test_steps_come_out_ascending_however_they_came_in() -> None:
    table, one = TrackTable(), subject()
    table.record(ENGINE, one, [(9, 0.0)])
    table.record(ENGINE, one, [(2, 0.0), (5, 0.0)])
    (track,) = table.tracks(ALL)
    assert [step for step, _ in track.steps] == [2, 5, 9]


def test_values_are_scaled_to_the_signals_unit() -> None:
    table = TrackTable()
    table.record(ENERGY, subject(), [(1, 2_500_000.0)])
    (track,) = table.tracks(ALL)
    assert (track.signal, track.steps) == (Signal.ENERGY, ((1, 2500.0),))


def test_a_flawed_value_is_a_track_of_its_own() -> None:
    table, one = TrackTable(), subject()
    table.record(ENGINE, one, [(1, 0.5), (1, math.nan), (2, -1.0), (2, 0.0)])
    healthy, flawed = table.tracks(ALL)
    assert healthy.steps == ((1, 0.5), (2, 0.0))
    assert flawed.device == healthy.device
    (nan_step, nan), negative = flawed.steps
    assert (nan_step, negative) == (1, (2, -1.0))
    assert math.isnan(nan)


def test_only_the_asked_period_comes_out() -> None:
    table = TrackTable()
    table.record(ENGINE, subject(), [(n, 0.0) for n in range(10)])
    table.record(ENGINE, subject("GPU-b"), [(9, 0.0)])
    (track,) = table.tracks(Period(3, 5, 60.0))
    assert [step for step, _ in track.steps] == [3, 4, 5]


def test_a_slice_is_asked_for_with_its_board() -> None:
    table = TrackTable()
    for one in (subject(), subject(instance="7"), subject(instance="8"), subject("GPU-b")):
        table.record(ENGINE, one, [(1, 0.0)])
    found = table.tracks(ALL, [DeviceId("GPU-a", "7")])
    assert {track.device for track in found} == {DeviceId("GPU-a"), DeviceId("GPU-a", "7")}


def test_what_is_forgotten_is_gone() -> None:
    table = TrackTable()
    table.record(ENGINE, subject(), [(1, 0.0), (5, 0.0)])
    table.record(ENGINE, subject("GPU-old"), [(1, 0.0)])
    table.forget_before(5)
    (track,) = table.tracks(ALL)
    assert track.steps == ((5, 0.0),)
    assert len(table) == 1


def told(table: TrackTable, period: Period) -> dict[str, list[tuple[str, tuple[object, ...]]]]:
    """What a screen shows, by metric."""
    return {
        column.metric: [(str(one.device), steps) for one, steps in column.series]
        for column in table.screened(period)
    }


def test_a_screen_shows_peaks_of_work_and_movement_of_liveness() -> None:
    table, one = TrackTable(), subject()
    table.record(ENGINE, one, [(n, 0.5) for n in range(5)])
    table.record(ENERGY, one, [(0, 1000.0), (1, 1000.0), (2, 2000.0), (4, 3000.0)])
    table.record(BY_METRIC["DCGM_FI_DEV_XID_ERRORS"], one, [(n, 31.0) for n in range(5)])
    assert told(table, Period(1, 4, 60.0)) == {
        ENGINE.metric: [("GPU-a", ((1, 0.5), (2, 0.5), (3, 0.5), (4, 0.5)))],
        ENERGY.metric: [("GPU-a", ((1, 0.0), (2, 1.0), (4, 1.0)))],
    }


def test_a_device_moves_where_one_of_its_series_does() -> None:
    table, stuck, live = TrackTable(), subject(), subject()
    table.record(ENERGY, stuck, [(0, 1000.0), (1, 1000.0)])
    table.record(ENERGY, live, [(0, 5000.0), (1, 6000.0)])
    assert told(table, Period(1, 1, 60.0))[ENERGY.metric] == [("GPU-a", ((1, 1.0),))] * 2


def test_values_that_no_healthy_reading_can_have_move_nothing() -> None:
    table, one = TrackTable(), subject()
    table.record(ENERGY, one, [(0, 1000.0), (1, math.nan), (2, 1000.0), (3, math.nan)])
    table.record(ENERGY, one, [(4, -1.0), (5, 1000.0)])
    moved = told(table, Period(0, 5, 60.0))[ENERGY.metric]
    assert {value for _, steps in moved for _, value in steps} == {0.0}

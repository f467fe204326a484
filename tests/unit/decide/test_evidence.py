from __future__ import annotations

import math

import pytest
from support.story import told_rules

from gpu_pruner.decide.evidence import fold
from gpu_pruner.model.signals import (
    DeviceEvidence,
    DeviceId,
    Period,
    PodName,
    SeriesLabels,
    Signal,
    SignalEvidence,
    Track,
)

BOARD = DeviceId("GPU-x")
SLICE = DeviceId("GPU-x", "3")
PERIOD = Period(first=100, last=109, step_seconds=60)
RULES = told_rules()
NOBODY = SeriesLabels()


def track(
    signal: Signal,
    values: dict[int, float],
    *,
    device: DeviceId = BOARD,
    labels: SeriesLabels = NOBODY,
    metric: str = "",
) -> Track:
    return Track(device, signal, metric or signal.name, labels, tuple(sorted(values.items())))


def constant(value: float, first: int = 100, last: int = 109) -> dict[int, float]:
    return dict.fromkeys(range(first, last + 1), value)


def folded(*tracks: Track, device: DeviceId = BOARD) -> DeviceEvidence:
    return fold(device, tracks, period=PERIOD, rules=RULES)


def engine(*tracks: Track) -> SignalEvidence:
    found = folded(*tracks).of(Signal.ENGINE)
    assert found is not None
    return found


def test_a_quiet_period_is_seen_whole() -> None:
    found = engine(track(Signal.ENGINE, constant(0.0)))
    assert (found.seen_steps, found.active_steps, found.invalid_steps) == (10, 0, 0)
    assert (found.peak, found.peak_at, found.last_active_at) == (0.0, 110 * 60, None)
    assert found.newest_at == PERIOD.end


def test_the_newest_step_that_works_is_told_with_its_end() -> None:
    found = engine(track(Signal.ENGINE, constant(0.0) | {103: 0.4, 105: 0.2}))
    assert (found.active_steps, found.last_active_at) == (2, 106 * 60)
    assert (found.peak, found.peak_at) == (0.4, 104 * 60)


def test_only_the_period_counts() -> None:
    found = engine(track(Signal.ENGINE, {90: 0.9, 99: 0.9, 110: 0.9} | constant(0.0)))
    assert (found.active_steps, found.peak, found.newest_at) == (0, 0.0, PERIOD.end)


def test_a_sample_serves_its_own_step_and_the_next() -> None:
    found = engine(track(Signal.ENGINE, {99: 0.0, 102: 0.0, 108: 0.0}))
    assert found.seen_steps == 1 + 2 + 2  # 100; 102, 103; 108, 109
    assert found.newest_at == 109 * 60


def test_a_signal_without_a_sample_in_reach_was_not_exported() -> None:
    assert folded(track(Signal.ENGINE, {98: 0.0, 110: 0.0})).signals == ()


def test_duplicates_count_as_their_maximum_and_never_as_their_sum() -> None:
    one, two = (SeriesLabels(job=name) for name in ("a", "b"))
    found = engine(
        track(Signal.ENGINE, constant(0.006), labels=one),
        track(Signal.ENGINE, constant(0.007), labels=two),
    )
    assert (found.active_steps, found.peak) == (0, 0.007)


def test_two_scrapes_fill_each_others_gaps() -> None:
    one, two = (SeriesLabels(job=name) for name in ("a", "b"))
    found = engine(
        track(Signal.ENGINE, constant(0.0, last=103), labels=one),
        track(Signal.ENGINE, constant(0.0, first=106), labels=two),
    )
    assert found.seen_steps == 9


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.001, 1.11, 4294967295.0])
def test_garbage_is_neither_work_nor_quiet(value: float) -> None:
    found = engine(track(Signal.ENGINE, constant(0.0) | {104: value}))
    assert (found.invalid_steps, found.active_steps, found.peak) == (1, 0, 0.0)


@pytest.mark.parametrize(
    ("signal", "quiet", "loud"),
    [
        (Signal.ENGINE, 0.0099, 0.01),
        (Signal.SM, 0.0009, 0.001),
        (Signal.TENSOR, 0.0009, 0.001),
        (Signal.DRAM, 0.0049, 0.005),
        (Signal.UTIL, 0.0, 0.001),
        (Signal.ENCODER, 0.0, 1.0),
        (Signal.DECODER, 0.0, 1.0),
        (Signal.JPEG, 0.0, 1.0),
        (Signal.OFA, 0.0, 1.0),
        (Signal.COPY, 0.0, 1.0),
        (Signal.PCIE, 9_999_999.0, 10_000_000.0),
        (Signal.NVLINK, 9_999_999.0, 10_000_000.0),
    ],
)
def test_work_begins_at_the_signals_threshold(signal: Signal, quiet: float, loud: float) -> None:
    for value, active in ((quiet, 0), (loud, 10)):
        found = folded(track(signal, constant(value))).of(signal)
        assert found is not None
        assert found.active_steps == active


@pytest.mark.parametrize(
    "signal", [Signal.POWER, Signal.ENERGY, Signal.TEMPERATURE, Signal.MEMORY, Signal.XID]
)
def test_no_value_of_these_is_work(signal: Signal) -> None:
    found = folded(track(signal, constant(150.0))).of(signal)
    assert found is not None
    assert (found.active_steps, found.invalid_steps, found.peak) == (0, 0, 150.0)


def test_utilisation_of_five_and_more_is_loud() -> None:
    found = folded(track(Signal.UTIL, {101: 4.9, 102: 5.0, 103: 99.0})).of(Signal.UTIL)
    assert found is not None
    assert (found.loud_steps, found.active_steps) == (2, 3)


def energy(*tracks: Track) -> int:
    found = folded(*tracks).of(Signal.ENERGY)
    assert found is not None
    return found.changes


def test_a_step_counts_as_movement_when_it_differs_from_the_sample_before() -> None:
    assert energy(track(Signal.ENERGY, {99: 1, 100: 2, 101: 2, 104: 3, 105: 2})) == 3
    assert energy(track(Signal.ENERGY, {100: 2, 101: 2})) == 0
    assert energy(track(Signal.ENERGY, {80: 1, 100: 2})) == 1


def test_not_a_number_is_no_movement() -> None:
    assert energy(track(Signal.ENERGY, {100: 2, 101: math.nan, 102: 2, 103: math.nan})) == 0


def test_two_frozen_series_do_not_move_by_taking_turns() -> None:
    one, two = (SeriesLabels(job=name) for name in ("a", "b"))
    turns = [
        track(Signal.ENERGY, dict.fromkeys(range(100, 110, 2), 5.0), labels=one),
        track(Signal.ENERGY, dict.fromkeys(range(101, 110, 2), 7.0), labels=two),
    ]
    assert energy(*turns) == 0


def test_a_slice_lives_by_its_boards_energy() -> None:
    board = track(Signal.ENERGY, {n: float(n) for n in range(99, 110)})
    quiet = track(Signal.ENGINE, constant(0.0), device=SLICE)
    loud_board = track(Signal.ENGINE, constant(0.9))
    found = folded(board, quiet, loud_board, device=SLICE)
    assert [(one.signal, one.changes, one.active_steps) for one in found.signals] == [
        (Signal.ENGINE, 0, 0),
        (Signal.ENERGY, 10, 0),
    ]


def test_a_slices_own_energy_goes_before_its_boards() -> None:
    board = track(Signal.ENERGY, {n: float(n) for n in range(99, 110)})
    own = track(Signal.ENERGY, constant(3.0), device=SLICE)
    found = folded(board, own, device=SLICE).of(Signal.ENERGY)
    assert found is not None
    assert found.changes == 0


def test_owners_are_told_newest_last_and_only_from_the_period() -> None:
    old, gone, new = (
        SeriesLabels(exported=PodName("team-a", name), node=name) for name in ("old", "gone", "new")
    )
    found = folded(
        track(Signal.ENGINE, constant(0.0, 105), labels=new),
        track(Signal.ENGINE, constant(0.0, 100, 104), labels=old),
        track(Signal.ENGINE, constant(0.0, 90, 99), labels=gone),
        track(Signal.UTIL, constant(0.0), labels=SeriesLabels(model="NVIDIA H200")),
    )
    assert found.owners == (old, new)
    assert (found.node, found.model, found.shared) == ("new", "NVIDIA H200", False)


def test_a_replica_label_makes_the_device_shared() -> None:
    assert folded(track(Signal.ENGINE, constant(0.0), labels=SeriesLabels(replica="0"))).shared


def test_tracks_of_other_devices_are_left_out() -> None:
    other = track(Signal.ENGINE, constant(0.9), device=DeviceId("GPU-y"))
    sibling = track(Signal.ENGINE, constant(0.9), device=SLICE)
    assert folded(other, sibling).signals == ()

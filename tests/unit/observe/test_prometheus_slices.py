"""A steady screen asks again for what may convict, and for what is new of the rest."""

from __future__ import annotations

import pytest

from gpu_pruner.model.signals import Column, DeviceId, Period, SeriesLabels, Signal, Subject
from gpu_pruner.observe.prometheus_probe import Ask
from gpu_pruner.observe.prometheus_slices import Slices

COLD = Period(0, 99, 60.0)
NEXT = Period(98, 100, 60.0)


def moved(*devices: float) -> Column:
    """Movement of so many devices in the newest step."""
    series = [
        (Subject(DeviceId(f"GPU-{number}"), SeriesLabels()), ((99, value),))
        for number, value in enumerate(devices)
    ]
    return Column(Signal.ENERGY, "energy", series, moves=True)


def asked(slices: Slices, period: Period, interval: float = 30.0) -> dict[Ask, tuple[int, int]]:
    found = {ask: slices.of(ask, period, interval=interval) for ask in Ask}
    return {ask: (one.first, one.last) for ask, one in found.items()}


def test_the_first_screen_asks_for_all_of_everything() -> None:
    assert set(asked(Slices(), COLD).values()) == {(0, 99)}


def test_a_steady_screen_asks_for_movement_of_one_step_that_is_complete() -> None:
    slices = Slices()
    slices.done(COLD, [moved(1.0)])
    assert asked(slices, NEXT) == {Ask.PEAKS: (98, 100), Ask.WORK: (99, 100), Ask.MOVES: (99, 99)}


def test_a_brief_look_asks_for_nothing_but_peaks_over_a_long_time() -> None:
    found = asked(Slices(brief=True), COLD)
    assert found == {Ask.PEAKS: (0, 99), Ask.WORK: (96, 99), Ask.MOVES: (96, 99)}


def test_every_step_is_asked_for_however_many_a_cycle_advances() -> None:
    slices = Slices()
    slices.done(COLD, [moved(1.0)])
    seen: set[int] = set()
    for last in (100, 100, 101, 103, 104, 104, 106):
        period = Period(last - 2, last, 60.0)
        found = slices.of(Ask.MOVES, period, interval=30.0)
        seen.update(range(found.first, found.last + 1))
        slices.done(period, [moved(1.0)])
    assert seen == set(range(99, 106))


def test_scrapes_of_a_minute_have_steady_screens_too() -> None:
    slices = Slices()
    slices.done(COLD, [moved(1.0)])
    assert asked(slices, Period(97, 100, 60.0), interval=60.0) == {
        Ask.PEAKS: (97, 100), Ask.WORK: (98, 100), Ask.MOVES: (98, 99),
    }  # fmt: skip


def test_a_longer_slice_is_asked_for_whole() -> None:
    slices = Slices()
    slices.done(COLD, [moved(1.0)])
    assert set(asked(slices, Period(95, 100, 60.0)).values()) == {(95, 100)}


def test_a_step_with_one_sample_is_asked_for_movement_twice() -> None:
    slices = Slices()
    slices.done(COLD, [moved(1.0)])
    assert asked(slices, NEXT, interval=50.0)[Ask.MOVES] == (98, 99)


def test_slow_scrapes_are_asked_for_over_longer_steps() -> None:
    slices = Slices()
    slices.done(Period(0, 49, 120.0), [moved(1.0)])
    assert asked(slices, Period(48, 50, 120.0), interval=120.0) == {
        Ask.PEAKS: (48, 50), Ask.WORK: (48, 50), Ask.MOVES: (48, 49),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "expected"), [((1.0, 0.0), (99, 99)), ((1.0, 0.0, 0.0), (98, 100)), ((), (99, 99))]
)
def test_movement_is_asked_for_over_the_whole_slice_where_samples_come_late(
    values: tuple[float, ...], expected: tuple[int, int]
) -> None:
    slices = Slices()
    slices.done(COLD, [moved(*values)])
    slices.done(COLD, [moved(1.0)])
    assert asked(slices, NEXT)[Ask.MOVES] == expected

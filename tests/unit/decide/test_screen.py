from __future__ import annotations

from dataclasses import replace

from support.screens import screen_of
from support.story import told_rules

from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.model.signals import (
    Column,
    DeviceId,
    Period,
    PodName,
    SeriesLabels,
    Signal,
    Subject,
    Track,
)
from gpu_pruner.model.telemetry import Screen

RULES = told_rules()
DEVICE = DeviceId("GPU-x")
LABELS = SeriesLabels(exported=PodName("team-a", "p-0"))


def screen(
    first: int,
    last: int,
    *,
    value: float = 0.0,
    device: DeviceId = DEVICE,
    signal: Signal = Signal.ENGINE,
    width: float = 60.0,
    labels: SeriesLabels = LABELS,
) -> Screen:
    steps = tuple((n, value) for n in range(first, last + 1))
    track = Track(device, signal, signal.name, labels, steps)
    return screen_of([track], Period(first, last, width))


def seen(table: ScreenTable, first: int, last: int, device: DeviceId = DEVICE) -> int | None:
    found = table.evidence(Period(first, last, 60.0)).get(device)
    return found.signals[0].seen_steps if found is not None and found.signals else None


def bits(table: ScreenTable, device: DeviceId = DEVICE) -> int:
    """How long the longest mask of a device is."""
    return max(one.present.bit_length() for one in table._rows[device].facts if one is not None)


def test_an_empty_table_knows_nothing() -> None:
    table = ScreenTable()
    assert table.newest_step is None
    assert table.evidence(Period(0, 34, 60.0)) == {}


def test_slices_add_up_to_the_window() -> None:
    table = ScreenTable()
    for last in range(102, 135):
        table.absorb(screen(last - 2, last), RULES)
    assert (seen(table, 100, 134), table.newest_step) == (35, 134)


def test_missed_cycles_leave_a_gap() -> None:
    table = ScreenTable()
    table.absorb(screen(100, 104), RULES)
    table.absorb(screen(110, 114), RULES)
    assert seen(table, 100, 114) == 11  # 105 still counts by the sample of 104


def test_a_late_sample_is_added() -> None:
    table = ScreenTable()
    table.absorb(screen(100, 101), RULES)
    table.absorb(replace(screen(102, 102), period=Period(102, 104, 60.0)), RULES)
    assert seen(table, 100, 104) == 4
    table.absorb(screen(103, 105), RULES)
    assert seen(table, 100, 104) == 5


def test_a_device_that_comes_back_after_a_hole_says_where_the_hole_began() -> None:
    table = ScreenTable()
    table.absorb(screen(100, 104), RULES)
    assert table.hole_from is None
    table.absorb(screen(107, 109), RULES)
    assert table.hole_from == 105


def test_a_hole_that_was_looked_into_is_none_any_more() -> None:
    table = ScreenTable()
    for first, last in ((100, 104), (107, 109)):
        table.absorb(screen(first, last), RULES)
    table.absorb(replace(screen(107, 110), period=Period(105, 110, 60.0)), RULES)
    assert table.hole_from is None


def test_what_had_to_be_forgotten_is_a_hole_until_it_was_looked_into() -> None:
    table = ScreenTable()
    table.absorb(screen(100, 180), RULES)
    assert table.hole_from is None
    table.absorb(screen(88, 90, width=120.0), RULES)
    assert table.hole_from == 55
    table.absorb(screen(54, 91, width=120.0), RULES)
    assert table.hole_from is None


def test_work_after_a_long_time_without_work_is_no_hole() -> None:
    table = ScreenTable()
    table.absorb(screen(100, 104, value=0.4), RULES)
    table.absorb(screen(130, 132, value=0.4), RULES)
    assert table.hole_from is None


def test_one_missing_step_is_no_hole() -> None:
    table = ScreenTable()
    table.absorb(screen(100, 104), RULES)
    table.absorb(screen(106, 108), RULES)
    assert table.hole_from is None


def test_a_back_fill_is_added_before_what_is_known() -> None:
    table = ScreenTable()
    table.absorb(screen(200, 202), RULES)
    table.absorb(screen(150, 202, value=0.4), RULES)
    found = table.evidence(Period(150, 202, 60.0))[DEVICE].signals[0]
    assert (found.seen_steps, found.active_steps) == (53, 53)
    assert table.newest_step == 202


def test_another_step_length_begins_anew() -> None:
    table = ScreenTable()
    table.absorb(screen(100, 134), RULES)
    table.absorb(screen(60, 62, width=120.0), RULES)
    assert table.evidence(Period(100, 134, 60.0)) == {}
    assert table.evidence(Period(60, 62, 120.0)).keys() == {DEVICE}


def test_another_threshold_begins_anew() -> None:
    table = ScreenTable()
    table.absorb(screen(100, 134, value=0.005), RULES)
    table.absorb(screen(134, 135, value=0.005), replace(RULES, idle_threshold=0.001))
    found = table.evidence(Period(100, 135, 60.0))[DEVICE].signals[0]
    assert (found.seen_steps, found.active_steps) == (2, 2)


def test_a_utilisation_only_device_is_shown_over_twice_the_period() -> None:
    table = ScreenTable()
    table.absorb(screen(65, 134, signal=Signal.UTIL), RULES)
    found = table.evidence(Period(100, 134, 60.0))[DEVICE]
    assert (found.period, found.signals[0].seen_steps) == (Period(65, 134, 60.0), 70)


def test_devices_that_are_long_gone_are_forgotten_and_the_others_are_not() -> None:
    table = ScreenTable()
    table.absorb(screen(0, 2), RULES)
    other = DeviceId("GPU-y")
    for last in range(2, 1000):
        table.absorb(screen(last - 2, last, device=other, value=0.5), RULES)
    assert len(table) == 1
    assert seen(table, 965, 999, other) == 35
    assert bits(table, other) < 400


def test_label_sets_that_are_long_gone_are_forgotten() -> None:
    table = ScreenTable()
    for last in range(2, 1000):
        labels = SeriesLabels(exported=PodName("team-a", f"p-{last // 10}"))
        table.absorb(screen(last - 2, last, labels=labels), RULES)
    assert len(table._rows[DEVICE].sightings) < 45
    assert len(table._sightings) < 45
    owners = table.evidence(Period(990, 999, 60.0))[DEVICE].owners
    assert [one.exported.name for one in owners if one.exported] == ["p-99"]


def test_devices_with_the_same_facts_share_one_value() -> None:
    """40,000 quiet GPUs must not cost 40,000 equal values."""
    table = ScreenTable()
    one, two = screen(100, 134), screen(100, 134, device=DeviceId("GPU-y"))
    table.absorb(replace(one, columns=one.columns + two.columns), RULES)
    found = list(table.evidence(Period(100, 134, 60.0)).values())
    assert found[0].signals[0] is found[1].signals[0]


def test_a_clock_that_jumps_and_comes_back_begins_anew_each_time() -> None:
    table = ScreenTable()
    table.absorb(screen(100, 134), RULES)
    table.absorb(screen(600_000, 600_002), RULES)
    assert seen(table, 100, 134) is None
    table.absorb(screen(133, 135), RULES)
    assert (seen(table, 101, 135), table.newest_step) == (3, 135)
    assert bits(table) <= 3


def test_a_slice_of_years_is_cut() -> None:
    table = ScreenTable()
    long = replace(screen(599_990, 600_000), period=Period(0, 600_000, 60.0))
    table.absorb(long, RULES)
    assert seen(table, 599_966, 600_000) == 11
    assert bits(table) < 400


def test_subjects_that_came_anew_in_every_slice_are_let_go_of() -> None:
    table = ScreenTable()
    for last in range(1000, 1600):
        steps = ((last, 0.0),)
        column = Column(Signal.ENGINE, "engine", [(Subject(DEVICE, LABELS), steps)])
        found = Screen(
            period=Period(last - 2, last, 60.0), columns=(column,), scrape_interval_seconds=30.0
        )
        table.absorb(found, RULES)
    assert len(table._sightings) < 300
    assert seen(table, 1565, 1599) == 35

"""Which setting is recommended, who held what in a history, and what counts as returned."""

from __future__ import annotations

import pytest
from support.story import told_rules

from gpu_pruner.decide.grid import Tally, recommended
from gpu_pruner.decide.past_workloads import pods_seen, workloads
from gpu_pruner.decide.pauses import Holding, PastWorkload, Verdicts, Worked, pauses
from gpu_pruner.decide.recording import PastDevice, Recording
from gpu_pruner.model.signals import (
    Column,
    DeviceId,
    Period,
    PodName,
    SeriesLabels,
    Signal,
    Subject,
)

ONE, BOARD, SLICE = DeviceId("GPU-1"), DeviceId("GPU-2"), DeviceId("GPU-2", "3")
EXPORTER = PodName("gpu-operator", "nvidia-dcgm-exporter-x")
POD, OTHER = PodName("team-a", "a-0"), PodName("team-b", "b-0")


def tally(hours: float, pauses: int, regrets: int) -> Tally:
    return Tally(gpu_hours=hours, pauses=pauses, regrets=regrets)


@pytest.mark.parametrize(
    ("tallies", "best"),
    [
        ([tally(10, 100, 1), tally(20, 100, 2), tally(5, 100, 0)], 0),
        ([tally(10, 100, 1), tally(10, 200, 1)], 0),
        ([tally(10, 100, 1), tally(10, 100, 0)], 1),
        ([tally(10, 100, 3), tally(20, 100, 2), tally(30, 100, 2)], 2),
        ([tally(0, 0, 0), tally(1, 1, 1)], 1),
        ([tally(0, 0, 0)], None),
        ([], None),
    ],
)
def test_most_hours_win_among_those_that_disturb_nobody(
    tallies: list[Tally], best: int | None
) -> None:
    assert recommended(tallies) == best


def seen(first: int, end: int) -> int:
    return (1 << end) - (1 << first)


def past(device: DeviceId, sightings: dict[SeriesLabels, int]) -> PastDevice:
    return PastDevice(device, sightings=sightings)


def spans(found: tuple[Holding, ...]) -> list[tuple[int, int]]:
    return [(one.first, one.end) for one in found]


def test_a_hole_is_no_end_and_a_device_without_the_pod_is() -> None:
    labels, nobody = SeriesLabels(exported=POD), SeriesLabels()
    hole = past(ONE, {labels: seen(0, 10) | seen(500, 510)})
    assert spans(pods_seen([hole], honor_labels=None)[POD]) == [(0, 510)]
    flap = past(ONE, {labels: seen(0, 10) | seen(14, 20), nobody: seen(10, 14)})
    assert spans(pods_seen([flap], honor_labels=None)[POD]) == [(0, 20)]
    gone = past(ONE, {labels: seen(0, 10) | seen(15, 20), nobody: seen(10, 15)})
    assert spans(pods_seen([gone], honor_labels=None)[POD]) == [(0, 10), (15, 20)]


def test_movement_without_labels_says_nothing_of_who_is_there() -> None:
    labels, period = SeriesLabels(exported=POD), Period(0, 99, 60.0)
    recording = Recording(period, (told_rules(),))
    engine = tuple((n, 0.0) for n in (*range(20), *range(60, 100)))
    energy = tuple((n, 1.0) for n in range(100))
    recording.absorb(
        period,
        (
            Column(Signal.ENGINE, "engine", [(Subject(ONE, labels), engine)]),
            Column(Signal.ENERGY, "energy", [(Subject(ONE, SeriesLabels()), energy)], moves=True),
        ),
    )
    assert spans(pods_seen(recording.devices(), honor_labels=None)[POD]) == [(0, 100)]


def test_the_exporter_holds_nothing() -> None:
    both = SeriesLabels(exported=POD, native=EXPORTER, job="x")
    alone = SeriesLabels(native=PodName("gpu-operator", "exporter-x"), job="x")
    device = past(ONE, {both: seen(0, 5), alone: seen(5, 9)})
    assert list(pods_seen([device], honor_labels=None)) == [POD]
    assert list(pods_seen([device], honor_labels=False)) == [POD]
    assert POD not in pods_seen([device], honor_labels=True)
    honoured = past(ONE, {SeriesLabels(native=OTHER, job="y"): 1})
    assert list(pods_seen([honoured], honor_labels=None)) == [OTHER]
    unhonoured = past(ONE, {SeriesLabels(native=EXPORTER, job="y"): 1})
    assert list(pods_seen([unhonoured], honor_labels=None)) == []


def test_a_board_with_slices_is_held_by_nobody() -> None:
    labels = SeriesLabels(exported=POD)
    found = pods_seen([past(BOARD, {labels: 1}), past(SLICE, {labels: 1})], honor_labels=None)
    assert [one.device for one in found[POD]] == [SLICE]


def test_only_what_may_be_paused_is_replayed() -> None:
    pods = {POD: (Holding(ONE, 0, 9),), OTHER: (Holding(SLICE, 0, 9),)}
    models = {ONE: "A100", SLICE: "H100"}

    def names(**told: object) -> list[str]:
        rules = told_rules(told)
        return [one.name for one in workloads(pods, {POD: "job/a"}, models, rules=rules)]

    assert names() == ["job/a", "pod/b-0"]
    assert names(namespaces="team-b") == ["pod/b-0"]
    assert names(protected_namespaces=["team-b"]) == ["job/a"]
    assert names(models="A.*") == ["job/a"]


PERIOD = Period(0, 399, 60.0)
RULES = told_rules({"window_seconds": 1200.0, "notice_seconds": 900.0, "confirmations": 2})


def told(idle: int, work: int, *, quiet: int | None = None, end: int = 400):
    workload = PastWorkload("team-a", "pod/a", (Holding(ONE, 0, end), Holding(SLICE, 0, end)))
    still = seen(0, end) & ~work if quiet is None else quiet
    facts = {ONE: Worked(work, still), SLICE: Worked(0, still)}
    judged = Verdicts(seen(0, end), idle, 0)
    return pauses(workload, judged, facts, rules=RULES, period=PERIOD, confirm=lambda *_: True)


def test_work_within_an_hour_is_a_regret_and_ends_the_pause() -> None:
    (one,) = told(seen(100, 180), 1 << 176)
    assert (one.step, one.end, one.gpus, one.regretted, one.is_open) == (116, 176, 2, True, False)
    assert one.returned == 2 * (176 - 117)
    (late,) = told(seen(100, 180), 1 << 177)
    assert not late.regretted


def test_what_nobody_saw_is_not_returned() -> None:
    (one,) = told(seen(100, 400), 0, quiet=seen(0, 200))
    assert one.returned == 2 * (200 - 117)


def test_a_pause_near_the_end_is_open() -> None:
    assert [one.is_open for one in told(seen(324, 400), 0)] == [True]
    assert [one.is_open for one in told(seen(323, 400), 0)] == [False]
    (gone,) = told(seen(100, 150), 0, end=150)
    assert (gone.end, gone.regretted, gone.is_open) == (150, False, False)


def test_who_was_brought_back_has_a_whole_window_again() -> None:
    found = told(seen(100, 400), 1 << 150)
    assert [one.step for one in found] == [116, 150 + 20 + 5 - 1 + 1 + 15]

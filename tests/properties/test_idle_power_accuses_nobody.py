"""A board that draws no more than it does without work is never said to, whatever the gaps."""

from __future__ import annotations

from hypothesis import event, given
from strategies import Tape, taped

from gpu_pruner.decide.power import IDLE_WATTS, highest_draw, idle_watts, overdrawn
from gpu_pruner.model.signals import (
    DeviceEvidence,
    DeviceId,
    Period,
    SeriesLabels,
    Signal,
    Track,
)

BOARD = DeviceId("GPU-x")
PERIOD = Period(1000, 1034, 60.0)
Samples = dict[int, float]


def scraped(tape: Tape, watts: float, anew: float) -> Samples:
    """What a counter says at moments of its own, with gaps, from the load of the driver on."""
    every = tape.pick([30.0, 15.0, 60.0])
    gaps = [(tape.number(0, 35), tape.number(1, 6)) for _ in range(tape.number(0, 4))]
    found: Samples = {}
    at = 999 * 60.0 + tape.number(0, int(every) - 1)
    while at <= PERIOD.end:
        step = -int(-at // 60) - 1
        if not any(999 + begin <= step < 999 + begin + lasting for begin, lasting in gaps):
            found[step] = watts * (at - anew if at > anew else at)
        at += every
    return found


def evidence(tape: Tape) -> tuple[DeviceEvidence, float]:
    word = tape.pick(sorted(IDLE_WATTS))
    watts = IDLE_WATTS[word] * tape.pick([0.4, 0.7, 0.9, 1.0])
    anew = tape.pick([0.0, 0.0, 1017 * 60.0])
    series = [
        scraped(tape, watts, tape.pick([anew, anew, anew, 900 * 60.0]))
        for _ in range(tape.number(1, 2))
    ]
    energy = [
        Track(BOARD, Signal.ENERGY, "joules", SeriesLabels(job=str(n)), tuple(sorted(one.items())))
        for n, one in enumerate(series)
    ]
    draw = highest_draw(energy, energy, period=PERIOD)
    return DeviceEvidence(BOARD, PERIOD, (), model=f"NVIDIA {word} 80GB", draw=draw), watts


@given(taped(evidence, 40))
def test_a_board_without_work_is_never_overdrawn(told: tuple[DeviceEvidence, float]) -> None:
    found, watts = told
    event("measured" if found.draw is not None else "not measured")
    assert overdrawn(found, now=PERIOD.end) is None
    assert found.draw is None or found.draw.watts <= watts * (1 + 1e-9)


def worked(tape: Tape) -> tuple[DeviceEvidence, int]:
    """A quiet board that works at full power for as long as nobody samples it."""
    begin, lasting = tape.number(1001, 1026), tape.number(2, 6)
    joules, steps = 1e6, []
    for step in range(999, 1035):
        missed = begin <= step < begin + lasting
        joules += 60 * (700.0 if missed else 70.0)
        if not missed:
            steps.append((step, joules))
    track = Track(BOARD, Signal.ENERGY, "joules", SeriesLabels(), tuple(steps))
    draw = highest_draw([track], [track], period=PERIOD)
    return DeviceEvidence(BOARD, PERIOD, (), model="NVIDIA H100 PCIe", draw=draw), lasting


@given(taped(worked, 2))
def test_work_of_two_minutes_and_more_that_nobody_sampled_is_seen(
    told: tuple[DeviceEvidence, int],
) -> None:
    found, lasting = told
    said = overdrawn(found, now=PERIOD.end)
    assert said is not None
    assert found.draw is not None
    assert found.draw.end - found.draw.begin == (lasting + 2) * 60.0


def test_the_model_is_told_by_a_word_of_its_name() -> None:
    assert idle_watts("NVIDIA L40S") == IDLE_WATTS["L40S"]
    assert idle_watts("NVIDIA L4") == IDLE_WATTS["L4"]
    assert idle_watts("NVIDIA-A100-SXM4-80GB") == IDLE_WATTS["A100"]
    assert idle_watts("NVIDIA H200") is None

from __future__ import annotations

import math

from msgspec import structs
from support.story import told_rules

from gpu_pruner.decide.evidence import fold
from gpu_pruner.decide.showing import lines, what_counts, witnesses
from gpu_pruner.decide.signals import Role
from gpu_pruner.model.signals import (
    DeviceEvidence,
    DeviceId,
    Period,
    SeriesLabels,
    Signal,
    Track,
)

RULES = told_rules()
PERIOD = Period(first=10, last=13, step_seconds=60.0)
BOARD, SLICE = DeviceId("GPU-a"), DeviceId("GPU-a", "1")


def track(
    signal: Signal, *steps: tuple[int, float], device: DeviceId = BOARD, metric: str = ""
) -> Track:
    return Track(device, signal, metric or signal.value, SeriesLabels(), steps)


def test_a_line_shows_every_step_with_its_holes_and_its_garbage() -> None:
    (line,) = lines(
        BOARD,
        [
            track(Signal.ENGINE, (9, 0.5), (10, 0.0), (12, 0.25), (13, math.nan), metric="old"),
            track(Signal.ENGINE, (12, 0.125), (13, 7.0), (14, 1.0), metric="new"),
        ],
        period=PERIOD,
        rules=RULES,
    )
    assert line.points == ((660.0, 0.0), (720.0, None), (780.0, 0.25), (840.0, None))
    assert line.garbage == (840.0,)
    assert line.metrics == ("new", "old")
    assert line.counts_from == RULES.idle_threshold


def test_a_slice_shows_the_life_of_its_board_and_nobody_elses_work() -> None:
    found = lines(
        SLICE,
        [
            track(Signal.ENERGY, (10, 5.0)),
            track(Signal.ENCODER, (10, 5.0)),
            track(Signal.ENGINE, (10, 0.1), device=SLICE),
            track(Signal.ENGINE, (10, 0.1), device=DeviceId("GPU-b")),
        ],
        period=PERIOD,
        rules=RULES,
    )
    assert [one.signal for one in found] == [Signal.ENGINE, Signal.ENERGY]
    assert [one.counts_from for one in found] == [0.01, None]


def evidence(device: DeviceId, *signals: Signal) -> DeviceEvidence:
    told = [track(one, (10, 0.0), (11, 0.0), device=device) for one in signals]
    return fold(device, told, period=PERIOD, rules=RULES)


def test_every_signal_that_could_have_spoken_is_listed_exported_or_not() -> None:
    found = witnesses(evidence(BOARD, Signal.ENGINE, Signal.UTIL, Signal.ENERGY), RULES)
    by_signal = {one.signal: one for one in found}
    assert Signal.MEMORY not in by_signal
    assert (by_signal[Signal.UTIL].metric, by_signal[Signal.UTIL].counts) == ("util", "above 0")
    assert (by_signal[Signal.ENERGY].role, by_signal[Signal.ENERGY].counts) == (
        Role.LIVENESS,
        "any change",
    )
    assert by_signal[Signal.ENCODER].metric == ""
    assert by_signal[Signal.PCIE].counts == "from 1e+07"


def test_utilisation_of_a_slice_is_no_witness() -> None:
    found = witnesses(evidence(SLICE, Signal.ENGINE, Signal.UTIL), RULES)
    assert Signal.UTIL not in {one.signal for one in found}


def test_the_sentence_says_what_counts_and_what_nobody_saw() -> None:
    told = what_counts(evidence(BOARD, Signal.ENGINE, Signal.UTIL), RULES)
    assert told.startswith(
        "Any of these would have counted: engine from 0.01, utilisation above 0. Not exported, "
    )
    assert told.endswith("PCIe, NVLink. Its energy is not exported")
    assert what_counts(evidence(BOARD), RULES).startswith("Nothing could have counted. ")


def test_the_sentence_says_what_its_energy_could_have_told() -> None:
    counted = structs.replace(evidence(BOARD, Signal.ENERGY), model="NVIDIA H100 80GB HBM3")
    assert what_counts(counted, RULES).endswith("above 160 W would have been doubted")
    unknown = structs.replace(counted, model="NVIDIA H200")
    assert what_counts(unknown, RULES).endswith("so its energy says nothing of work")
    shared = structs.replace(counted, shared=True)
    assert what_counts(shared, RULES).endswith("Its board's power says nothing about it")

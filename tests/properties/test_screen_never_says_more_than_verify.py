"""The table between cycles says the same as a fold of all that it was shown, or less."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st
from strategies import Tape, taped
from support.screens import moves_of, subject
from support.story import told_rules

from gpu_pruner.decide.device import Yardstick, judge_device
from gpu_pruner.decide.evidence import fold
from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.model.signals import (
    Column,
    DeviceId,
    Period,
    PodName,
    SeriesLabels,
    Signal,
    Steps,
    Subject,
    Track,
)
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.observe.tracks import agreeing

RULES = told_rules({"window_seconds": 600.0, "liveness_changes": 3})
FIRST = 1000
STEPS = 45
BOARD = DeviceId("GPU-x")
SLICE = DeviceId("GPU-x", "1")

VALUES = {
    Signal.ENGINE: (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5),
    Signal.UTIL: (*[0.0] * 12, 3.0, 60.0, float("nan"), 1e6),
    Signal.ENERGY: (1.0, 2.0, 3.0),
}
Series = dict[int, float]


@dataclass(frozen=True)
class Told:
    device: DeviceId
    signal: Signal
    labels: SeriesLabels
    values: Series
    late: dict[int, int]
    """Step to how many cycles later than usual it can be read."""


def told_series(tape: Tape) -> Told:
    device = tape.pick([BOARD, BOARD, SLICE])
    signal = tape.pick(list(VALUES))
    owner = tape.pick([None, PodName("team-a", "p-0"), PodName("team-b", "p-1")])
    constant = tape.number(0, 1)
    value = tape.pick(VALUES[signal])
    holes = {FIRST + tape.number(0, STEPS - 1) for _ in range(tape.number(0, 8))}
    late = {FIRST + tape.number(0, STEPS - 1): tape.number(1, 3) for _ in range(tape.number(0, 4))}
    values = {
        FIRST + n: value if constant else tape.pick(VALUES[signal])
        for n in range(STEPS)
        if FIRST + n not in holes
    }
    if signal is Signal.ENERGY:  # the movement of a late sample is told in another step
        late = {}
    return Told(device, signal, SeriesLabels(exported=owner, job=str(signal)), values, late)


def several_series(tape: Tape) -> list[Told]:
    """Up to six. Series are told apart by device, metric and labels."""
    found = [told_series(tape) for _ in range(tape.number(1, 6))]
    return list({(one.device, one.signal, one.labels): one for one in found}.values())


def slices(tape: Tape) -> list[Period]:
    """Slices that mostly overlap; sometimes a few cycles are missed."""
    found: list[Period] = []
    last = FIRST - 1
    while last < FIRST + STEPS - 1:
        last = min(last + tape.pick([1, 1, 1, 2, 5]), FIRST + STEPS - 1)
        back = tape.pick([3, 3, 4, 8])
        found.append(Period(max(FIRST, last - back + 1), last, 60.0))
    return found


def arrived(one: Told, *, until: int) -> Series:
    """What can be read of a series at the end of a step."""
    return {step: value for step, value in one.values.items()
            if step <= until - one.late.get(step, 0)}  # fmt: skip


def shown(told: list[Told], period: Period, *, named: bool) -> Screen:
    """What Prometheus would answer for a slice: peaks, and whether energy moved.

    Energy's labels say who has the device only where they are asked for.
    """
    columns: list[Column] = []
    moved: list[tuple[Subject, Steps]] = []
    for one in told:
        values = arrived(one, until=period.last)
        if one.signal is Signal.ENERGY:
            moved.append((subject(one.device, one.labels), moves_of(values, period)))
            continue
        steps = tuple(sorted((n, v) for n, v in values.items() if n >= period.first))
        columns.append(
            Column(one.signal, one.signal.name, [(subject(one.device, one.labels), steps)])
        )
    series = agreeing(moved)
    if not named:
        series = [(subject(one.device, SeriesLabels()), steps) for one, steps in series]
    columns.append(Column(Signal.ENERGY, Signal.ENERGY.name, series, moves=True))
    return Screen(period=period, columns=tuple(columns), scrape_interval_seconds=30.0)


@given(told=taped(several_series, 420), periods=taped(slices, 90), named=st.booleans())
def test_the_table_agrees_with_the_fold_or_knows_less(
    told: list[Told], periods: list[Period], *, named: bool
) -> None:
    table = ScreenTable()
    union: list[Series] = [{} for _ in told]
    for period in periods:
        screen = shown(told, period, named=named)
        for _ in range(2):  # reading a slice twice must change nothing
            table.absorb(screen, RULES)
        for one, known in zip(told, union, strict=True):
            values = arrived(one, until=period.last)
            whole = one.signal is Signal.ENERGY  # its movement is told against what no slice showed
            known.update({n: v for n, v in values.items() if whole or n >= period.first})
    everything = [
        Track(one.device, one.signal, one.signal.name, one.labels, tuple(sorted(known.items())))
        for one, known in zip(told, union, strict=True)
    ]
    judged = Period(periods[-1].last - 9, periods[-1].last, 60.0)
    screened = table.evidence(judged)
    yardstick = Yardstick(rules=RULES, at=judged.end, scrape_interval_seconds=30.0)
    for device in (BOARD, SLICE):
        found = screened.get(device)
        if found is None:
            continue
        full = fold(device, everything, period=found.period, rules=RULES)
        assert set(found.owners) <= set(full.owners)
        for signal in (Signal.ENGINE, Signal.UTIL):
            less, more = found.of(signal), full.of(signal)
            assert less == (more and replace(more, peak=None, peak_at=None))
        less, more = found.of(Signal.ENERGY), full.of(Signal.ENERGY)
        if less is not None:  # what is gone is still there for five minutes, but does not move
            assert less.changes <= (0 if more is None else more.changes)
        if judge_device(found, yardstick, born_at=0.0, node="node-1").verdict is Verdict.IDLE:
            assert judge_device(full, yardstick, born_at=0.0, node="node-1").verdict is Verdict.IDLE

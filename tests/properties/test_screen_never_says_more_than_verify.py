"""The table between cycles says the same as a fold of all that it was shown, or less."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from strategies import Tape, taped
from support.story import told_rules

from gpu_pruner.decide.device import Yardstick, judge_device
from gpu_pruner.decide.evidence import fold
from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.model.signals import DeviceId, Period, PodName, SeriesLabels, Signal, Track
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.verdict import Verdict

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


def shown(one: Told, period: Period) -> Track:
    """What a source would answer for a slice: what has arrived until its end."""
    steps = tuple(
        (step, value)
        for step, value in sorted(one.values.items())
        if period.first <= step <= period.last - one.late.get(step, 0)
    )
    return Track(one.device, one.signal, one.signal.name, one.labels, steps)


@given(taped(several_series, 420), taped(slices, 90))
def test_the_table_agrees_with_the_fold_or_knows_less(
    told: list[Told], periods: list[Period]
) -> None:
    table = ScreenTable()
    union: dict[int, Series] = {number: {} for number in range(len(told))}
    for period in periods:
        tracks = [shown(one, period) for one in told]
        for _ in range(2):  # reading a slice twice must change nothing
            table.absorb(
                Screen(period=period, tracks=tuple(tracks), scrape_interval_seconds=30.0), RULES
            )
        for number, track in enumerate(tracks):
            union[number].update(track.steps)
    everything = [
        Track(one.device, one.signal, one.signal.name, one.labels,
              tuple(sorted(union[number].items())))
        for number, one in enumerate(told)
    ]  # fmt: skip
    judged = Period(periods[-1].last - 9, periods[-1].last, 60.0)
    screened = table.evidence(judged)
    yardstick = Yardstick(rules=RULES, at=judged.end, scrape_interval_seconds=30.0)
    for device in (BOARD, SLICE):
        found = screened.get(device)
        if found is None:
            continue
        full = fold(device, everything, period=found.period, rules=RULES)
        assert found.owners == full.owners
        assert [one.signal for one in found.signals] == [one.signal for one in full.signals]
        for less, more in zip(found.signals, full.signals, strict=True):
            assert less.changes <= more.changes
            for same in ("seen_steps", "active_steps", "invalid_steps", "loud_steps",
                         "last_active_at", "newest_at", "metric"):  # fmt: skip
                assert getattr(less, same) == getattr(more, same), same
        if judge_device(found, yardstick, born_at=0.0, node="node-1").verdict is Verdict.IDLE:
            assert judge_device(full, yardstick, born_at=0.0, node="node-1").verdict is Verdict.IDLE

"""A replayed history says at every step what the table, the judgement and the clock say there."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from strategies import Tape, taped
from support.story import told_rules
from typing_extensions import override

from gpu_pruner.decide.bits import any_in, at_least, between, next_in
from gpu_pruner.decide.clock import nominated, warned, watching
from gpu_pruner.decide.device import Yardstick, contradicts_itself, is_quiet_share, judge_device
from gpu_pruner.decide.idle import Judgement
from gpu_pruner.decide.pauses import Verdicts, paused_at
from gpu_pruner.decide.recording import Recording
from gpu_pruner.decide.replay import Measure, judged_over, replayed
from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.decide.standing import Check, Standing
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.plan import Action
from gpu_pruner.model.signals import Column, DeviceId, Period, SeriesLabels, Signal, Subject
from gpu_pruner.model.snapshot import Workload
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import RootRef

FIRST, STEPS = 1000, 50
WHOLE = Period(FIRST, FIRST + STEPS - 1, 60.0)
H100, UNKNOWN_MODEL = "NVIDIA H100 80GB HBM3", "NVIDIA Z9"
BOARD, SLICE, OTHER = DeviceId("GPU-x"), DeviceId("GPU-x", "1"), DeviceId("GPU-y")
VALUES = {
    Signal.ENGINE: (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.002, 0.5),
    Signal.SM: (*[0.0] * 9, 0.3),
    Signal.UTIL: (*[0.0] * 12, 3.0, 60.0, float("nan"), 1e6),
    Signal.DRAM: (*[0.0] * 12, 0.2),
}
MOVING = (Signal.ENERGY, Signal.POWER)


@given(st.integers(0, 2**80), st.integers(1, 70), st.integers(1, 70))
def test_windows_are_counted_as_one_counts(mask: int, width: int, wanted: int) -> None:
    def counted(step: int) -> int:
        return sum(mask >> one & 1 for one in range(max(0, step - width + 1), step + 1))

    steps = range(81 + width)
    assert [at_least(mask, width, wanted) >> n & 1 for n in steps] == [
        int(counted(n) >= wanted) for n in steps
    ]
    assert [any_in(mask, width) >> n & 1 for n in steps] == [int(counted(n) > 0) for n in steps]
    assert next_in(mask, wanted) == next((n for n in range(wanted, 90) if mask >> n & 1), None)
    assert [between(width, wanted) >> n & 1 for n in range(90)] == [
        int(width <= n < wanted) for n in range(90)
    ]


def series(tape: Tape, signal: Signal) -> tuple[tuple[int, float], ...]:
    values = VALUES.get(signal, (1.0, 0.0))
    constant, value = tape.number(0, 2), tape.pick(values)
    holes: set[int] = set()
    for _ in range(tape.number(0, 4)):
        begin = tape.number(0, STEPS - 1)
        holes |= set(range(begin, begin + tape.pick([1, 1, 2, 9])))
    busy = tape.number(0, STEPS - 1) if tape.number(0, 1) else -99
    return tuple(
        (FIRST + n, tape.pick(values) if not constant or 0 <= n - busy < 3 else value)
        for n in range(STEPS)
        if n not in holes
    )


def columns(tape: Tape) -> tuple[Column, ...]:
    """Of up to three devices of one node; what tells of a device is the same in all its series."""
    chosen = [tape.pick([BOARD, SLICE, OTHER]) for _ in range(tape.number(1, 3))]
    model = tape.pick([H100, H100, H100, UNKNOWN_MODEL])
    found = []
    told = {
        one: SeriesLabels(node="node-a", model=model, replica=tape.pick(["", "", "", "1"]), job="x")
        for one in dict.fromkeys(chosen)
    }
    for signal in (*VALUES, *MOVING):
        for name in ("one", "two")[: tape.number(1, 2)]:
            several = [
                (Subject(one, labels), series(tape, signal))
                for one, labels in told.items()
                if tape.number(0, 3)
            ]
            moves = signal in MOVING
            if moves:
                several = [(Subject(s.device, SeriesLabels()), steps) for s, steps in several]
            found.append(Column(signal, f"{signal}_{name}", several, moves=moves))
    return tuple(found)


def cut(column: Column, part: Period) -> Column:
    inside = [
        (subject, tuple(one for one in steps if part.first <= one[0] <= part.last))
        for subject, steps in column.series
    ]
    return Column(column.signal, column.metric, inside, moves=column.moves)


def with_surroundings(yardstick: Yardstick, evidence) -> Yardstick:
    suspect = any(contradicts_itself(one) for one in evidence.values())
    shared = [one for one in evidence.values() if one.shared]
    restless = any(not is_quiet_share(one, yardstick) for one in shared)
    return replace(
        yardstick,
        suspect_nodes=frozenset({"node-a"} if suspect else ()),
        restless_nodes=frozenset({"node-a"} if restless else ()),
    )


@given(told=taped(columns, 1500), chosen=st.binary(min_size=6, max_size=6))
def test_a_replay_says_of_every_minute_what_the_table_says(told, chosen: bytes) -> None:
    tape = Tape(chosen)
    window, threshold = tape.pick([10, 5, 12]), tape.pick([0.01, 0.001])
    rules = told_rules(
        {
            "window_seconds": window * 60.0,
            "idle_threshold": threshold,
            "liveness_changes": tape.pick([3, 1]),
            "liveness_required": bool(tape.pick([1, 0])),
        }
    )
    proven = frozenset({(UNKNOWN_MODEL, Signal.ENGINE)} if tape.number(0, 1) else ())
    recording = Recording(WHOLE, (replace(rules, idle_threshold=0.001), rules))
    table = ScreenTable()
    table.absorb(Screen(period=WHOLE, columns=told, scrape_interval_seconds=30.0), rules)
    edges = sorted({FIRST, FIRST + tape.number(1, STEPS - 1), WHOLE.last + 1})
    for first, end in pairwise(edges):  # in slices, as history comes
        part = Period(first, end - 1, 60.0)
        recording.absorb(part, [cut(one, part) for one in told])
    measure = Measure(
        rules=rules, threshold=1, period=WHOLE, scrape_interval_seconds=30.0, proven=proven
    )
    pasts = {one.device: one for one in recording.devices()}
    found = replayed(pasts.values(), measure)
    sharing = {one for one in pasts if any(s.replica for s in pasts[one].sightings)}
    for n in range(2 * window + 2, STEPS):
        last = FIRST + n
        evidence = dict(table.evidence(Period(last - window + 1, last, 60.0)))
        yardstick = with_surroundings(
            Yardstick(
                rules=rules, at=(last + 1) * 60.0, scrape_interval_seconds=30.0, proven=proven
            ),
            evidence,
        )
        for device, replay in found.items():
            one = evidence.get(device)
            judged = None if one is None else judge_device(
                one, yardstick, born_at=0.0, node="node-a"
            )  # fmt: skip
            if one is not None and (device in sharing) != one.shared:
                continue  # a label set unseen for a window: the replay remembers the share
            verdict = Verdict.UNKNOWN if judged is None else judged.verdict
            assert bool(replay.idle >> n & 1) == (verdict is Verdict.IDLE), (n, device, judged)
            assert bool(replay.active(0) >> n & 1) == (verdict is Verdict.ACTIVE), (n, device)
            if one is not None and one.model:
                board = pasts.get(device.board) if device.mig_instance else None
                again = judged_over(pasts[device], board, measure, last=n, steps=one.period.steps)
                alone = replace(yardstick, suspect_nodes=frozenset(), restless_nodes=frozenset())
                plain = judge_device(one, alone, born_at=0.0, node="node-a")
                assert (again.verdict, again.reason) == (plain.verdict, plain.reason)


class Told(Standing, frozen=True, kw_only=True, gc=False):
    """A standing whose measurement is told."""

    doubted: bool

    @override
    def check(self, length: float) -> Check:
        judged = self.judgement
        if self.doubted and length > judged.window_seconds:
            judged = Judgement(
                verdict=Verdict.UNKNOWN,
                reason=Reason.OUT_OF_RANGE,
                message="",
                window_seconds=judged.window_seconds,
            )
        return Check(judgement=judged, at=self.now)


class Roomy:
    def reserve(self, workload: Workload, *, earliest: float) -> float:
        return earliest

    def admit(self, workload: Workload) -> bool:
        return True


REASONS = {
    Verdict.IDLE: Reason.IDLE,
    Verdict.ACTIVE: Reason.GPU_ACTIVE,
    Verdict.UNKNOWN: Reason.STALE,
}
ROOT = RootRef("Deployment", "team-a", "a", "apps", "u")
PHASES = {Phase.WATCHING: watching, Phase.NOMINATED: nominated, Phase.WARNED: warned}


def clock_says(verdicts: list[Verdict], doubted: int, rules) -> int | None:
    """The step at which the controller's own clock orders the pause."""
    book = Book()
    for n, verdict in enumerate(verdicts):
        workload = Workload(root=ROOT, pods=("some",), book=book)
        standing = Told(
            workload=workload,
            judgement=Judgement(
                verdict=verdict,
                reason=REASONS[verdict],
                message="",
                idle_since=0.0,
                window_seconds=rules.window_seconds,
            ),
            yardstick=Yardstick(rules=rules, at=(n + 1) * 60.0, scrape_interval_seconds=30.0),
            step_seconds=60.0,
            budget=Roomy(),
            doubted=bool(doubted >> n & 1),
        )
        step = PHASES[book.phase](standing)
        if step.action is Action.PAUSE:
            return n
        book = step.book
        if step.action is Action.WARN:
            book = replace(book, warned_via=("event",))
    return None


def mask_of(told: bytes) -> int:
    return int.from_bytes(told, "big")


def day(tape: Tape) -> list[Verdict]:
    """Mostly idle, with stretches of work and of doubt."""
    found = [Verdict.IDLE] * 120
    for _ in range(tape.number(0, 8)):
        begin, lasting = tape.number(0, 119), tape.pick([1, 1, 2, 5, 11, 25])
        verdict = tape.pick([Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.ACTIVE])
        found[begin : begin + lasting] = [verdict] * len(found[begin : begin + lasting])
    return found


@given(
    verdicts=taped(day, 30),
    doubted=st.just(0) | st.binary(min_size=15, max_size=15).map(mask_of),
    numbers=st.tuples(
        st.sampled_from([5, 10, 20]), st.sampled_from([1, 5, 15, 30]), st.sampled_from([1, 2, 3])
    ),
)
def test_a_pause_comes_when_the_clock_orders_it(verdicts, doubted: int, numbers) -> None:
    window, notice, confirmations = numbers
    rules = told_rules(
        {
            "window_seconds": window * 60.0,
            "notice_seconds": notice * 60.0,
            "confirmations": confirmations,
        }
    )
    masks = {
        verdict: sum(1 << n for n, one in enumerate(verdicts) if one is verdict)
        for verdict in Verdict
    }
    judged = Verdicts((1 << 120) - 1, masks[Verdict.IDLE], masks[Verdict.ACTIVE])

    def confirm(step: int, steps: int) -> bool:
        return not doubted >> step & 1

    said = paused_at(judged, 0, rules, Period(0, 119, 60.0), confirm=confirm)
    assert said == clock_says(verdicts, doubted, rules)

"""What the screen would have said of a device at every step of a history, all steps at once.

It answers, for a window and a threshold, at the ends of which steps `device.judge_device` would
have called a device idle, and in which windows work was seen. It is that judgement as arithmetic
on masks; a property test holds it to the table and the judgement themselves, step by step.

Left out, as a screen leaves them out: Xid errors, mean power, and values that a better one of the
same step hides. Left out because no history tells them: sudden silence, breakers, annotations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpu_pruner.decide.bits import any_in, at_least
from gpu_pruner.decide.device import (
    LEAST_STILL,
    LONGEST_STILL_ENERGY,
    Yardstick,
    judge_device,
    wanted_changes,
)
from gpu_pruner.decide.facts import NOTHING, Facts, signal_evidence
from gpu_pruner.decide.meters import is_proven
from gpu_pruner.decide.recording import PastDevice
from gpu_pruner.decide.signals import LIVENESS_ORDER, PRIMARY_ORDER
from gpu_pruner.model.plan import DeviceFinding
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Meter, Period, Signal
from gpu_pruner.resolve.attribution import node_key


@dataclass(frozen=True, slots=True)
class DeviceReplay:
    """One device under one setting. Bit n speaks of the look at the end of step n."""

    idle: int
    """Where it is judged idle."""
    long: int
    """Where it is judged over twice the window, because only UTIL is exported."""
    contradictory: int
    """Where engine activity reads idle and utilisation busy."""
    work: int
    """Steps (not looks) with work in any signal but utilisation."""
    util: int
    """Steps with work in utilisation."""
    steps: int
    """Of the window."""

    def active(self, born: int) -> int:
        """Return where it is judged active for a pod that was there from step `born` on."""
        own = -1 << born
        found = 0
        for steps, where in ((self.steps, ~self.long), (2 * self.steps, self.long)):
            work = any_in(self.work & own, steps)
            util = any_in(self.util & own, steps) & ~self.contradictory
            found |= (work | util) & where
        return found


@dataclass(frozen=True, slots=True)
class _Look:
    """What a device shows over one length of period."""

    quiet: int
    """Nothing speaks against idleness but its surroundings and its model."""
    proven: int
    """Where the signal that would prove it is one that can, on this model."""
    contradictory: int
    known: int
    """Where any signal was exported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What every device of a replay is measured by."""

    rules: Rules
    threshold: int
    """Number of the rules' engine threshold in the recording."""
    period: Period
    scrape_interval_seconds: float
    proven: frozenset[Meter] = frozenset()

    @property
    def window_steps(self) -> int:
        """Return how many steps a window has."""
        return int(-(-self.rules.window_seconds // self.period.step_seconds))

    @property
    def freshness_steps(self) -> int:
        """Return in how many of the newest steps a sample has to lie."""
        return int(self.yardstick(0.0).freshness_seconds // self.period.step_seconds) + 1

    def yardstick(self, at: float) -> Yardstick:
        """Return what one device alone is measured by at a moment, Unix seconds."""
        return Yardstick(
            rules=self.rules,
            at=at,
            scrape_interval_seconds=self.scrape_interval_seconds,
            proven=self.proven,
        )


def replayed(devices: Iterable[PastDevice], measure: Measure) -> Mapping[DeviceId, DeviceReplay]:
    """Judge every device at the end of every step.

    Args:
        devices: all that the history knows, held by somebody or not.
        measure: one setting.
    """
    known = {one.device: one for one in devices}
    steps, inside = measure.window_steps, (1 << measure.period.steps) - 1
    looks = {one: _both(past, known, measure) for one, past in known.items()}
    suspect, restless = _surroundings(known, looks)
    found: dict[DeviceId, DeviceReplay] = {}
    for one, past in known.items():
        long, look = looks[one]
        node = node_key(past.node)
        idle = look.quiet & look.proven & ~suspect.get(node, 0)
        if past.shared:
            idle &= ~restless.get(node, 0)
        work = util = 0
        for signal in past.signals:
            active = (past.facts(signal, measure.threshold) or NOTHING).active
            if signal is not Signal.UTIL:
                work |= active
            elif not one.mig_instance:
                util = active
        found[one] = DeviceReplay(
            idle & inside, long & inside, look.contradictory & inside, work, util, steps
        )
    return found


def _surroundings(
    known: Mapping[DeviceId, PastDevice], looks: Mapping[DeviceId, tuple[int, _Look]]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return by node where a device contradicts itself, and where a shared one is not quiet."""
    suspect: dict[str, int] = {}
    restless: dict[str, int] = {}
    for one, past in known.items():
        node, look = node_key(past.node), looks[one][1]
        if node:
            suspect[node] = suspect.get(node, 0) | look.contradictory
        if past.shared:
            restless[node] = restless.get(node, 0) | look.known & ~look.quiet
    return suspect, restless


def _both(
    past: PastDevice, known: Mapping[DeviceId, PastDevice], measure: Measure
) -> tuple[int, _Look]:
    """Look over the window, and where UTIL alone has to prove idleness over two of them."""
    steps = measure.window_steps
    short = _look(past, known, measure, steps)
    exported = {
        one: any_in((past.facts(one, 0) or NOTHING).present, steps + 1) for one in PRIMARY_ORDER
    }
    long = exported[Signal.UTIL] & ~exported[Signal.ENGINE] & ~exported[Signal.SM]
    if not long or past.shared or past.device.mig_instance:
        return 0, short
    double = _look(past, known, measure, 2 * steps)
    return long, _Look(
        short.quiet & ~long | double.quiet & long,
        short.proven & ~long | double.proven & long,
        short.contradictory & ~long | double.contradictory & long,
        short.known & ~long | double.known & long,
    )


def _look(
    past: PastDevice, known: Mapping[DeviceId, PastDevice], measure: Measure, steps: int
) -> _Look:
    facts = {one: past.facts(one, measure.threshold) or NOTHING for one in past.signals}
    facts |= {one: NOTHING for one in Signal if one not in facts}
    exported = {one: any_in(facts[one].present, steps + 1) for one in past.signals}
    quiet_engine = exported.get(Signal.ENGINE, 0) & ~any_in(facts[Signal.ENGINE].active, steps)
    loud = 0 if past.device.mig_instance else any_in(facts[Signal.UTIL].loud, steps)
    contradictory = quiet_engine & loud
    relevant = [
        one for one in past.signals if one is not Signal.UTIL or not past.device.mig_instance
    ]
    work = invalid = 0
    for one in relevant:
        work |= facts[one].active
        invalid |= facts[one].invalid
    covered, proven = _covered(past, facts, exported, measure=measure, steps=steps)
    quiet = covered & ~contradictory & ~any_in(work, steps) & ~any_in(invalid, steps)
    board = known.get(past.device.board) if past.device.mig_instance else None
    if measure.rules.liveness_required:
        quiet &= _alive(past, board, measure, steps)
    everything = 0
    for mask in exported.values():
        everything |= mask
    return _Look(quiet, proven, contradictory, everything)


def _covered(
    past: PastDevice,
    facts: Mapping[Signal, Facts],
    exported: Mapping[Signal, int],
    *,
    measure: Measure,
    steps: int,
) -> tuple[int, int]:
    """Return where the best primary signal covers the period, and where it can be believed."""
    rules, width = measure.rules, measure.period.step_seconds
    wanted = max(1, int(rules.coverage_ratio * steps))
    covered, believed, left = 0, 0, -1
    order = (Signal.ENGINE,) if past.shared else PRIMARY_ORDER
    for signal in order:
        here = exported.get(signal, 0) & left
        if not here or (signal is Signal.UTIL and past.device.mig_instance):
            continue
        left &= ~here
        if is_proven(past.model, signal, rules=rules, seen=measure.proven):
            believed |= here
        needed = rules.window_seconds * (2 if signal is Signal.UTIL else 1)
        if steps * width < needed:
            continue
        present = facts[signal].present
        fresh = any_in(present, min(measure.freshness_steps, steps + 1))
        covered |= here & fresh & at_least(present | present << 1, steps, wanted)
    return covered, believed


def _alive(past: PastDevice, board: PastDevice | None, measure: Measure, steps: int) -> int:
    """Return where the first exported of energy, power and temperature moves, and until the end."""
    wanted = wanted_changes(Period(0, steps - 1, measure.period.step_seconds), measure.rules)
    alive, left = 0, -1
    for signal in LIVENESS_ORDER:
        still = LONGEST_STILL_ENERGY if signal is Signal.ENERGY else max(wanted, LEAST_STILL)
        for source in (past, board):
            found = source.facts(signal, 0) if source is not None else None
            if found is None:
                continue
            here = any_in(found.present, steps + 1) & left
            left &= ~here
            recent = any_in(found.changes, min(still + 1, steps))
            alive |= here & recent & at_least(found.changes, steps, wanted)
    return alive


def judged_over(
    past: PastDevice, board: PastDevice | None, measure: Measure, *, last: int, steps: int
) -> DeviceFinding:
    """Judge one device at one moment over any period, as a measurement before a pause does.

    Args:
        past: the device.
        board: that it is a slice of; None for a whole GPU.
        measure: the setting.
        last: the step that the period ends with, counted from the begin of the history.
        steps: length of the period.
    """
    whole = measure.period
    end = whole.first + last
    period = Period(end - steps + 1, end, whole.step_seconds)
    signals = []
    for signal in Signal:
        for source in (past, board if signal in LIVENESS_ORDER else None):
            facts = source.facts(signal, measure.threshold) if source is not None else None
            if facts is None:
                continue
            inside = facts.within(period, base=whole.first)
            found = signal_evidence(signal, signal.value, inside, period=period)
            if found is not None:
                signals.append(found)
                break
    evidence = DeviceEvidence(
        past.device, period, tuple(signals), model=past.model, shared=past.shared
    )
    yardstick = measure.yardstick(period.end)
    return judge_device(evidence, yardstick, born_at=0.0, node="")

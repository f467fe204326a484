"""When a workload of a history would have been paused, and what would have come of it.

It runs the clock of `clock` (confirmations, notice, freeze, void) over the verdicts of `replay`; a
property test holds it to that clock, cycle by cycle. Nobody was paused in a history, so it goes on
after a pause: the next work in it is when somebody would have missed the GPUs.

Every setting is held against the same work, that of the lowest threshold asked about: a high one
would otherwise not see the very work that it pauses. Hours count only where telemetry was there to
say that nothing ran. Budgets, breakers, wishes, rollouts and kinds are in no history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TypeAlias

from gpu_pruner.decide.bits import between, next_in
from gpu_pruner.decide.facts import NOTHING
from gpu_pruner.decide.recording import PastDevice
from gpu_pruner.decide.replay import DeviceReplay
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceId, Period, Signal
from gpu_pruner.model.units import HOUR, MINUTE, Seconds

REGRET_SECONDS: Seconds = HOUR
"""Work this soon after a pause means that the pause was in somebody's way."""

_OLD_SECONDS: Seconds = 5 * MINUTE
"""A pod that is there this soon after the begin of the history is taken to be older than it: a
sample is visible for five minutes."""

Confirm: TypeAlias = Callable[[int, int], bool]
"""Whether a measurement at the end of a step, over so many steps, finds the workload idle."""


@dataclass(frozen=True, slots=True)
class Holding:
    """One device that a pod of a workload held for some steps."""

    device: DeviceId
    first: int
    end: int
    """Without this one."""

    @property
    def mask(self) -> int:
        """Return its steps."""
        return between(self.first, self.end)


@dataclass(frozen=True, slots=True)
class PastWorkload:
    """One workload of a history."""

    namespace: str
    name: str
    """As people name it, for example ``deployment/finetune``."""
    holdings: tuple[Holding, ...]
    """At least one."""


@dataclass(frozen=True, slots=True)
class Worked:
    """What a device did, whatever the setting."""

    work: int
    """Steps with work."""
    quiet: int
    """Steps in which, or in the step before, a primary signal had a sample, and nothing worked."""


@dataclass(frozen=True, slots=True)
class Pause:
    """One pause that would have been."""

    step: int
    end: int
    """First step in which it is over: by work, or because the workload is gone."""
    gpus: int
    returned: int
    """GPU steps that the pause would have given back."""
    regretted: bool
    is_open: bool
    """Whether the history ends too soon to tell whether it would have been regretted."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A workload under one setting: bit n speaks of the look at the end of step n."""

    there: int
    idle: int
    active: int


def worked(past: PastDevice, threshold: int) -> Worked:
    """Return what a device did.

    Args:
        past: the device.
        threshold: number of the lowest threshold that is asked about.
    """
    work = 0
    for signal in past.signals:
        if signal is not Signal.UTIL or not past.device.mig_instance:
            work |= (past.facts(signal, threshold) or NOTHING).active
    return Worked(work, past.seen_primary() & ~work)


def verdicts(
    workload: PastWorkload,
    replays: Mapping[DeviceId, DeviceReplay],
    rules: Rules,
    period: Period,
) -> Verdicts:
    """Judge a workload at the end of every step: one busy or doubtful GPU keeps all of it."""
    there = active = doubtful = 0
    for one in workload.holdings:
        replay, mask = replays[one.device], one.mask
        there |= mask
        active |= replay.active(one.first) & mask
        doubtful |= mask & ~replay.idle | _too_young(one, replay, rules, period)
    return Verdicts(there, there & ~doubtful & ~active, active)


def _too_young(one: Holding, replay: DeviceReplay, rules: Rules, period: Period) -> int:
    """Return the looks at which a pod is too young to be judged."""
    width, settle = period.step_seconds, rules.settle_seconds
    if one.first * width < _OLD_SECONDS:
        return 0
    short = ceil((rules.window_seconds + settle) / width)
    long = ceil((2 * rules.window_seconds + settle) / width)
    young = between(one.first, one.first + short - 1)
    return young | between(one.first, one.first + long - 1) & replay.long


def pauses(
    workload: PastWorkload,
    judged: Verdicts,
    facts: Mapping[DeviceId, Worked],
    *,
    rules: Rules,
    period: Period,
    confirm: Confirm,
) -> tuple[Pause, ...]:
    """Return the pauses of one workload under one setting, in the order of time.

    Args:
        workload: of the history.
        judged: its verdicts under the setting.
        facts: what was really going on, alike for all settings.
        rules: the setting.
        period: of the history.
        confirm: asked where the time since the warning is longer than the window.
    """
    work = 0
    for one in workload.holdings:
        work |= facts[one.device].work & one.mask
    age = ceil((rules.window_seconds + rules.settle_seconds) / period.step_seconds)
    found: list[Pause] = []
    step = 0
    while (at := paused_at(judged, step, rules, period, confirm=confirm)) is not None:
        found.append(_pause(workload, judged.there, work, facts, at=at, period=period))
        step = found[-1].end
        if work >> step & 1:  # somebody brought it back: a new life, and with it a new window
            idle = judged.idle & ~between(0, step + age - 1)
            judged = Verdicts(judged.there, idle, judged.active)
    return tuple(found)


def paused_at(
    judged: Verdicts, step: int, rules: Rules, period: Period, *, confirm: Confirm
) -> int | None:
    """Return the first step from this one on at whose end the workload is paused, or None."""
    agreed = 0
    while (warned := _warned_at(judged, step, agreed, rules.confirmations)) is not None:
        outcome, at = _notice(judged, warned, rules, period, confirm=confirm)
        if outcome == _PAUSED:
            return at
        step = at
        # A void warning is given anew at the next idle look; after work everything begins anew.
        agreed = rules.confirmations - 1 if outcome == _VOID else 0
    return None


_PAUSED, _VOID, _OVER = "paused", "void", "over"


def _warned_at(judged: Verdicts, step: int, agreed: int, wanted: int) -> int | None:
    """Return the step at which so many looks agree; doubt between them only takes time."""
    over = judged.active | ~judged.there
    while (found := next_in(judged.idle, step)) is not None:
        agreed = 1 if over & between(step, found) else agreed + 1
        if agreed >= wanted:
            return found
        step = found + 1
    return None


def _notice(
    judged: Verdicts, warned: int, rules: Rules, period: Period, *, confirm: Confirm
) -> tuple[str, int]:
    """Let a notice run: it ends by a pause, by work, or because its clock stood still too long."""
    due = warned + ceil(rules.notice_seconds / period.step_seconds)
    window = rules.window_seconds / period.step_seconds
    frozen: int | None = None
    for step in range(warned + 1, period.steps):
        if judged.active >> step & 1 or not judged.there >> step & 1:
            return _OVER, step
        stood = 0 if frozen is None else step - frozen
        if stood > window:
            return _VOID, step + 1
        idle = judged.idle >> step & 1
        if idle and step < due + stood:
            due, frozen = due + stood, None
        elif idle and (step - warned <= window or confirm(step, step - warned)):
            return _PAUSED, step
        elif frozen is None:
            frozen = step
    return _OVER, period.steps


def _pause(
    workload: PastWorkload,
    there: int,
    work: int,
    facts: Mapping[DeviceId, Worked],
    *,
    at: int,
    period: Period,
) -> Pause:
    """Say what came of a pause at the end of a step."""
    gone = next_in(~there, at + 1)
    missed = next_in(work, at + 1)
    last = period.steps
    end = min(one for one in (gone, missed, last) if one is not None)
    stretch = between(at + 1, end)
    reach = int(REGRET_SECONDS // period.step_seconds)
    return Pause(
        step=at,
        end=end,
        gpus=sum(one.mask >> at & 1 for one in workload.holdings),
        returned=sum(
            (facts[one.device].quiet & one.mask & stretch).bit_count() for one in workload.holdings
        ),
        regretted=missed == end and end - at <= reach,
        is_open=end == last and last - 1 - at < reach,
    )

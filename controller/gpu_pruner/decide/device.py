"""One device's verdict from its evidence.

It answers ACTIVE, IDLE or UNKNOWN with the reason and the evidence in words. Zero is not proof:
only a primary signal that covers the window, is fresh and in range, on telemetry that moves and
that nothing contradicts, proves idleness. `idle` calls it for every device of a workload.

A shared device is idle only by engine activity, and only if all shared devices of its node are:
which pod runs on which of them is not to be told from the labels.

Source: ARCHITECTURE section 6, the rule for a device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_pruner.decide.meters import is_proven
from gpu_pruner.decide.power import overdrawn
from gpu_pruner.decide.signals import LIVENESS_ORDER, PRIMARY_ORDER, SIGNALS
from gpu_pruner.decide.wording import clock_time, minutes, seen
from gpu_pruner.model.plan import DeviceFinding
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Meter, Period, Signal, SignalEvidence
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.model.verdict import Reason, Verdict

_LEAST_SCRAPES = 3
"""The newest sample may always be this many scrape intervals old."""

LONGEST_STILL_ENERGY = 3
"""Steps at the end of the period in which energy may stand still: a running counter moves in every
poll, so this only leaves room for a restart of the exporter."""

LEAST_STILL = 3
"""The same for power and temperature, which may rest for as many steps as changes are wanted."""

_STALE_ERRORS_SEEN = 2
"""Steps that a code from before the period may miss and still not be news."""

_WORDS_OF_NOT_A_VALUE = "a value that is not a number or out of range"

Found = tuple[Verdict, Reason, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What every device of one cycle is measured by."""

    rules: Rules
    at: Timestamp
    scrape_interval_seconds: Seconds
    suspect_nodes: frozenset[str] = frozenset()
    """Keys of nodes whose telemetry contradicts itself (see `node_key`)."""
    restless_nodes: frozenset[str] = frozenset()
    """Keys of nodes with a shared device that is not proven idle."""
    silenced: Mapping[DeviceId, Timestamp] = field(default_factory=dict)
    """As in `Snapshot`."""
    proven: frozenset[Meter] = frozenset()
    """As in `Snapshot`."""

    @property
    def freshness_seconds(self) -> Seconds:
        """Return the greatest age of the newest sample."""
        return max(self.rules.freshness_seconds, _LEAST_SCRAPES * self.scrape_interval_seconds)


def relevant(evidence: DeviceEvidence) -> tuple[SignalEvidence, ...]:
    """Return the signals that mean something on this device, in the order of `Signal`.

    UTIL is 0 or absent on slices, whatever they do.
    """
    if not evidence.device.mig_instance:
        return evidence.signals
    return tuple(one for one in evidence.signals if one.signal is not Signal.UTIL)


def contradicts_itself(evidence: DeviceEvidence) -> bool:
    """Whether engine activity reads idle while utilisation reads busy.

    The engine metric has been seen at 0 for weeks, on all GPUs of a node, under full load.
    """
    engine_is_quiet = util_is_loud = False
    for one in evidence.signals:
        if one.signal is Signal.ENGINE:
            engine_is_quiet = not one.active_steps
        elif one.signal is Signal.UTIL:
            util_is_loud = one.loud_steps > 0 and not evidence.device.mig_instance
    return engine_is_quiet and util_is_loud


def _order(evidence: DeviceEvidence) -> tuple[Signal, ...]:
    """Return the signals that can prove this device idle: UTIL is zero-filled on shared GPUs."""
    return (Signal.ENGINE,) if evidence.shared else PRIMARY_ORDER


def _first(
    signals: tuple[SignalEvidence, ...], wanted: tuple[Signal, ...]
) -> SignalEvidence | None:
    """Return the evidence of the first wanted signal that there is any of."""
    for signal in wanted:
        for one in signals:
            if one.signal is signal:
                return one
    return None


def primary_of(evidence: DeviceEvidence) -> SignalEvidence | None:
    """Return the signal that would have to prove idleness, or None where there is none."""
    return _first(relevant(evidence), _order(evidence))


def is_quiet_share(evidence: DeviceEvidence, yardstick: Yardstick) -> bool:
    """Whether a shared device, by itself, is proven idle by engine activity."""
    signals = relevant(evidence)
    works = contradicts_itself(evidence) or any(one.last_active_at is not None for one in signals)
    return not works and _gap(evidence, signals, yardstick=yardstick) is None


def needed_seconds(evidence: DeviceEvidence, rules: Rules) -> Seconds:
    """Return how long this device has to be quiet: twice the window where only UTIL is exported.

    UTIL looks at 1/6 to 1 second per poll and misses most short work.
    """
    primary = primary_of(evidence)
    return rules.window_seconds if primary is None else needed_for(primary, rules)


def needed_for(primary: SignalEvidence, rules: Rules) -> Seconds:
    """Return how long a device with this primary signal has to be quiet."""
    return rules.window_seconds * (2 if primary.signal is Signal.UTIL else 1)


def judge_device(
    evidence: DeviceEvidence, yardstick: Yardstick, *, born_at: Timestamp, node: str
) -> DeviceFinding:
    """Judge one device over the period of its evidence.

    Args:
        evidence: of this device.
        yardstick: rules, moment, and what is known of nodes, models and other devices.
        born_at: when its pod was created, Unix seconds; work that ended before was not the pod's.
        node: key of its pod's node (see `node_key`).
    """
    signals = relevant(evidence)
    contradiction = contradicts_itself(evidence)
    found = _activity(signals, yardstick, born_at=born_at, without_util=contradiction)
    if found is None and (contradiction or node in yardstick.suspect_nodes):
        where = "it" if contradiction else "another GPU of its node"
        told = f"on {where}, engine activity reads idle while utilisation reads busy"
        found = Verdict.UNKNOWN, Reason.CONTRADICTION, told
    found = (
        found
        or _gap(evidence, signals, yardstick=yardstick)
        or _shared(evidence, restless=node in yardstick.restless_nodes)
        or _unproven(evidence, signals, yardstick=yardstick)
        or _idle(evidence, signals)
    )
    verdict, reason, detail = found
    return DeviceFinding(evidence=evidence, verdict=verdict, reason=reason, detail=detail)


def _shared(evidence: DeviceEvidence, *, restless: bool) -> Found | None:
    """Return why a shared device is not proven idle, or None where it is, or is not shared."""
    if not (evidence.shared and restless):
        return None
    told = "it is shared, and not every shared GPU of its node is proven idle"
    return Verdict.UNKNOWN, Reason.SHARED_DEVICE, told


def _unproven(
    evidence: DeviceEvidence, signals: tuple[SignalEvidence, ...], *, yardstick: Yardstick
) -> Found | None:
    """Return why a device that reads idle is not believed, or None where it is."""
    until = yardstick.silenced.get(evidence.device)
    if until is not None:
        told = "it fell quiet in the same two minutes as many others; it is believed from "
        told += f"{clock_time(until, now=yardstick.at)} on"
        return Verdict.UNKNOWN, Reason.SUDDEN_SILENCE, told
    if (drew := overdrawn(evidence, now=yardstick.at)) is not None:
        return Verdict.UNKNOWN, Reason.POWER_ABOVE_IDLE, drew
    signal = (_first(signals, _order(evidence)) or signals[0]).signal
    if is_proven(evidence.model, signal, rules=yardstick.rules, seen=yardstick.proven):
        return None
    model = evidence.model or "a model that the exporter does not tell"
    told = f"{SIGNALS[signal].word} was never seen to show work on {model}"
    return Verdict.UNKNOWN, Reason.UNPROVEN_METER, told


def _activity(
    signals: tuple[SignalEvidence, ...],
    yardstick: Yardstick,
    *,
    born_at: Timestamp,
    without_util: bool,
) -> Found | None:
    newest: SignalEvidence | None = None
    newest_at = -math.inf
    for one in signals:
        if one.last_active_at is None or (without_util and one.signal is Signal.UTIL):
            continue
        if one.last_active_at > newest_at:
            newest, newest_at = one, one.last_active_at
    if newest is None:
        return None
    if newest_at <= born_at:
        told = f"{SIGNALS[newest.signal].word} was busy until "
        told += f"{clock_time(newest_at, now=yardstick.at)}, before the pod was there"
        return Verdict.UNKNOWN, Reason.OWNER_CHANGED, told
    told = _busy(newest, last_at=newest_at, now=yardstick.at)
    return Verdict.ACTIVE, Reason.GPU_ACTIVE, told


def _busy(one: SignalEvidence, *, last_at: Timestamp, now: Timestamp) -> str:
    word = SIGNALS[one.signal].word
    if one.peak is None or one.peak_at is None:
        return f"{word} busy until {clock_time(last_at, now=now)}"
    return f"{word} peak {_value(one)} at {clock_time(one.peak_at, now=now)}"


def _gap(
    evidence: DeviceEvidence, signals: tuple[SignalEvidence, ...], *, yardstick: Yardstick
) -> Found | None:
    """Return why nothing can be said, or None where the evidence is whole."""
    rules = yardstick.rules
    for one in signals:
        if one.invalid_steps:
            told = f"{one.metric} has {_WORDS_OF_NOT_A_VALUE}"
            return Verdict.UNKNOWN, Reason.OUT_OF_RANGE, told
    if (error := _error(signals)) is not None:
        return error
    primary = _first(signals, _order(evidence))
    if primary is None:
        told = "neither engine activity nor utilisation is exported for it"
        if evidence.shared:
            told = "it is shared, and its engine activity is not exported"
        return Verdict.UNKNOWN, Reason.NO_PRIMARY_SIGNAL, told
    found = _uncovered(primary, evidence.period, yardstick=yardstick)
    if found is not None or not rules.liveness_required:
        return found
    return _frozen(evidence.period, signals, yardstick=yardstick)


def _uncovered(primary: SignalEvidence, period: Period, *, yardstick: Yardstick) -> Found | None:
    """Return how the primary signal fails to cover the window until now, or None."""
    rules = yardstick.rules
    age = yardstick.at - primary.newest_at
    if age > yardstick.freshness_seconds:
        told = f"{primary.metric} has no sample since "
        told += clock_time(primary.newest_at, now=yardstick.at)
        return Verdict.UNKNOWN, Reason.STALE, told
    needed = needed_for(primary, rules)
    if period.steps * period.step_seconds < needed:
        told = f"only the last {minutes(period.steps * period.step_seconds)} of "
        told += f"{minutes(needed)} minutes were looked at"
        return Verdict.UNKNOWN, Reason.LOW_COVERAGE, told
    if primary.seen_steps < max(1, int(rules.coverage_ratio * period.steps)):
        told = seen(primary.seen_steps, period)
        return Verdict.UNKNOWN, Reason.LOW_COVERAGE, f"{told} by {primary.metric}"
    return None


def _error(signals: tuple[SignalEvidence, ...]) -> Found | None:
    """Return the Xid error that is news in the period, or None.

    The exporter never resets the code, so one that is there in (almost) every step is old.
    """
    xid = _first(signals, (Signal.XID,))
    if xid is None:
        return None
    appeared = 0 < xid.loud_steps < xid.seen_steps - _STALE_ERRORS_SEEN
    if not (xid.changes or appeared):
        return None
    return Verdict.UNKNOWN, Reason.DEVICE_ERROR, f"{xid.metric} reported a new error"


def wanted_changes(period: Period, rules: Rules) -> int:
    """Return in how many steps of a period energy, power or temperature has to move."""
    return max(1, min(rules.liveness_changes, period.steps // 3))


def _frozen(
    period: Period, signals: tuple[SignalEvidence, ...], *, yardstick: Yardstick
) -> Found | None:
    """Return how the telemetry fails to show that it is alive, or None where it moves.

    It has to move often enough, and until the end: values that froze within the window would
    otherwise hide the work that began after that.
    """
    alive = _first(signals, LIVENESS_ORDER)
    if alive is None:
        told = "neither energy, power nor temperature is exported, so a stuck zero would look alike"
        return Verdict.UNKNOWN, Reason.NOT_LIVE, told
    wanted = wanted_changes(period, yardstick.rules)
    word, moved_at = SIGNALS[alive.signal].word, alive.last_changed_at
    if alive.changes < wanted or moved_at is None:
        told = f"{word} changed {alive.changes} times, {wanted} are wanted"
        return Verdict.UNKNOWN, Reason.NOT_LIVE, told
    still = LONGEST_STILL_ENERGY if alive.signal is Signal.ENERGY else max(wanted, LEAST_STILL)
    if period.end - moved_at <= still * period.step_seconds:
        return None
    told = f"{word} has not moved since {clock_time(moved_at, now=yardstick.at)}"
    return Verdict.UNKNOWN, Reason.NOT_LIVE, told


def _idle(evidence: DeviceEvidence, signals: tuple[SignalEvidence, ...]) -> Found:
    primary = _first(signals, _order(evidence)) or signals[0]
    told = seen(primary.seen_steps, evidence.period)
    if primary.peak is not None:
        told = f"{SIGNALS[primary.signal].word} peak {_value(primary)}, {told}"
    return Verdict.IDLE, Reason.IDLE, told


def _value(one: SignalEvidence) -> str:
    """Write a peak in its unit: ratios with three places, percentages as they are."""
    return f"{one.peak:.3f}" if SIGNALS[one.signal].highest < 2 else f"{one.peak:g}"  # noqa: PLR2004 - ratios end near 1

"""The memory between cycles: per-device facts from the newest slices of telemetry.

It answers, for any period within its horizon, the same `DeviceEvidence` that folding the whole
period would give, without peaks. It must never say *more idle* than that fold would: a property
test holds it to this. It is a cache: it may be dropped at any time, and only nominates.
`loop.cycle` absorbs one `Screen` per cycle and asks for the evidence of the judged period.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_pruner.decide.evidence import identified
from gpu_pruner.decide.facts import Series, SignalFacts, Steps, Window, signal_evidence
from gpu_pruner.decide.signals import LIVENESS_ORDER, PRIMARY_ORDER, SIGNALS, active_from
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import (
    DeviceEvidence,
    DeviceId,
    Period,
    SeriesLabels,
    Signal,
    SignalEvidence,
    Track,
)
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.units import HOUR, Seconds

_RECENT = 8
"""Steps of a series that are kept to compare the next slice with. A slice that reaches back further
finds fewer changes than there were, never more."""

_ORDER = {signal: place for place, signal in enumerate(Signal)}
_Masks = tuple[str, int, int, int, int, int]


@dataclass(slots=True)
class _Told:
    """What the signals of a device show over a period."""

    signals: tuple[SignalEvidence, ...]
    only_util: bool = False
    """Whether UTIL is all that could prove idleness."""

    def __post_init__(self) -> None:
        primary = {one.signal for one in self.signals}.intersection(PRIMARY_ORDER)
        self.only_util = primary == {Signal.UTIL}


@dataclass(slots=True)
class _Memo:
    """What was worked out for one period already: most devices of a fleet show the same."""

    signals: dict[tuple[str, Signal, Window], SignalEvidence | None] = field(default_factory=dict)
    devices: dict[tuple[_Masks, ...], _Told] = field(default_factory=dict)


@dataclass(slots=True)
class _Record:
    """All that is known of one device."""

    signals: dict[Signal, SignalFacts] = field(default_factory=dict)
    sightings: list[tuple[SeriesLabels, int]] = field(default_factory=list)
    """Label sets with the newest step in which each was seen."""
    newest: int = 0

    def see(self, labels: SeriesLabels, step: int) -> None:
        """Note that a label set was on a series of the device in this step."""
        self.newest = max(self.newest, step)
        for place, (known, last) in enumerate(self.sightings):
            if known is labels or known == labels:
                if step > last:
                    self.sightings[place] = (known, step)
                return
        self.sightings.append((labels, step))


@dataclass(slots=True)
class _Slice:
    """One signal's part of a slice. Tracks that share one tuple of steps are read once."""

    threshold: float
    known: dict[int, tuple[Steps, SignalFacts]] = field(default_factory=dict)

    def add(self, track: Track, *, to: SignalFacts, base: int) -> None:
        """Add a track to what is known of its device."""
        steps = track.steps
        found = self.known.get(id(steps))
        if found is None or found[0] is not steps:
            read = SignalFacts(track.signal, track.metric)
            read.absorb(steps, base=base, active_from=self.threshold)
            found = self.known[id(steps)] = (steps, read)
        told = found[1]
        to.present |= told.present
        if told.active:
            to.active |= told.active
        if told.loud:
            to.loud |= told.loud
        if told.invalid:
            to.invalid |= told.invalid


class ScreenTable:
    """Facts per device as bits per step: a few hundred bytes for each device."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.newest_step: int | None = None
        """Newest step that a screen covered; None before the first one."""
        self.hole_from: int | None = None
        """First step of the longest hole that the newest slice began too late to look into: a
        device came back in it. What it sent meanwhile may have arrived late; None: no such hole.
        """
        self._records: dict[DeviceId, _Record] = {}
        self._step_seconds: Seconds = 0.0
        self._threshold = 0.0
        self._base = 0
        self._slice = 0

    def __len__(self) -> int:
        """Return how many devices are known."""
        return len(self._records)

    def absorb(self, screen: Screen, rules: Rules) -> None:
        """Add one slice. Absorbing a step again changes nothing; late samples are added.

        Everything is forgotten when the step length or the engine's threshold changes, because
        facts of different rules cannot be put together, and when the slice is so far from what is
        known that nothing known could ever be asked for with it.

        Args:
            screen: complete answer of the source, whose first steps may be known already.
            rules: for the threshold and for how long facts are needed.
        """
        period, kept = screen.period, self._kept_steps(screen.period.step_seconds, rules)
        first = max(period.first, period.last - 2 * kept)
        known = (self._step_seconds, self._threshold)
        if known != (period.step_seconds, rules.idle_threshold) or self._is_far(period, kept):
            self._records = {}
            self._step_seconds, self._threshold = period.step_seconds, rules.idle_threshold
            self._base, self.newest_step = first, None
        if first < self._base:
            self._rebase(first)
        self._slice, self.hole_from = self._slice + 1, None
        if self.newest_step is None or period.last > self.newest_step:
            self.newest_step = period.last
        slices = {signal: _Slice(active_from(signal, rules)) for signal in Signal}
        for track in screen.tracks:
            if track.steps:
                self._absorb(track, slices[track.signal], begin=period.first)
        if self.newest_step - self._base > 2 * kept:
            self._forget(self.newest_step - kept)

    def evidence(self, period: Period) -> Mapping[DeviceId, DeviceEvidence]:
        """Return what is known of every device over a period.

        A device whose only primary signal is UTIL gets a period twice as long, with the same end,
        because that is the one it is judged by. Peaks are None.

        Args:
            period: in the step length of the absorbed screens; otherwise nothing is known.
        """
        if period.step_seconds != self._step_seconds:
            return {}
        double = Period(period.first - period.steps, period.last, period.step_seconds)
        single_memo, double_memo = _Memo(), _Memo()
        found: dict[DeviceId, DeviceEvidence] = {}
        for device, record in self._records.items():
            seen, told = period, self._signals(device, period, memo=single_memo)
            if told.only_util:
                seen, told = double, self._signals(device, double, memo=double_memo)
            signals = told.signals
            inside = [one for one in record.sightings if one[1] >= seen.first]
            if signals or inside:
                found[device] = identified(device, seen, signals=signals, sightings=inside)
        return found

    def _signals(self, device: DeviceId, period: Period, *, memo: _Memo) -> _Told:
        """Return what a device's signals show; devices with the same facts share one answer."""
        facts = list(self._records[device].signals.values())
        if device.mig_instance and (board := self._records.get(device.board)) is not None:
            own = {one.signal for one in facts if self._read(one, period, memo=memo)}
            wanted = [one for one in LIVENESS_ORDER if one not in own]
            facts += [board.signals[one] for one in wanted if one in board.signals]
        key = tuple(
            [
                (one.metric, one.present, one.active, one.invalid, one.loud, one.changes)
                for one in facts
            ]
        )
        told = memo.devices.get(key)
        if told is None:
            found = [read for one in facts if (read := self._read(one, period, memo=memo))]
            found.sort(key=lambda one: _ORDER[one.signal])
            told = memo.devices[key] = _Told(tuple(found))
        return told

    def _read(self, facts: SignalFacts, period: Period, *, memo: _Memo) -> SignalEvidence | None:
        """Return one signal's evidence; devices with the same facts share one value."""
        window = facts.window(period, base=self._base)
        key = (facts.metric, facts.signal, window)
        if key not in memo.signals:
            memo.signals[key] = signal_evidence(facts, period, window=window)
        return memo.signals[key]

    def _absorb(self, track: Track, told: _Slice, *, begin: int) -> None:
        record = self._records.get(track.device)
        if record is None:
            record = self._records[track.device] = _Record()
        record.see(track.labels, track.steps[-1][0])
        facts = record.signals.get(track.signal)
        if facts is None:
            facts = record.signals[track.signal] = SignalFacts(track.signal, track.metric)
        elif track.signal in PRIMARY_ORDER:
            unseen = self._base + facts.present.bit_length()
            if unseen + 1 < begin and (self.hole_from is None or unseen < self.hole_from):
                self.hole_from = unseen
        facts.metric = min(facts.metric, track.metric)
        told.add(track, to=facts, base=self._base)
        rule = SIGNALS[track.signal]
        if rule.counts_changes and (series := self._series(facts, track)) is not None:
            series.move(track.steps, base=self._base, lowest=rule.lowest, highest=rule.highest)
            series.recent = series.recent[-_RECENT:]

    def _series(self, facts: SignalFacts, track: Track) -> Series | None:
        """Return the series that a track continues.

        None for a second track of the same slice with the same labels: which of the two is which
        cannot be told in the next slice, so its movement is not counted.
        """
        for one in facts.series:
            if one.labels == track.labels and one.metric == track.metric:
                if one.slice_number == self._slice:
                    return None
                one.slice_number = self._slice
                return one
        one = Series(track.metric, track.labels, slice_number=self._slice)
        facts.series.append(one)
        return one

    @staticmethod
    def _kept_steps(step_seconds: Seconds, rules: Rules) -> int:
        """Return for how many steps facts may still be asked for."""
        return int((2 * rules.window_seconds + HOUR) // step_seconds) + 2

    def _is_far(self, period: Period, kept: int) -> bool:
        """Whether a slice is out of reach of what is known: a long silence, or a clock that jumped.

        Without this, a clock that jumps and comes back would stretch every mask over the jump.
        """
        return self.newest_step is not None and abs(period.last - self.newest_step) > kept

    def _rebase(self, base: int) -> None:
        for record in self._records.values():
            for facts in record.signals.values():
                facts.rebase(base - self._base)
        self._base = base

    def _forget(self, base: int) -> None:
        """Let go of steps that no period can ask for, and of devices long gone."""
        self._records = {
            device: record for device, record in self._records.items() if record.newest >= base
        }
        for record in self._records.values():
            record.sightings = [one for one in record.sightings if one[1] >= base]
        self._rebase(base)

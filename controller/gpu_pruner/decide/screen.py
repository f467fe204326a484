"""The memory between cycles: per-device facts from the newest slices of telemetry.

It answers, for any period within its horizon, the same `DeviceEvidence` that folding the whole
period would give, without peaks. It must never say *more idle* than that fold would: a property
test holds it to this. It is a cache: it may be dropped at any time, and only nominates.
`loop.cycle` absorbs one `Screen` per cycle and asks for the evidence of the judged period.

Most devices of a fleet say the same, so what they say is worked out once and shared: equal facts
are one object, and what follows from them is looked up by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from gpu_pruner.decide.evidence import identified
from gpu_pruner.decide.facts import NOTHING, Facts, read, read_moves, signal_evidence
from gpu_pruner.decide.signals import LIVENESS_ORDER, PRIMARY_ORDER, SIGNALS, active_from
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import (
    Column,
    DeviceEvidence,
    DeviceId,
    Period,
    SeriesLabels,
    Signal,
    SignalEvidence,
    Steps,
    Subject,
)
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.units import HOUR, Seconds


class _Row:
    """All that is known of one device."""

    __slots__ = ("device", "facts", "sightings", "unnamed")

    def __init__(self, device: DeviceId, columns: int) -> None:
        self.device = device
        self.facts: list[Facts | None] = [None] * columns
        """By the number of the column; None where it was never seen."""
        self.sightings: list[_Sighting] = []
        self.unnamed: list[_Sighting] = []
        """Those of label sets that say nothing but which device."""


class _Sighting:
    """One label set of a device, with the newest step in which it was seen, and what it says."""

    __slots__ = ("facts", "labels", "last", "model", "node", "owners", "shared")

    def __init__(self, row: _Row, labels: SeriesLabels) -> None:
        self.facts = row.facts
        """The same list as the device's."""
        self.labels = labels
        self.last = -1
        alone = identified(row.device, _NO_PERIOD, signals=(), sightings=((labels, 0),))
        self.owners = alone.owners
        self.node = alone.node
        self.model = alone.model
        self.shared = alone.shared


class _Told(msgspec.Struct, gc=False):
    """What the signals of a device show over a period."""

    signals: tuple[SignalEvidence, ...]
    only_util: bool
    """Whether UTIL is all that could prove idleness."""


_NO_PERIOD = Period(0, -1, 60.0)
_UNNAMED = SeriesLabels()
_Memo: TypeAlias = dict[tuple[int, ...], _Told]


class _Merge:
    """Adds one column's slice to what is known; what was worked out once is looked up."""

    def __init__(
        self, look: Callable[[Steps], Facts], same: dict[Facts, Facts], *, moves: bool
    ) -> None:
        self.seen: dict[int, Facts | None] = {}
        """Every facts that something was added to, by `id`; kept, so that no other gets its id."""
        self.known: dict[tuple[int, int], Facts] = {}
        """Sums by the `id` of facts and of steps."""
        self.returned: dict[int, Facts] = {}
        """Those of `seen` that something quiet was added to."""
        self._look = look
        self._read: dict[int, Facts] = {}
        self._same = same
        self._moves = moves

    def add(self, facts: Facts | None, steps: Steps) -> Facts:
        """Return the sum; `known` holds it from now on."""
        told = self._read.get(id(steps))
        if told is None:
            told = self._look(steps)
            told = self._read[id(steps)] = self._same.setdefault(told, told)
        before = facts or NOTHING
        total = before.corrected_by(told) if self._moves else before | told
        total = self._same.setdefault(total, total)
        self.seen[id(facts)] = facts
        if facts is not None and told.present & ~told.active:
            self.returned[id(facts)] = facts
        self.known[id(facts), id(steps)] = total
        return total


def _is_part(row: _Row, period: Period) -> bool:
    """Whether a device is a slice of a board, or was seen in the period as one of its shares."""
    if row.device.mig_instance:
        return True
    return any(one.shared for one in row.sightings if one.last >= period.first)


class ScreenTable:
    """Facts per device as bits per step: a few hundred bytes for each device."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.newest_step: int | None = None
        """Newest step that a screen covered; None before the first one."""
        self.hole_from: int | None = None
        """First step of the longest hole that the newest slice began too late to look into: a
        device came back in it. What it sent meanwhile may have arrived late; None: no such hole.
        All before the slice is one where everything had to be forgotten.
        """
        self._rows: dict[DeviceId, _Row] = {}
        self._columns: dict[tuple[Signal, str], int] = {}
        self._sightings: dict[Subject, _Sighting] = {}
        self._step_seconds: Seconds = 0.0
        self._threshold = 0.0
        self._base = 0

    def __len__(self) -> int:
        """Return how many devices are known."""
        return len(self._rows)

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
        self.hole_from = None
        if known != (period.step_seconds, rules.idle_threshold) or self._is_far(period, kept):
            if self.newest_step is not None:
                self.hole_from = self._forgotten(period, rules)
            self._forget_everything()
            self._step_seconds, self._threshold = period.step_seconds, rules.idle_threshold
            self._base, self.newest_step = first, None
        if first < self._base:
            self._rebase(first)
        if self.newest_step is None or period.last > self.newest_step:
            self.newest_step = period.last
        same: dict[Facts, Facts] = {}
        for column in screen.columns:
            self._absorb(column, same, rules=rules, begin=period.first)
        if self.newest_step - self._base > 2 * kept:
            self._forget(self.newest_step - kept)

    def evidence(self, period: Period) -> Mapping[DeviceId, DeviceEvidence]:
        """Return what is known of every device over a period.

        A device whose only primary signal is UTIL gets a period twice as long, with the same end,
        because that is the one it is judged by; not where UTIL proves nothing, on slices and on
        shared GPUs. Peaks are None.

        Args:
            period: in the step length of the absorbed screens; otherwise nothing is known.
        """
        if period.step_seconds != self._step_seconds:
            return {}
        double = Period(period.first - period.steps, period.last, period.step_seconds)
        memo: _Memo = {}
        double_memo: _Memo = {}
        found: dict[DeviceId, DeviceEvidence] = {}
        for device, row in self._rows.items():
            seen, told = period, self._told(row, period, memo=memo)
            if told.only_util and not _is_part(row, period):
                seen, told = double, self._told(row, double, memo=double_memo)
            if len(row.sightings) == 1 and (one := row.sightings[0]).last >= seen.first:
                found[device] = DeviceEvidence(
                    device, seen, told.signals, one.owners, one.node, one.model, one.shared
                )
                continue
            inside = [(one.labels, one.last) for one in row.sightings if one.last >= seen.first]
            if told.signals or inside:
                found[device] = identified(device, seen, signals=told.signals, sightings=inside)
        return found

    def _told(self, row: _Row, period: Period, *, memo: _Memo) -> _Told:
        """Return what a device's signals show; devices with the same facts share one answer."""
        key, board = tuple(map(id, row.facts)), None
        if row.device.mig_instance:
            board = self._rows.get(row.device.board)
            key += () if board is None else tuple(map(id, board.facts))
        told = memo.get(key)
        if told is None:
            told = memo[key] = self._read(row, board, period)
        return told

    def _read(self, row: _Row, board: _Row | None, period: Period) -> _Told:
        """Work out what a device's signals show; a slice without liveness has its board's."""
        own = self._by_signal(row)
        lent = {} if board is None else self._by_signal(board)
        signals: list[SignalEvidence] = []
        for signal in Signal:
            for source in (own, lent if signal in LIVENESS_ORDER else {}):
                if (known := source.get(signal)) is None:
                    continue
                inside = known[1].within(period, base=self._base)
                found = signal_evidence(signal, known[0], inside, period=period)
                if found is not None:
                    signals.append(found)
                    break
        primary = {one.signal for one in signals}.intersection(PRIMARY_ORDER)
        return _Told(tuple(signals), only_util=primary == {Signal.UTIL})

    def _by_signal(self, row: _Row) -> dict[Signal, tuple[str, Facts]]:
        """Return the facts of a device's signals, all metrics of one together."""
        found: dict[Signal, tuple[str, Facts]] = {}
        for (signal, metric), place in self._columns.items():
            facts = row.facts[place]
            if facts is not None:
                name, known = found.get(signal, (metric, NOTHING))
                found[signal] = min(name, metric), known | facts
        return found

    def _absorb(
        self, column: Column, same: dict[Facts, Facts], *, rules: Rules, begin: int
    ) -> None:
        """Add a column, and who was seen in it."""
        place, base = self._place(column), self._base
        rule, threshold = SIGNALS[column.signal], active_from(column.signal, rules)

        def look(steps: Steps) -> Facts:
            if column.moves:
                return read_moves(steps, base=base)
            return read(steps, base=base, rule=rule, active_from=threshold)

        merge, peaks = _Merge(look, same, moves=column.moves), not column.moves
        sightings, known = self._sightings, merge.known
        for subject, steps in column.series:
            if not steps:
                continue
            sighting = sightings.get(subject) or self._meet(subject)
            newest, value = steps[-1]
            if newest > sighting.last and (peaks or value):
                sighting.last = newest  # what does not move may be gone
            facts = sighting.facts
            before = facts[place]
            facts[place] = known.get((id(before), id(steps))) or merge.add(before, steps)
        if column.signal in PRIMARY_ORDER:
            self._look_for_holes(merge.returned.values(), begin)

    def _look_for_holes(self, found: Iterable[Facts], begin: int) -> None:
        """Note where the longest hole of those began that a primary signal came back to.

        Only of quiet ones: what came back with work is not idle, and where a screen asks for a
        signal's work only, there is no sample between two times of work.
        """
        for facts in found:
            unseen = self._base + facts.present.bit_length()
            if unseen + 1 < begin and (self.hole_from is None or unseen < self.hole_from):
                self.hole_from = unseen

    def _place(self, column: Column) -> int:
        """Return the number of a column; a new one is made where it is unknown."""
        key = (column.signal, column.metric)
        place = self._columns.get(key)
        if place is None:
            place = self._columns[key] = len(self._columns)
            for row in self._rows.values():
                row.facts.append(None)
        return place

    def _meet(self, subject: Subject) -> _Sighting:
        """Return the sighting of a label set that may be another object than before."""
        row = self._rows.get(subject.device)
        if row is None:
            row = self._rows[subject.device] = _Row(subject.device, len(self._columns))
        group = row.unnamed if subject.labels == _UNNAMED else row.sightings
        for known in group:
            if known.labels == subject.labels:
                self._sightings[subject] = known
                return known
        new = self._sightings[subject] = _Sighting(row, subject.labels)
        group.append(new)
        return new

    @staticmethod
    def _kept_steps(step_seconds: Seconds, rules: Rules) -> int:
        """Return for how many steps facts may still be asked for."""
        return int((2 * rules.window_seconds + HOUR) // step_seconds) + 2

    @staticmethod
    def _forgotten(period: Period, rules: Rules) -> int | None:
        """Return the first step that could be asked for, where a slice begins after it."""
        begin = period.last - int(2 * rules.window_seconds // period.step_seconds)
        return begin if begin + 1 < period.first else None

    def _is_far(self, period: Period, kept: int) -> bool:
        """Whether a slice is out of reach of what is known: a long silence, or a clock that jumped.

        Without this, a clock that jumps and comes back would stretch every mask over the jump.
        """
        return self.newest_step is not None and abs(period.last - self.newest_step) > kept

    def _rebase(self, base: int) -> None:
        """Move the step of bit 0; equal facts stay one object."""
        moved: dict[int, Facts] = {}
        same: dict[Facts, Facts] = {}
        up = base - self._base
        former = [one for row in self._rows.values() for one in row.facts]
        for facts in former:
            if facts is not None and id(facts) not in moved:
                new = facts.rebased(up)
                moved[id(facts)] = same.setdefault(new, new)
        for row in self._rows.values():
            row.facts[:] = [None if one is None else moved[id(one)] for one in row.facts]
        self._base = base

    def _forget(self, base: int) -> None:
        """Let go of steps that no period can ask for, of label sets and of devices long gone."""
        kept: dict[DeviceId, _Row] = {}
        for device, row in self._rows.items():
            row.sightings = [one for one in row.sightings if one.last >= base]
            row.unnamed = [one for one in row.unnamed if one.last >= base]
            if row.sightings or row.unnamed:
                kept[device] = row
        self._rows = kept
        self._sightings = {}  # subjects that nobody sends any more are found nowhere else
        self._rebase(base)

    def _forget_everything(self) -> None:
        self._rows, self._columns, self._sightings = {}, {}, {}

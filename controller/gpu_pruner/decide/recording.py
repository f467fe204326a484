"""A recorded history of telemetry as facts: the past of every device, and who was seen holding it.

It takes slices of columns, as a screen has them, in any order, and reads each sample as a screen
does (`facts`), once for each engine threshold that is asked about. It judges nothing: `replay`
does. Bit 0 of every mask is the first step of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from gpu_pruner.decide.facts import NOTHING, Facts, read, read_moves
from gpu_pruner.decide.signals import PRIMARY_ORDER, SIGNALS, active_from
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import (
    Column,
    DeviceId,
    Period,
    SeriesLabels,
    Signal,
    Steps,
)

_UNNAMED = SeriesLabels()
"""Of movement that is asked for by device: it says nothing of who is there."""

Readings: TypeAlias = tuple[Facts, ...]
"""One for each threshold that is asked about; one for all where none of them matters."""


@dataclass(slots=True)
class PastDevice:
    """All that a history says of one device."""

    device: DeviceId
    node: str = ""
    """As the newest series that tells one."""
    model: str = ""
    shared: bool = False
    """Whether any series showed a share of it, at any time."""
    signals: dict[Signal, Readings] = field(default_factory=dict)
    sightings: dict[SeriesLabels, int] = field(default_factory=dict)
    """The steps in which each label set was seen."""

    def facts(self, signal: Signal, threshold: int) -> Facts | None:
        """Return a signal's facts under a threshold, by its number; None where never exported."""
        readings = self.signals.get(signal)
        if readings is None:
            return None
        return readings[threshold] if len(readings) > 1 else readings[0]

    def seen_primary(self) -> int:
        """Return the steps in which, or in the step before, a primary signal had a sample."""
        seen = 0
        for signal in PRIMARY_ORDER:
            seen |= (self.facts(signal, 0) or NOTHING).present
        return seen | seen << 1


class Recording:
    """The history of all devices, being put together."""

    def __init__(self, period: Period, rules: tuple[Rules, ...]) -> None:
        """Begin with nothing.

        Args:
            period: all of it.
            rules: one for each engine threshold; alike in all else that matters to a sample.
        """
        self.period = period
        self._rules = rules
        self._devices: dict[DeviceId, PastDevice] = {}
        self._parts: dict[tuple[DeviceId, Signal], list[tuple[int, Readings]]] = {}
        self._newest: dict[DeviceId, int] = {}

    def absorb(self, part: Period, columns: Iterable[Column]) -> None:
        """Add the columns of some steps.

        Args:
            part: these steps; what the columns say of others is left out.
            columns: as of a screen.
        """
        up = part.first - self.period.first
        for column in columns:
            known: dict[int, tuple[Steps, Readings]] = {}
            look = self._reader(column, part)
            for subject, steps in column.series:
                found = known.get(id(steps))
                if found is None:  # most devices of a slice say the same: read once
                    found = known[id(steps)] = steps, look(steps)
                readings = found[1]
                key = (subject.device, column.signal)
                self._parts.setdefault(key, []).append((up, readings))
                seen = readings[0].changes if column.moves else readings[0].present
                if seen and subject.labels != _UNNAMED:
                    self._see(subject.device, subject.labels, seen << up)

    def devices(self) -> tuple[PastDevice, ...]:
        """Return every device with all that was added, in the order of their names."""
        for (device, signal), parts in self._parts.items():
            past = self._devices.setdefault(device, PastDevice(device))
            past.signals[signal] = tuple(
                _joined((up, readings[number]) for up, readings in parts)
                for number in range(len(parts[0][1]))
            )
        return tuple(self._devices[one] for one in sorted(self._devices))

    def _reader(self, column: Column, part: Period) -> Callable[[Steps], Readings]:
        signal, base = column.signal, part.first
        inside = (1 << part.steps) - 1
        rules = self._rules if signal is Signal.ENGINE else self._rules[:1]

        def look(steps: Steps) -> Readings:
            if column.moves:
                return (_cut(read_moves(steps, base=base), inside),)
            return tuple(
                _cut(
                    read(
                        steps,
                        base=base,
                        rule=SIGNALS[signal],
                        active_from=active_from(signal, one),
                    ),
                    inside,
                )
                for one in rules
            )

        return look

    def _see(self, device: DeviceId, labels: SeriesLabels, seen: int) -> None:
        past = self._devices.setdefault(device, PastDevice(device))
        past.sightings[labels] = past.sightings.get(labels, 0) | seen
        past.shared = past.shared or bool(labels.replica)
        newest = seen.bit_length()
        if newest >= self._newest.get(device, 0) and (labels.node or labels.model):
            self._newest[device] = newest
            past.node, past.model = labels.node or past.node, labels.model or past.model


def _cut(facts: Facts, inside: int) -> Facts:
    return Facts(
        facts.present & inside,
        facts.active & inside,
        facts.invalid & inside,
        facts.loud & inside,
        facts.changes & inside,
    )


def _joined(parts: Iterable[tuple[int, Facts]]) -> Facts:
    total = NOTHING
    for up, facts in parts:
        total |= facts.rebased(-up)
    return total

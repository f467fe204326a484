"""Evidence as people look at it: lines for a plot, and what would have counted as work.

It answers what each signal of a device read, step by step with its holes, and which signals could
have kept the workload, whether they are exported or not. It never judges: the verdict is
`device`'s. Whoever explains a decision (`explain`, the API) calls it with the tracks and the
evidence of a verification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isinf

from gpu_pruner.decide.device import relevant
from gpu_pruner.decide.power import idle_watts
from gpu_pruner.decide.signals import ANYTHING, LIVENESS_ORDER, SIGNALS, Role, active_from
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period, Signal, Track
from gpu_pruner.model.units import Timestamp

UNITS: Mapping[Signal, str] = {
    Signal.ENGINE: "ratio",
    Signal.SM: "ratio",
    Signal.TENSOR: "ratio",
    Signal.DRAM: "ratio",
    Signal.UTIL: "",
    Signal.ENCODER: "%",
    Signal.DECODER: "%",
    Signal.JPEG: "%",
    Signal.OFA: "%",
    Signal.COPY: "%",
    Signal.PCIE: "B/s",
    Signal.NVLINK: "B/s",
    Signal.POWER: "W",
    Signal.ENERGY: "J",
    Signal.TEMPERATURE: "°C",
    Signal.MEMORY: "B",
    Signal.XID: "",
}
"""Unit of each signal's values, as `model.signals.Signal` tells them; empty where there is none, or
where nobody knows the exporter's scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One signal of one device over a period, for a plot."""

    signal: Signal
    metrics: tuple[str, ...]
    """Names as exported, sorted; several where an exporter changed its names meanwhile."""
    points: tuple[tuple[Timestamp, float | None], ...]
    """(end of the step, highest valid value), one per step of the period; None is a hole."""
    garbage: tuple[Timestamp, ...] = ()
    """Ends of the steps with a value that is not a number or out of range."""
    counts_from: float | None = None
    """Value from which on a step counts as work, in the signal's unit; None: no value does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A signal that could have spoken for the workload."""

    signal: Signal
    word: str
    """For people, for example ``encoder``."""
    role: Role
    metric: str
    """Name as exported; empty where the device does not export it."""
    counts: str
    """What of it counts, for example ``from 0.01``, ``above 0`` or ``any change``."""


def lines(
    device: DeviceId, tracks: Iterable[Track], *, period: Period, rules: Rules
) -> tuple[Line, ...]:
    """Return what there is to plot of one device.

    Args:
        device: a slice also shows energy, power and temperature of its board.
        tracks: of a verification; those of other devices are left out.
        period: which steps to show.
        rules: for the threshold of the engine.

    Returns:
        One line per exported signal, in the order of `Signal`.
    """
    found: dict[Signal, list[Track]] = {}
    for track in tracks:
        of_board = track.device == device.board and track.signal in LIVENESS_ORDER
        if track.device == device or of_board:
            found.setdefault(track.signal, []).append(track)
    return tuple(_line(found[one], period, rules=rules) for one in Signal if one in found)


def _line(tracks: list[Track], period: Period, *, rules: Rules) -> Line:
    signal = tracks[0].signal
    rule, threshold = SIGNALS[signal], active_from(signal, rules)
    highest: dict[int, float] = {}
    garbage: set[int] = set()
    for track in tracks:
        for step, value in track.steps:
            if not period.first <= step <= period.last:
                continue
            if rule.lowest <= value <= rule.highest:
                highest[step] = max(value, highest.get(step, value))
            else:
                garbage.add(step)
    width = period.step_seconds
    return Line(
        signal=signal,
        metrics=tuple(sorted({track.metric for track in tracks})),
        points=tuple(
            ((step + 1) * width, highest.get(step)) for step in range(period.first, period.last + 1)
        ),
        garbage=tuple((step + 1) * width for step in sorted(garbage)),
        counts_from=None if isinf(threshold) else threshold,
    )


def witnesses(evidence: DeviceEvidence, rules: Rules) -> tuple[Witness, ...]:
    """Return every signal that can show work or life on this device, exported or not.

    Signals that mean nothing on it (utilisation of a slice) are left out.
    """
    exported = {one.signal: one.metric for one in relevant(evidence)}
    silent = {one.signal for one in evidence.signals} - exported.keys()
    return tuple(
        Witness(
            signal=signal,
            word=rule.word,
            role=rule.role,
            metric=exported.get(signal, ""),
            counts=_counts(signal, rules),
        )
        for signal, rule in SIGNALS.items()
        if rule.role is not Role.NONE and signal not in silent
    )


def _counts(signal: Signal, rules: Rules) -> str:
    least = active_from(signal, rules)
    if isinf(least):
        return "any change"
    return "above 0" if least == ANYTHING else f"from {least:g}"


def what_counts(evidence: DeviceEvidence, rules: Rules) -> str:
    """Say what would have counted as work, and what nobody could see.

    Returns:
        For example ``Any of these would have counted: engine from 0.01, utilisation above 0. Not
        exported, so not seen: encoder, decoder. A mean power above 160 W would have been doubted``.
    """
    can = [one for one in witnesses(evidence, rules) if one.role is not Role.LIVENESS]
    there = ", ".join(f"{one.word} {one.counts}" for one in can if one.metric)
    missing = ", ".join(one.word for one in can if not one.metric)
    told = f"Any of these would have counted: {there}" if there else "Nothing could have counted"
    told = f"{told}. Not exported, so not seen: {missing}" if missing else told
    return f"{told}. {_power(evidence)}"


def _power(evidence: DeviceEvidence) -> str:
    """Say what its energy could have told against a device, and why it could not."""
    most = idle_watts(evidence.model)
    if evidence.device.mig_instance or evidence.shared:
        return "Its board's power says nothing about it"
    if evidence.of(Signal.ENERGY) is None:
        return "Its energy is not exported"
    if most is None:
        return "What its model draws without work is not known, so its energy says nothing of work"
    return f"A mean power above {most:g} W would have been doubted"

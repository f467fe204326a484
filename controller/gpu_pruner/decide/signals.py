"""What each signal can say about work: one table, one row per signal.

It answers which part a signal plays in a verdict, which values are possible, and from which value
on a step counts as work. It never looks at series. `facts` reads it for every sample; a new signal
is a new row here.

Sources: `docs/explanation/deciding.md`; the ranges are those of DCGM's fields in the unit of
`model.signals.Signal`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import Signal


class Role(Enum):
    """Which part a signal plays in a verdict."""

    PRIMARY = "primary"
    """Quiet over the whole window, it can prove idleness; loud, it proves work."""
    ACTIVITY = "activity"
    """It can only prove work."""
    LIVENESS = "liveness"
    """Its movement shows that the telemetry is alive; its value proves nothing."""
    NONE = "none"
    """Kept for people."""


@dataclass(frozen=True, slots=True)
class SignalRule:
    """One row: what a signal can say."""

    role: Role
    word: str
    """How sentences for people call it."""
    lowest: float = 0.0
    """Values below are garbage."""
    highest: float = math.inf
    """Values above are garbage; a finite limit also refuses infinity."""
    active_from: float = math.inf
    """A valid value at or above counts as work; infinity: no value does."""
    loud_from: float = math.inf
    """A valid UTIL at or above contradicts an idle ENGINE, and a valid XID is an error; infinity:
    no value is."""
    counts_changes: bool = False
    """Whether it matters that the value moves."""


ANYTHING = math.ulp(0.0)
"""The smallest value above 0: for signals of which only exactly 0 is quiet, at any scale."""

_FASTEST = 1e13
"""Bytes per second: above any link that there is."""

SIGNALS: dict[Signal, SignalRule] = {
    # 0.01 above 1 is measured on healthy GPUs (the device value exceeds the sum of its slices).
    # The threshold is `Rules.idle_threshold`.
    Signal.ENGINE: SignalRule(Role.PRIMARY, "engine", highest=1.1),
    # Single-stream decoding on an H100 shows 0.036; idle samples are exactly 0.
    Signal.SM: SignalRule(Role.PRIMARY, "SM", highest=1.1, active_from=0.001),
    Signal.TENSOR: SignalRule(Role.ACTIVITY, "tensor", highest=1.1, active_from=0.001),
    # The driver itself touches memory now and then, hence the wider margin.
    Signal.DRAM: SignalRule(Role.ACTIVITY, "DRAM", highest=1.1, active_from=0.005),
    # The scale is unknown (0-100, or 0-1), so only exactly 0 is quiet. 1-4 can be a polling tool.
    Signal.UTIL: SignalRule(
        Role.PRIMARY, "utilisation", highest=100.0, active_from=ANYTHING, loud_from=5.0
    ),
    Signal.ENCODER: SignalRule(Role.ACTIVITY, "encoder", highest=100.0, active_from=ANYTHING),
    Signal.DECODER: SignalRule(Role.ACTIVITY, "decoder", highest=100.0, active_from=ANYTHING),
    Signal.JPEG: SignalRule(Role.ACTIVITY, "JPEG", highest=100.0, active_from=ANYTHING),
    Signal.OFA: SignalRule(Role.ACTIVITY, "optical flow", highest=100.0, active_from=ANYTHING),
    Signal.COPY: SignalRule(Role.ACTIVITY, "memory copy", highest=100.0, active_from=ANYTHING),
    # The ranges below leave room for any hardware, and none for the blanks that older exporters
    # print where a reading is missing: 2^31, 2^47 and 2^63, each less a few.
    # Idle chatter of 10^4 to 10^5 bytes per second is seen on idle pods.
    Signal.PCIE: SignalRule(Role.ACTIVITY, "PCIe", highest=_FASTEST, active_from=10e6),
    Signal.NVLINK: SignalRule(Role.ACTIVITY, "NVLink", highest=_FASTEST, active_from=10e6),
    # A context without work draws up to 110 W, light work 135 W: watts prove nothing.
    Signal.POWER: SignalRule(Role.LIVENESS, "power", highest=1e4, counts_changes=True),
    Signal.ENERGY: SignalRule(Role.LIVENESS, "energy", highest=1e12, counts_changes=True),
    Signal.TEMPERATURE: SignalRule(
        Role.LIVENESS, "temperature", highest=200.0, counts_changes=True
    ),
    Signal.MEMORY: SignalRule(Role.NONE, "memory", highest=1e13),
    # The last code, never reset by the exporter; 0 is none.
    Signal.XID: SignalRule(Role.NONE, "Xid", highest=1e6, loud_from=1.0, counts_changes=True),
}

LIVENESS_ORDER: tuple[Signal, ...] = (Signal.ENERGY, Signal.POWER, Signal.TEMPERATURE)
"""The first of these that a device exports must move; the others do not stand in for it."""

PRIMARY_ORDER: tuple[Signal, ...] = (Signal.ENGINE, Signal.SM, Signal.UTIL)
"""The first of these that a device exports must cover the window."""


def active_from(signal: Signal, rules: Rules) -> float:
    """Return the value from which on a step of this signal counts as work, in the signal's unit."""
    if signal is Signal.POWER and rules.power_threshold_watts is not None:
        return math.nextafter(rules.power_threshold_watts, math.inf)
    return rules.idle_threshold if signal is Signal.ENGINE else SIGNALS[signal].active_from

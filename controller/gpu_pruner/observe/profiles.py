"""Which exported metric means what: the one table of metric names, scales and uses.

A new exporter generation is new rows, nothing else. Names that are not in the table are never
guessed at. Read by both telemetry sources; holds no behaviour and makes no queries.

Source of names and scales: NVIDIA's dcgm-exporter, fields of the counters files it ships.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gpu_pruner.model.signals import Signal


class Use(StrEnum):
    """What a signal is asked for; decides whether the screen needs it."""

    ACTIVITY = "activity"
    """May show work. Always screened."""
    LIVENESS = "liveness"
    """Shows that the reading moves. Screened where it covers devices that a better one does not."""
    CONTEXT = "context"
    """Read by verify only."""


USES: Mapping[Signal, Use] = {
    Signal.ENERGY: Use.LIVENESS,
    Signal.POWER: Use.LIVENESS,
    Signal.TEMPERATURE: Use.LIVENESS,
    Signal.MEMORY: Use.CONTEXT,
    Signal.XID: Use.CONTEXT,
}
"""Signals that are not listed are activity."""

LIVENESS_ORDER = (Signal.ENERGY, Signal.POWER, Signal.TEMPERATURE)
"""Best first: energy integrates, power and temperature only sample."""

MIB = float(2**20)


@dataclass(frozen=True, slots=True)
class Field:
    """One metric name as exported."""

    metric: str
    signal: Signal
    scale: float = 1.0
    """Exported value x scale = value in the unit of the `Signal`."""

    @property
    def use(self) -> Use:
        """Return what the field's signal is asked for."""
        return USES.get(self.signal, Use.ACTIVITY)


DCGM: tuple[Field, ...] = (
    Field("DCGM_FI_PROF_GR_ENGINE_ACTIVE", Signal.ENGINE),
    Field("DCGM_FI_PROF_SM_ACTIVE", Signal.SM),
    Field("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Signal.TENSOR),
    Field("DCGM_FI_PROF_DRAM_ACTIVE", Signal.DRAM),
    Field("DCGM_FI_DEV_GPU_UTIL", Signal.UTIL),
    Field("DCGM_FI_DEV_ENC_UTIL", Signal.ENCODER),
    Field("DCGM_FI_DEV_DEC_UTIL", Signal.DECODER),
    Field("DCGM_FI_DEV_POWER_USAGE", Signal.POWER),
    Field("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Signal.ENERGY, scale=1e-3),
    Field("DCGM_FI_DEV_GPU_TEMP", Signal.TEMPERATURE),
    Field("DCGM_FI_DEV_FB_USED", Signal.MEMORY, scale=MIB),
    Field("DCGM_FI_DEV_XID_ERRORS", Signal.XID),
)
"""Classic names, exporter 2.x to 4.8. Energy is exported in millijoules, memory in mebibytes."""

FIELDS: tuple[Field, ...] = DCGM
"""Every field that is asked for, in the order of the requests."""

BY_METRIC: Mapping[str, Field] = {field.metric: field for field in FIELDS}

"""What the ledger knows of GPU hours, as values.

A module of its own, so that reading it loads no database. `record.ledger.usage` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.model.units import Seconds, Timestamp

PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """GPU seconds of one workload on one model in one state."""

    namespace: str
    workload: str
    """``kind/namespace/name``."""
    root_uid: str
    owner: str
    model: str
    """Of a pause: that of the GPUs it held before; empty where nothing tells."""
    state: str
    seconds: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """Pauses of one workload that somebody called wrong."""

    namespace: str
    workload: str
    """``kind/namespace/name``."""
    owner: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the ledger knows of a stretch of time."""

    begin: Timestamp
    end: Timestamp
    first_cycle_at: Timestamp | None
    """When the first cycle within it began; None where there is none."""
    uses: tuple[Use, ...]
    wrong: tuple[Wrong, ...] = ()
    """Called wrong within it, whenever the pause was."""

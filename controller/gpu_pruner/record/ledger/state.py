"""How the ledger is doing, for metrics.

A module of its own, so that reading it loads no database.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.model.units import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """As of the last cycle that was taken."""

    backlog: int = 0
    """Cycles that are kept, in the spool or in memory, and not in the database yet."""
    in_memory: int = 0
    """Those of them that a crash would lose."""
    last_success_at: Timestamp | None = None
    """When a cycle was stored last; None before the first."""
    failures: int = 0
    """Attempts to store that failed."""
    lost: int = 0
    """Cycles that are in no database and never will be."""

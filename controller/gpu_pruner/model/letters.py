"""What is to be told: one letter for each thing that somebody has to hear of in a cycle.

`loop` writes them from a finished plan, `notify` puts them into words and delivers them.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.model.orders import MessageKind
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.workload import RootRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One thing to tell about one workload."""

    root: RootRef
    kind: MessageKind
    decision: Decision | None
    """What it is about; None for a workload that is gone, of which only the end is told."""
    only: frozenset[str] | None = None
    """Channels to tell; None for every one that takes its kind."""

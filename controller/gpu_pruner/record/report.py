"""One finished cycle as a value: what was decided, ordered, told, and how it ended.

`loop` makes one after each cycle, also after one that failed; `record.board` keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpu_pruner.model.orders import Delivery, Outcome
from gpu_pruner.model.plan import Decision, Plan
from gpu_pruner.model.snapshot import Breaker
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.model.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a cycle asked of the telemetry source."""

    query_successes: int = 0
    """Screens and verifications that were answered completely."""
    query_failures: int = 0
    """Screens and verifications that failed or were partial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """What one cycle did."""

    number: int
    """Counted from 1 since this process started."""
    started_at: Timestamp
    finished_at: Timestamp
    plan: Plan | None = None
    """None where the cycle ended before there was one; `failure` then says why."""
    outcomes: tuple[Outcome, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    breakers: tuple[Breaker, ...] = ()
    """Of the plan, or, where there is none, what kept the cycle from planning."""
    counts: Counts = Counts()
    telemetry_available: bool = True
    """Whether the cycle's screen was answered."""
    failure: str = ""
    """Why the cycle did not come to its end; empty where it did."""
    leading: bool = True
    """Whether this replica led; one that only looks on orders nothing and counts nothing."""

    @property
    def duration_seconds(self) -> Seconds:
        """Return how long the cycle took; never negative, also when a clock was set back."""
        return max(0.0, self.finished_at - self.started_at)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Return the plan's decisions; empty where there is no plan."""
        return self.plan.decisions if self.plan else ()

    def idle(self) -> Iterator[Decision]:
        """Yield the decisions about workloads that were found idle."""
        return (one for one in self.decisions if one.verdict is Verdict.IDLE)

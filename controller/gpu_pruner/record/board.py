"""The latest cycle as others may read it, and the counters since the start.

Answers: what did the last cycle decide, when, and may this process be called ready. Never decides
and never asks the cluster. `loop` publishes; `serve`, `cli` and `record.metrics` read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpu_pruner.model.snapshot import Breaker
from gpu_pruner.model.units import Timestamp
from gpu_pruner.record.ledger.state import LedgerState
from gpu_pruner.record.reloads import Reloads
from gpu_pruner.record.report import CycleReport
from gpu_pruner.record.totals import Totals


class Board:
    """Holds the newest report, the newest one with a plan, and the totals.

    All access happens on the one event loop, so there is no lock.
    """

    def __init__(self) -> None:
        self._latest: CycleReport | None = None
        self._planned: CycleReport | None = None
        self._breaker_names: set[str] = set()
        self.totals = Totals()
        self.ledger: Callable[[], LedgerState] | None = None
        """Tells how the ledger is doing; None where no history is kept."""
        self.waiting_for = "the first connection"
        """What keeps the first cycle from running, in words; of no interest after it."""
        self.reloads: Reloads | None = None
        """How the settings file was last read; None where there is no file."""
        self.waiting_for = "the cluster"
        """What the first cycle waits for, in words; for `/readyz` before there is a report."""

    def publish(self, report: CycleReport) -> None:
        """Make a finished cycle the latest one, and count it."""
        since = self._latest.started_at if self._latest else None
        if self._latest is not None and not self._latest.leading:
            since = None  # that time was another replica's
        self.totals.add(report, since=since)
        self._breaker_names.update(breaker.name for breaker in report.breakers)
        self._latest = report
        if report.plan is not None:
            self._planned = report

    @property
    def latest(self) -> CycleReport | None:
        """Return the newest report; None before the first cycle ended."""
        return self._latest

    @property
    def planned(self) -> CycleReport | None:
        """Return the newest report that has a plan: what is known of the workloads."""
        return self._planned

    @property
    def leading(self) -> bool:
        """Return whether this replica led in its newest cycle."""
        return self._latest is not None and self._latest.leading

    @property
    def led(self) -> CycleReport | None:
        """Return the newest report with a plan, if this replica leads: the one to count."""
        return self._planned if self.leading else None

    @property
    def ready(self) -> bool:
        """Return whether the last cycle came to its end with a plan."""
        return self._latest is not None and not self._latest.failure and bool(self._latest.plan)

    @property
    def last_cycle_at(self) -> Timestamp | None:
        """Return when the last cycle ended, or None before the first."""
        return self._latest.finished_at if self._latest else None

    @property
    def breakers(self) -> tuple[Breaker, ...]:
        """Return the breakers that hold now."""
        return self._latest.breakers if self._latest else ()

    def breaker_states(self) -> Mapping[str, bool]:
        """Return every breaker that was ever seen, and whether it holds now."""
        holding = {breaker.name for breaker in self.breakers}
        return {name: name in holding for name in sorted(self._breaker_names)}

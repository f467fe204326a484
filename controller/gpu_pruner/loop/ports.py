"""What the cycle needs of the I/O stages. Each has one real implementation, named beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpu_pruner.model.book import Book
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.letters import Letter
from gpu_pruner.model.orders import Delivery, Outcome, PauseOrder
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.units import Timestamp
from gpu_pruner.model.workload import RootRef
from gpu_pruner.record.report import CycleReport


class Cluster(Protocol):
    """`observe.cluster.ClusterWatch`."""

    def view(self) -> ClusterView:
        """Return the newest known state of everything that is watched."""
        ...


class Hubs(Protocol):
    """`observe.hubs.HubWatch`."""

    async def look(self) -> None:
        """Ask every JupyterHub which servers are active."""
        ...

    def laid_over(self, view: ClusterView) -> ClusterView:
        """Return a view in which JupyterHub servers own their pods, as of the last look."""
        ...


class Notifier(Protocol):
    """`notify.notifier.Notifier`."""

    async def deliver(
        self, letters: Sequence[Letter], *, warned: frozenset[RootRef]
    ) -> tuple[Delivery, ...]:
        """Tell people; an empty `via` means that nobody was reached.

        Args:
            letters: of this cycle.
            warned: workloads whose warning still runs: only theirs may be sent again.
        """
        ...


class Actor(Protocol):
    """`act.actor.Actor`."""

    async def write_book(self, decision: Decision, book: Book) -> Outcome:
        """Write the GPUWorkload's status, creating the object where there is none."""
        ...

    async def pause(
        self,
        order: PauseOrder,
        book: Book | None = None,
        *,
        verified_at: Timestamp | None = None,
        max_age_seconds: float | None = None,
    ) -> Outcome:
        """Pause the root, reversibly, with the record in the same patch."""
        ...

    async def restore(self, root: RootRef, *, by: str, why: str) -> Outcome:
        """Give back exactly what was taken."""
        ...


class Term(Protocol):
    """`kube.lease_elector.Term`: one stretch of leading without a break."""

    @property
    def began_at(self) -> Timestamp:
        """Return when it began."""
        ...

    @property
    def last_cycle_at(self) -> Timestamp | None:
        """Return when a leader last completed a cycle before it; None where nobody knows."""
        ...


class Leadership(Protocol):
    """`kube.lease_elector.Elector`, or `loop.alone.Alone` for a single pass."""

    def begin_cycle(self) -> Term | None:
        """Return the term that holds now; None where another replica leads.

        Writes of the cycle that begins go out within that term only.
        """
        ...

    def complete_cycle(self, term: Term, at: Timestamp) -> None:
        """Note that a leader's cycle came to its end."""
        ...


class History(Protocol):
    """`record.ledger.writer.Ledger`."""

    def record(self, report: CycleReport) -> None:
        """Have a finished cycle written down. Never waits, never raises."""
        ...


class Switch(Protocol):
    """`observe.hold.HoldSwitch`."""

    async def hold(self) -> str:
        """Return why everything is held; empty where it is not."""
        ...

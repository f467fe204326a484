"""Since when nobody has looked after the clocks of warnings: the time before a term of ours.

While nobody led, nobody would have seen a keep, or work on the GPUs, so that time must not count as
notice. Every warning that is older than the term stands still since the last completed cycle,
until its book is written in this term; `decide.clock` moves the deadline, or gives the warning
anew. Called by `loop.cycle`; it never writes.

Source: ARCHITECTURE section 6, freeze.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpu_pruner.loop.ports import Term
from gpu_pruner.model.book import Phase
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.model.units import Timestamp


@dataclass(slots=True)
class Absence:
    """Remembers, within one term, whose book was written already."""

    _term: Term | None = None
    _written: set[str] = field(default_factory=set)
    """Root uids."""

    def unattended(self, view: ClusterView, term: Term | None) -> Mapping[str, Timestamp]:
        """Return since when each warning has been unattended, by root uid.

        Where nobody knows when a cycle was last completed, it is since the warning itself.

        Args:
            view: the cluster, with its books.
            term: the term of the cycle; None for a replica that only looks on.
        """
        if term is not self._term:
            self._term, self._written = term, set()
        if term is None:
            return {}
        return {
            uid: max(kept.book.warned_at, term.last_cycle_at or kept.book.warned_at)
            for uid, kept in view.books.items()
            if kept.book.phase is Phase.WARNED
            and kept.book.warned_at is not None
            and kept.book.warned_at < term.began_at
            and uid not in self._written
        }

    def remember(self, outcomes: Iterable[Outcome]) -> None:
        """Take note of the books that were written."""
        self._written |= {one.root.uid for one in outcomes if one.result is Result.DONE}

"""Which workloads could not be paused when it was tried last.

They are tried again, but after all others: an attempt, like a measurement for one, takes room of
the budget whatever becomes of it, and one that always fails must not keep its whole namespace from
its turn. Called by `loop.cycle`; forgotten with the process, for only the order is lost then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gpu_pruner.model.book import Phase
from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.model.plan import Decision, Plan
from gpu_pruner.model.snapshot import Snapshot


@dataclass(slots=True)
class Refusals:
    """Remembers roots by uid."""

    _uids: set[str] = field(default_factory=set)

    def remember(self, outcomes: Iterable[Outcome]) -> None:
        """Take note of the pauses that were tried in a cycle."""
        for one in outcomes:
            if one.action != "pause":
                continue
            if one.result in {Result.DONE, Result.DRY_RUN}:
                self._uids.discard(one.root.uid)
            else:
                self._uids.add(one.root.uid)

    def remember_unproven(self, asked: Iterable[Decision], decided: Plan) -> None:
        """Take note of what was due, and is still only warned after it was measured.

        Args:
            asked: decisions of the first plan that asked for a measurement.
            decided: the second plan, which knew it.
        """
        due = {one.workload.root.uid for one in asked if one.workload.book.phase is Phase.WARNED}
        self._uids |= {
            one.workload.root.uid
            for one in decided.decisions
            if one.workload.root.uid in due and one.book.phase is Phase.WARNED
        }

    def marked(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with these workloads marked; those that are gone are forgotten."""
        self._uids &= {one.root.uid for one in snapshot.workloads}
        if not self._uids:
            return snapshot
        marked = tuple(
            replace(one, tried_last=True) if one.root.uid in self._uids else one
            for one in snapshot.workloads
        )
        return replace(snapshot, workloads=marked)

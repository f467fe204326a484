"""Where workloads stood a cycle ago, to tell a change from a repetition.

The decision log and the ledger each keep one: they say something when a workload's standing
changes, and nothing while it does not. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from gpu_pruner.model.plan import Action, Decision, Plan

Standing: TypeAlias = tuple[str, str, str]
"""Phase, verdict and reason: what must change for it to be told."""

_NOTHING_HAPPENS = frozenset({Action.NONE, Action.VERIFY})


def standing(decision: Decision) -> Standing:
    """Return where a workload stands after this decision."""
    return decision.book.phase.value, decision.verdict.value, decision.reason.value


class Standings:
    """Each workload's standing in the plan before. Workloads that a plan lacks are forgotten."""

    def __init__(self) -> None:
        self._standings: dict[str, Standing] = {}

    def changes(self, plan: Plan) -> Iterator[tuple[Decision, Standing | None]]:
        """Yield every decision that is news, with the standing before; None where it is new."""
        before, self._standings = self._standings, {}
        for decision in plan.decisions:
            key = decision.workload.root.uid or decision.workload.root.ref
            now = standing(decision)
            self._standings[key] = now
            if before.get(key) != now or decision.action not in _NOTHING_HAPPENS:
                yield decision, before.get(key)

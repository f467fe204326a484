"""A single pass competes with nobody: it always leads.

What it writes has the resourceVersions of what it read as preconditions, like everything that we
write, so that a pass beside a running controller does nothing twice. Time between two passes is
notice, because passes may be all there is. Called by `cli`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.loop.ports import Term
from gpu_pruner.model.units import Timestamp


@dataclass(frozen=True, slots=True)
class _Always:
    """A term that only the warnings of a controller are older than."""

    began_at: Timestamp
    last_cycle_at: Timestamp | None


@dataclass(frozen=True, slots=True)
class Alone:
    """Leads without a Lease."""

    last_cycle_at: Timestamp | None = None
    """When a controller last completed a cycle; None where none ever ran."""

    def begin_cycle(self) -> Term | None:
        """Return the one term; warnings from before the controller's end have been unattended."""
        last = self.last_cycle_at
        return _Always(float("-inf") if last is None else last, last)

    def complete_cycle(self, term: Term, at: Timestamp) -> None:
        """Note nothing: there is nobody to tell."""

"""The request log of the simulated API server: what was really asked of it, by whom.

Imitates the audit log of a real server, and like it is the oracle of tests and of the demo: what
a controller *did* is read here, never from what it says. Requests of exporters are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.model.units import Timestamp

WRITE_VERBS = frozenset({"create", "update", "patch", "delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One answered request."""

    at: Timestamp
    """Simulated Unix seconds when it was answered; of a watch, when it began."""
    user: str
    """Empty for a token that nobody has."""
    verb: str
    """``get``, ``list``, ``watch``, ``create``, ``update``, ``patch`` or ``delete``."""
    method: str
    path: str
    query: str
    status: int
    """HTTP status; 0 where the connection was cut without one."""
    body: bytes
    """What the client sent."""
    group: str = ""
    resource: str = ""
    """Plural; empty for discovery and health."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False

    @property
    def is_write(self) -> bool:
        """Tell whether it changed something: a write that was accepted and no dry run."""
        accepted = 200 <= self.status < 300  # noqa: PLR2004 - the range of success in HTTP
        return self.verb in WRITE_VERBS and accepted and not self.dry_run

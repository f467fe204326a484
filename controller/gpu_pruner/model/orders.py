"""What the I/O stages are told to do, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpu_pruner.model.snapshot import Workload
from gpu_pruner.model.workload import RootRef


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseOrder:
    """Pause one root, with its reason. Made from a `Decision`, or from a person's command."""

    root: RootRef
    """An empty uid means: whatever object has that name now (a person's command)."""
    decision_id: str
    why: str
    """The sentence with the evidence; it goes into the pause record."""
    by: str = "gpu-pruner"
    decided_on: Workload | None = None
    """The workload as the decision knew it; None for a person's command."""


class Result(StrEnum):
    """How an order or a delivery ended."""

    DONE = "done"
    DRY_RUN = "dry-run"
    REFUSED = "refused"
    """A last check said no; nothing was changed."""
    CONFLICT = "conflict"
    """The object changed meanwhile; dropped, to be decided again."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one order ended."""

    root: RootRef
    action: str
    result: Result
    detail: str = ""


class MessageKind(StrEnum):
    """What a message to an owner is about."""

    WARNING = "warning"
    REMINDER = "reminder"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Which channels confirmed a message. Empty `via` means that nobody was reached."""

    root: RootRef
    kind: MessageKind
    via: tuple[str, ...] = ()
    detail: str = ""

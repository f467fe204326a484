"""What the I/O stages are told to do, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
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


class Severity(StrEnum):
    """How much a message asks of whoever reads it."""

    INFO = "info"
    """News: nothing has to be done."""
    WARNING = "warning"
    """Something happens unless somebody does something."""


SEVERITIES: Mapping[MessageKind, Severity] = {
    MessageKind.WARNING: Severity.WARNING,
    MessageKind.REMINDER: Severity.WARNING,
    MessageKind.CANCELLED: Severity.INFO,
    MessageKind.PAUSED: Severity.INFO,
    MessageKind.RESTORED: Severity.INFO,
}
"""The severity of each kind of message."""

CLOSING = frozenset({MessageKind.CANCELLED, MessageKind.PAUSED, MessageKind.RESTORED})
"""Messages with which a matter ends: nothing is to be done about it any more."""

EVENT = "event"
"""Name of the channel that every message leaves something in: a Kubernetes Event on the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why one channel did not confirm a message."""

    channel: str
    why: str
    """One sentence, without its full stop and without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of one message in every channel that takes it."""

    root: RootRef
    kind: MessageKind
    via: tuple[str, ...] = ()
    """Channels that confirmed it, in the order of the settings."""
    holding: tuple[str, ...] = ()
    """Those of them that hold an alert open until the matter ends."""
    failures: tuple[Failure, ...] = ()
    """Channels that did not."""
    detail: str = ""
    """Why nobody was reached, where no channel failed and yet none could confirm."""
    is_repeat: bool = False
    """Whether it was tried before, in an earlier cycle, and not confirmed by these channels."""

    def reached(self, counting: frozenset[str]) -> bool:
        """Whether it arrived where an arrival counts.

        Args:
            counting: channels whose confirmation means that a person or a team was told.
        """
        return not counting.isdisjoint(self.via)

    @property
    def problem(self) -> str:
        """Return what failed, in one sentence; empty where nothing did."""
        told = [f"{one.channel}: {one.why}" for one in self.failures]
        return "; ".join([self.detail, *told] if self.detail else told)

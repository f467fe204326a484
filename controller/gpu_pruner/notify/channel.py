"""The port to people: what every channel offers, and what it gets.

Answers what a message is handed over with. A channel decides nothing: it takes a message to
somebody and says whether that was confirmed, or why not. `notify.notifier` calls it; one module
beside this one for each way to tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpu_pruner.model.audience import AddressKind
from gpu_pruner.model.orders import SEVERITIES, MessageKind, Severity
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.units import Seconds
from gpu_pruner.notify.messages import Message


@dataclass(frozen=True, slots=True)
class Audience:
    """Who a message is for, as far as anybody knows."""

    owner: str = ""
    """One e-mail address, or names in one line; foreign words; empty where nobody is named."""


class Channel(Protocol):
    """One way to tell people."""

    @property
    def name(self) -> str:
        """Return its name in the settings, in warnedVia and in metrics."""
        ...

    @property
    def timeout_seconds(self) -> Seconds | None:
        """Return the longest wait for one confirmation; None where it bounds itself."""
        ...

    @property
    def holds_alerts(self) -> bool:
        """Return whether a warning stays open there until a message of `CLOSING` comes."""
        ...

    def takes(self, kind: MessageKind) -> bool:
        """Return whether messages of this kind go through it."""
        ...

    async def send(self, message: Message, to: Audience) -> str:
        """Send one message; safe to repeat, because `Message.key` is the same then.

        Returns:
            What confirmed it, in a few words.

        Raises:
            NotificationError: it was not confirmed, with the reason in one sentence and without
                secrets. It may have arrived all the same.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True)
class Taking:
    """Which messages a channel of the settings takes."""

    messages: frozenset[MessageKind]
    least: Severity

    def __contains__(self, kind: object) -> bool:
        """Return whether it takes messages of a kind."""
        if not isinstance(kind, MessageKind) or kind not in self.messages:
            return False
        return self.least is Severity.INFO or SEVERITIES[kind] is Severity.WARNING


def audience_of(decision: Decision | None) -> Audience:
    """Return who is to be told: the first with an e-mail address, else all by their names."""
    if decision is None:
        return Audience()
    found = decision.workload.audience
    mails = (one.address for one in found.people if one.address.kind is AddressKind.EMAIL)
    first = next(mails, None)
    return Audience(found.names if first is None else first.text)

"""Delivering a message to an owner, and saying truthfully whether it arrived.

Answers which channels confirmed a message. The one channel so far is a Kubernetes Event on the
root: stored means delivered. The log line beside it reaches operators, not owners, so it does not
count. Never decides, never raises for a message that could not be delivered. Called by `loop`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec
import structlog

from gpu_pruner.errors import ClusterError, Conflict
from gpu_pruner.kube.events import EventType, event_body
from gpu_pruner.kube.resources import EVENTS, Resource
from gpu_pruner.kube.wire import Bare
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.orders import Delivery, MessageKind
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.notify.messages import Message, message_for

EVENT_CHANNEL = "event"
"""What `Delivery.via` says for a stored Kubernetes Event."""


class EventStore(Protocol):
    """What the notifier needs of `kube.client.ClusterClient`."""

    async def create(
        self, resource: Resource, body: Mapping[str, object], *, namespace: str = ""
    ) -> bytes:
        """Create an object; `Conflict` where one of that name exists."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, object],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bytes:
        """Merge-patch an object."""
        ...


class Notifier:
    """Tells owners through Kubernetes Events."""

    def __init__(self, client: EventStore, *, clock: Clock, mode: Mode) -> None:
        self._client = client
        self._clock = clock
        self._mode = mode
        self._log = structlog.get_logger("gpu_pruner.notify")

    async def deliver(self, decision: Decision, kind: MessageKind) -> Delivery:
        """Tell the owner of a workload, once.

        Args:
            decision: what was decided.
            kind: what the message is about.

        Returns:
            The channels that confirmed; none where nobody was reached, and then why.
        """
        root = decision.workload.root
        now = self._clock.now()
        mode = self._mode_of(decision)
        message = message_for(decision, kind, mode=mode, now=now)
        try:
            await self._store(decision, message, now=now)
        except ClusterError as error:
            delivery = Delivery(root=root, kind=kind, detail=f"the Event was not stored: {error}")
        else:
            delivery = Delivery(root=root, kind=kind, via=(EVENT_CHANNEL,))
        self._log.info(
            "message",
            ref=root.ref,
            kind=kind.value,
            via=list(delivery.via),
            text=message.text,
            problem=delivery.detail,
        )
        return delivery

    def _mode_of(self, decision: Decision) -> Mode:
        """Return the mode in words: what is only warned about is told as in a rehearsal."""
        return Mode.DRY_RUN if decision.workload.warn_only else self._mode

    async def _store(self, decision: Decision, message: Message, *, now: Timestamp) -> None:
        """Store the message as an Event, or bring the Event of the same occasion up to date.

        A crash between the delivery and the book's write repeats the message under the same name.
        The deadline in it has moved by then, so the text is replaced: an old one would lie.
        """
        root = decision.workload.root
        body = event_body(
            root,
            message.reason,
            message=message.text,
            at=now,
            event_type=EventType.WARNING if message.urgent else EventType.NORMAL,
            key=f"{self._mode_of(decision).value} {occasion(decision, message.kind)}",
        )
        try:
            await self._client.create(EVENTS, body, namespace=root.namespace)
        except Conflict:
            name = msgspec.convert(body, Bare).metadata.name
            news = {"message": message.text, "lastTimestamp": rfc3339(now)}
            await self._client.patch(EVENTS, name, news, namespace=root.namespace)


def occasion(decision: Decision, kind: MessageKind) -> str:
    """Return what a message is about, in words that stay the same across a crash.

    Returns:
        For a pause, its decision id; for a warning, when the idle spell was first noticed.
    """
    books = (decision.workload.book, decision.book)
    if kind in {MessageKind.PAUSED, MessageKind.RESTORED}:
        pauses = (book.pause for book in books)
        return next((pause.decision for pause in pauses if pause), decision.decision_id)
    spells = (book.nominated_at for book in books)
    # Rounded as a stored book is: the value must not change when it is read back.
    return next((rfc3339(round(at)) for at in spells if at is not None), decision.decision_id)

"""The channel that is always there: a Kubernetes Event on the root.

Stored means confirmed. It reaches whoever looks, so that it counts as having told somebody only
where no other channel does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from gpu_pruner.errors import ClusterError, Conflict, NotificationError
from gpu_pruner.kube.events import EventType, event_body
from gpu_pruner.kube.resources import EVENTS, Resource
from gpu_pruner.kube.wire import Bare
from gpu_pruner.model.orders import EVENT, MessageKind, Severity
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.units import Seconds, rfc3339
from gpu_pruner.notify.channel import Audience
from gpu_pruner.notify.messages import Message


class EventStore(Protocol):
    """What the channel needs of `kube.client.ClusterClient`."""

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


class EventChannel:
    """Stores Events."""

    name = EVENT
    timeout_seconds: Seconds | None = None
    holds_alerts = False

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def takes(self, kind: MessageKind) -> bool:  # noqa: ARG002 - as the port has it
        """Return True: everything leaves an Event."""
        return True

    async def send(self, message: Message, to: Audience) -> str:  # noqa: ARG002 - on the root
        """Store the message as an Event, or bring the Event of the same occasion up to date.

        A crash between the delivery and the book's write repeats the message under the same name.
        The deadline in it has moved by then, so the text is replaced: an old one would lie.

        Raises:
            NotificationError: it was not stored.
        """
        mode = Mode.DRY_RUN if message.is_rehearsal else Mode.SCALE_DOWN
        urgent = message.severity is Severity.WARNING
        body = event_body(
            message.root,
            message.reason,
            message=message.text,
            at=message.at,
            event_type=EventType.WARNING if urgent else EventType.NORMAL,
            key=f"{mode.value} {message.occasion}",
        )
        name, namespace = msgspec.convert(body, Bare).metadata.name, message.root.namespace
        try:
            try:
                await self._store.create(EVENTS, body, namespace=namespace)
            except Conflict:
                news = {"message": message.text, "lastTimestamp": rfc3339(message.at)}
                await self._store.patch(EVENTS, name, news, namespace=namespace)
        except ClusterError as error:
            raise NotificationError(f"the Event was not stored: {error}") from error
        return f"Event {name} in {namespace}"

    async def close(self) -> None:
        """Leave the store open: it belongs to others."""

"""PagerDuty, by its Events API v2: one alert per workload, resolved when the matter ends.

The dedup key is the cluster, the subject and the type of the matter, so that a repeat, a reminder
and the end belong to one alert, whoever leads and however often it was restarted. The client is
synchronous: it runs in a thread of its own, and tries once, because the next cycle tries again.

Source: https://developer.pagerduty.com/docs/events-api-v2-overview
"""

from __future__ import annotations

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from httpx2 import HTTPError, Response
from pagerduty import Error, EventsApiV2Client, HttpError
from typing_extensions import override

from gpu_pruner.errors import NotificationError
from gpu_pruner.model.orders import CLOSING, MessageKind, Severity
from gpu_pruner.model.units import Seconds, rfc3339
from gpu_pruner.model.workload import RootRef
from gpu_pruner.notify.channel import Audience, Taking
from gpu_pruner.notify.messages import Message
from gpu_pruner.notify.tls import client_context
from gpu_pruner.settings.channels import PagerDutySettings

LONGEST_KEY = 255
"""Characters of a dedup key."""
_THREADS = 2


def dedup_key(root: RootRef, *, cluster: str) -> str:
    """Return what names the alert about an idle workload, the same in every process."""
    key = f"gpu-pruner/{cluster}/{root.kind}/{root.namespace}/{root.name}/idle"
    if len(key) <= LONGEST_KEY:
        return key
    return f"gpu-pruner/{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()}"


class _OneTry(EventsApiV2Client):
    """The client without its own tries: they sleep in the thread, some of them without end."""

    max_network_attempts = 0

    @override
    def postprocess(self, response: Response) -> None:
        if not response.is_success:
            raise HttpError("refused", response)


class PagerDutyChannel:
    """Triggers and resolves alerts of one service."""

    holds_alerts = True

    def __init__(self, settings: PagerDutySettings, *, cluster: str) -> None:
        """Prepare; nothing is sent yet.

        Raises:
            ConfigurationError: the CA bundle cannot be used.
        """
        self.name = settings.name
        self.timeout_seconds: Seconds | None = settings.timeout_seconds
        self._settings = settings
        self._cluster = cluster
        self._takes = Taking(settings.messages, settings.least_severity)
        self._tls = client_context(settings.ca_file, channel=settings.name)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"channel-{self.name}")

    def takes(self, kind: MessageKind) -> bool:
        """Return whether it is told: of every end, whatever the settings say, to resolve."""
        return kind in CLOSING or kind in self._takes

    async def send(self, message: Message, to: Audience) -> str:  # noqa: ARG002 - PagerDuty knows
        """Trigger or resolve the alert of a workload.

        Raises:
            NotificationError: PagerDuty did not take it.
        """
        try:
            key = self._settings.routing_key.read()
        except ValueError as error:
            raise NotificationError(f"its routing key cannot be read: {error}") from None
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(self._enqueue, message, key))

    async def close(self) -> None:
        """Let go of the threads; one that still waits for an answer ends by its timeout."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _enqueue(self, message: Message, routing_key: str) -> str:
        alert = dedup_key(message.root, cluster=self._cluster)
        wait = self._settings.timeout_seconds
        try:
            with _OneTry(
                routing_key, base_url=self._settings.url, verify=self._tls, trust_env=False
            ) as client:
                client.timeout = wait  # type: ignore[assignment]  # it is handed on, and any number will do
                if message.kind in CLOSING:
                    client.resolve(alert)
                    return f"resolved {alert}"
                client.send_event("trigger", dedup_key=alert, payload=self._payload(message))
        except (Error, HTTPError, ValueError) as error:
            # Their own words may hold the routing key, or the answer.
            raise NotificationError(_failure(error, wait=wait)) from None
        return f"triggered {alert}"

    def _payload(self, message: Message) -> dict[str, object]:
        root = message.root
        calm = message.is_rehearsal or message.severity is Severity.INFO
        return {
            "summary": message.title,
            "source": root.ref,
            "severity": "info" if calm else "warning",
            "timestamp": rfc3339(message.at),
            "component": root.name,
            "group": root.namespace,
            "class": f"gpu-idle-{message.kind.value}",
            "custom_details": {
                "text": message.text,
                "cluster": self._cluster,
                "id": message.key,
                "pause_at": "" if message.deadline is None else rfc3339(message.deadline),
            },
        }


def _failure(error: Exception, *, wait: Seconds) -> str:
    if isinstance(error, HttpError):
        status = 0 if error.response is None else error.response.status_code
        return f"PagerDuty answered with HTTP {status}" + _HINTS.get(status, "")
    if isinstance(error, Error) and error.__cause__ is None:
        return "PagerDuty's answer could not be read"
    return f"no answer from PagerDuty within {wait:g} s, or no connection"


_HINTS = {400: ": is the routing key right?", 429: ": too many events"}

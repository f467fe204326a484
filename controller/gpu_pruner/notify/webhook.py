"""A signed POST to any service: the channel for everything that we do not know.

The signature is HMAC-SHA256 over the timestamp, a dot and the raw body, so that a receiver can tell
our messages from others and a recorded one from a new one. Redirects are not followed, proxies of
the environment not used, and of an answer only the status counts.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from http import HTTPStatus

from tornado.httpclient import HTTPClientError
from tornado.httputil import HTTPInputError
from tornado.iostream import StreamClosedError
from tornado.simple_httpclient import (
    HTTPStreamClosedError,
    HTTPTimeoutError,
    SimpleAsyncHTTPClient,
)

from gpu_pruner.errors import NotificationError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.foreign import quoted
from gpu_pruner.model.orders import MessageKind
from gpu_pruner.model.units import Seconds, rfc3339
from gpu_pruner.notify.addresses import GuardedResolver, NotAllowed, is_public
from gpu_pruner.notify.channel import Audience, Taking
from gpu_pruner.notify.messages import Message
from gpu_pruner.notify.tls import client_context
from gpu_pruner.settings.channels import WebhookSettings

VERSION = 1
"""Of the body; a field may be added without a new one."""
TIMESTAMP = "X-GPU-Pruner-Timestamp"
SIGNATURE = "X-GPU-Pruner-Signature"
IDEMPOTENCY = "Idempotency-Key"

_LARGEST_ANSWER = 64 << 10
_AT_ONCE = 4


def body_of(message: Message, *, cluster: str, to: Audience) -> bytes:
    """Return a message as JSON, in UTF-8."""
    root = message.root
    told = {
        "version": VERSION,
        "id": message.key,
        "kind": message.kind.value,
        "occasion": message.occasion,
        "severity": message.severity.value,
        "rehearsal": message.is_rehearsal,
        "cluster": cluster,
        "workload": {
            "group": root.group,
            "kind": root.kind,
            "namespace": root.namespace,
            "name": root.name,
            "uid": root.uid,
        },
        "owner": to.owner,
        "title": message.title,
        "text": message.text,
        "at": rfc3339(message.at),
        "pauseAt": None if message.deadline is None else rfc3339(message.deadline),
    }
    return json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode()


def signature(secret: str, *, timestamp: str, body: bytes) -> str:
    """Return the value of the header `SIGNATURE`: ``v1=`` and a hexadecimal HMAC-SHA256."""
    signed = timestamp.encode() + b"." + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


class WebhookChannel:
    """Posts messages to one URL."""

    holds_alerts = False

    def __init__(self, settings: WebhookSettings, *, cluster: str, clock: Clock) -> None:
        """Prepare; nothing is sent yet.

        Raises:
            ConfigurationError: the CA bundle cannot be used.
        """
        self.name = settings.name
        self.timeout_seconds: Seconds | None = settings.timeout_seconds
        self._settings = settings
        self._cluster = cluster
        self._clock = clock
        self._takes = Taking(settings.messages, settings.least_severity)
        self._tls = client_context(settings.ca_file, channel=settings.name)
        self._client: SimpleAsyncHTTPClient | None = None

    def takes(self, kind: MessageKind) -> bool:
        """Return whether messages of this kind are posted."""
        return kind in self._takes

    async def send(self, message: Message, to: Audience) -> str:
        """Post one message.

        Raises:
            NotificationError: the answer was not one of 2xx, or there was none.
        """
        body = body_of(message, cluster=self._cluster, to=to)
        timestamp = str(int(self._clock.now()))
        try:
            signed = signature(self._settings.secret.read(), timestamp=timestamp, body=body)
        except ValueError as error:
            raise NotificationError(f"its secret cannot be read: {error}") from None
        headers = {
            "Content-Type": "application/json",
            TIMESTAMP: timestamp,
            SIGNATURE: signed,
            IDEMPOTENCY: message.key,
        }
        status = await self._posted(body, headers)
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            raise NotificationError(f"answered with a redirect ({status}), which is not followed")
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise NotificationError(f"answered with HTTP {status}")
        return f"HTTP {status}"

    async def close(self) -> None:
        """Release connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    async def _posted(self, body: bytes, headers: dict[str, str]) -> int:
        wait = self._settings.timeout_seconds
        try:
            response = await self._opened().fetch(
                self._settings.url,
                method="POST",
                body=body,
                headers=headers,
                connect_timeout=wait,
                request_timeout=wait,
                follow_redirects=False,
                decompress_response=False,
                raise_error=False,
                ssl_options=self._tls,
                user_agent="gpu-pruner",
            )
        except (HTTPClientError, HTTPInputError, StreamClosedError, OSError) as error:
            raise NotificationError(_failure(error, wait=wait)) from error
        if isinstance(response.error, HTTPTimeoutError | HTTPStreamClosedError):
            raise NotificationError(_failure(response.error, wait=wait))
        return response.code

    def _opened(self) -> SimpleAsyncHTTPClient:
        if self._client is None:
            anywhere = self._settings.private_addresses
            self._client = SimpleAsyncHTTPClient(
                force_instance=True,
                max_clients=_AT_ONCE,
                max_body_size=_LARGEST_ANSWER,
                resolver=GuardedResolver(allowed=lambda one: anywhere or is_public(one)),
            )
        return self._client


def _failure(error: BaseException, *, wait: Seconds) -> str:
    match error:
        case HTTPTimeoutError():
            return f"no answer within {wait:g} s"
        case HTTPStreamClosedError() | StreamClosedError():
            return "the connection broke off before an answer"
        case NotAllowed():
            return str(error)
        case ConnectionRefusedError():
            return "refuses connections"
        case OSError() if error.strerror:
            return quoted(error.strerror)
        case _:
            return f"no answer that can be read ({type(error).__name__})"

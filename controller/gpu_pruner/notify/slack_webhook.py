"""One message to an incoming webhook of Slack, or of what answers as it does.

Answers whether it was taken. The address is a secret: it is in no error, no log and no request but
to its own host, so redirects are not followed. Nothing is retried here, and the caller is blocked
for `ANSWER_SECONDS` at most. A proxy from the environment is used, credentials from ``.netrc`` are
not. `cli` calls it, in a thread.

Source: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from http import HTTPStatus

import requests
from requests.utils import get_environ_proxies

from gpu_pruner.errors import NotificationError
from gpu_pruner.model.units import Seconds

ANSWER_SECONDS: Seconds = 10.0
_LONGEST_ANSWER = 4096
_TAKEN = "ok"
_WORD = re.compile(r"[a-z][a-z_]{2,60}")
"""How Slack names what is wrong, for example ``no_service``. Anything else is not repeated."""


def post(address: str, message: bytes) -> None:
    """Post one message.

    Args:
        address: checked by `settings.report.webhook_address`.
        message: JSON.

    Raises:
        NotificationError: it was not taken, or nobody knows whether it was; without the address.
    """
    try:
        status, answer = _in_time(lambda: _exchange(address, message))
    except requests.exceptions.SSLError:
        raise NotificationError("the webhook's certificate is not trusted here") from None
    except requests.exceptions.Timeout:
        raise NotificationError(f"the webhook did not answer in {ANSWER_SECONDS:g} s") from None
    except (requests.exceptions.RequestException, OSError, ValueError) as error:
        # A ValueError is a host that cannot be a name; not every one is translated below us.
        what = type(error).__name__
        raise NotificationError(f"the webhook cannot be reached ({what})") from None
    if status == HTTPStatus.OK and answer == _TAKEN:
        return
    raise NotificationError(_refusal(status, answer))


def _in_time(exchange: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """Return what an exchange returns, or give it up: `requests` only limits each single read.

    What was given up ends in a thread of its own, which nobody waits for.
    """
    ended: Future[tuple[int, str]] = Future()

    def work() -> None:
        try:
            ended.set_result(exchange())
        except (OSError, ValueError) as error:  # all of `requests` are the first
            ended.set_exception(error)

    threading.Thread(target=work, name="webhook", daemon=True).start()
    try:
        return ended.result(timeout=ANSWER_SECONDS)
    except TimeoutError:
        raise requests.exceptions.Timeout from None


def _exchange(address: str, message: bytes) -> tuple[int, str]:
    deadline = time.monotonic() + ANSWER_SECONDS
    with requests.Session() as session:
        session.trust_env = False
        session.proxies.update(get_environ_proxies(address))
        with session.post(
            address,
            data=message,
            headers={"Content-Type": "application/json", "User-Agent": "gpu-pruner"},
            timeout=ANSWER_SECONDS,
            allow_redirects=False,
            stream=True,
        ) as answer:
            body = bytearray()
            for chunk in answer.iter_content(256):
                body += chunk
                if len(body) > _LONGEST_ANSWER:
                    break
                if time.monotonic() > deadline:
                    raise requests.exceptions.ReadTimeout
            return answer.status_code, body.decode("utf-8", "replace").strip()


def _refusal(status: int, answer: str) -> str:
    """Return why a message was not taken, in one sentence."""
    word = f" {answer}" if _WORD.fullmatch(answer) else ""
    told = f"{status}{word}"
    if status == HTTPStatus.OK:
        return "the webhook answered, but not as Slack does: is the address that of a webhook?"
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return f"the webhook sends us elsewhere ({status}), which is not followed"
    if status in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return f"the webhook refused the message ({told}): it was revoked, or its channel is gone"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return f"the webhook takes no more messages now ({told})"
    return f"the webhook did not take the message ({told})"

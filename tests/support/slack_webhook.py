"""An incoming webhook as Slack has it: takes what Slack takes, and refuses what Slack refuses.

Limits and words are from https://docs.slack.dev/reference/block-kit/blocks and
https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks#handling_errors.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

SECRET = "T00/B00/opens-the-channel"
MOST_BLOCKS = 50
LONGEST = {"header": 150, "section": 3000, "context": 3000}
MOST_ELEMENTS = 10
LONGEST_TEXT = 40_000


def fault(message: Any) -> str:
    """Return Slack's word for what is wrong with a message; empty where nothing is."""
    if not isinstance(message, dict) or not (message.get("text") or message.get("blocks")):
        return "no_text"
    blocks = message.get("blocks", [])
    good = len(str(message.get("text", ""))) <= LONGEST_TEXT and len(blocks) <= MOST_BLOCKS
    return "" if good and all(is_good(one) for one in blocks) else "invalid_blocks"


def is_good(block: Any) -> bool:
    kind = block.get("type")
    if kind == "divider":
        return True
    if kind not in LONGEST:
        return False
    texts = block["elements"] if kind == "context" else [block["text"]]
    wanted = "plain_text" if kind == "header" else "mrkdwn"
    return 0 < len(texts) <= MOST_ELEMENTS and all(
        one["type"] == wanted and 0 < len(one["text"]) <= LONGEST[kind] for one in texts
    )


def _drip(handler: BaseHTTPRequestHandler, ended: threading.Event) -> None:
    """Write a header slowly, for some seconds at most: who waits for all of it gets his answer."""
    with suppress(OSError):
        handler.wfile.write(b"X-Slow: ")
        for _ in range(100):
            if ended.wait(0.05):
                break
            handler.wfile.write(b"x")
        handler.wfile.write(b"\r\n")


@dataclass
class SlackWebhook:
    """A context manager around one webhook on loopback."""

    taken: list[dict[str, Any]] = field(default_factory=list)
    """Messages that are in the channel, oldest first."""
    asked: int = 0
    """Requests that came, whatever became of them."""
    headers: list[Any] = field(default_factory=list)
    """Of the requests."""
    answers: list[tuple[int, str]] = field(default_factory=list)
    """What to answer next instead; one is used up by each request."""
    location: str = ""
    """Where a redirect leads."""
    deaf: bool = False
    """Take the message, and hang up without an answer."""
    _drips: threading.Event | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/services/{SECRET}"

    @contextmanager
    def dripping(self) -> Iterator[None]:
        """Answer what is good, but a byte of a header every now and then, for as long as this."""
        self._drips = threading.Event()
        try:
            yield
        finally:
            self._drips.set()

    def __enter__(self) -> Self:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                owner._answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked += 1
        self.headers.append(handler.headers)
        body = handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
        status, answer = self._judged(handler, body)
        if self.deaf:
            handler.close_connection = True
            return
        content = answer.encode()
        handler.send_response(status)
        if self.location:
            handler.send_header("Location", self.location)
        handler.send_header("Content-Length", str(len(content)))
        if self._drips is not None:
            handler.flush_headers()
            _drip(handler, self._drips)
        handler.end_headers()
        handler.wfile.write(content)

    def _judged(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, str]:
        if self.answers:
            return self.answers.pop(0)
        if handler.path != f"/services/{SECRET}":
            return 404, "no_service"
        if handler.headers.get("Content-Type") != "application/json":
            return 400, "invalid_payload"
        try:
            message = json.loads(body)
        except ValueError:
            return 400, "invalid_payload"
        if word := fault(message):
            return 400, word
        self.taken.append(message)
        return 200, "ok"

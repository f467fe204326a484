"""A small HTTP server on loopback that answers as told, or passes requests on and spoils them."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    """What the server sends."""

    body: str | bytes = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    """Send nothing until the server is closed."""
    cut: bool = False
    """Promise more than the body, then hang up."""


@dataclass(frozen=True)
class Seen:
    """A request that came."""

    method: str
    path: str
    headers: Mapping[str, str]
    form: Mapping[str, str]


@dataclass
class ScriptedServer:
    """A context manager. `answers` and the other fields may be changed while it runs."""

    answers: Mapping[str, Answer | str] = field(default_factory=dict)
    """By path; `default` for all others."""
    default: Answer = Answer(status=404)
    forward_to: str = ""
    """URL that requests are passed on to instead."""
    bearer: str = ""
    """Token that is asked for; empty: none."""
    wanted: Mapping[str, str] = field(default_factory=dict)
    """Headers without which a request gets `refusal`."""
    refusal: Answer = Answer("who are you?", HTTPStatus.UNAUTHORIZED)
    warning: str = ""
    """Put into JSON answers that are passed on."""
    forwarded: tuple[str, ...] = ()
    """Headers of answers that are passed on too."""
    tls: ssl.SSLContext | None = None
    """With the server's certificate; None: plain HTTP."""
    seen: list[Seen] = field(default_factory=list, init=False)

    @property
    def address(self) -> str:
        """Return host:port."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"{'https' if self.tls else 'http'}://{self.address}"

    def wait_for_requests(self, count: int) -> None:
        """Return when that many requests were answered."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.seen) >= count, _WAIT_SECONDS)

    def __enter__(self) -> Self:
        self._news = threading.Condition()
        self._closing = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner._serve(self)

            def do_POST(self) -> None:
                owner._serve(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", "0"))
        body = handler.rfile.read(length)
        path = urlsplit(handler.path).path
        form = dict(parse_qsl(body.decode()))
        request = Seen(handler.command, handler.path, dict(handler.headers.items()), form)
        answer = self._answer(request, path, body)
        with self._news:
            self.seen.append(request)
            self._news.notify_all()
        if answer.hang:
            self._closing.wait(_WAIT_SECONDS)
            handler.close_connection = True
            return
        content = answer.body.encode() if isinstance(answer.body, str) else answer.body
        handler.send_response_only(answer.status)
        if "Date" not in answer.headers:
            handler.send_header("Date", handler.date_time_string())
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content) + (100 if answer.cut else 0)))
        handler.end_headers()
        with suppress(ConnectionError):  # a client may hang up on us
            handler.wfile.write(content)

    def _answer(self, request: Seen, path: str, body: bytes) -> Answer:
        if self.bearer and request.headers.get("Authorization") != f"Bearer {self.bearer}":
            return Answer("who are you?", HTTPStatus.UNAUTHORIZED)
        if any(request.headers.get(name) != text for name, text in self.wanted.items()):
            return self.refusal
        if self.forward_to:
            return self._forward(request, body)
        answer = self.answers.get(path, self.default)
        return Answer(answer) if isinstance(answer, str) else answer

    def _forward(self, request: Seen, body: bytes) -> Answer:
        parts = urlsplit(self.forward_to)
        connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_WAIT_SECONDS)
        try:
            kind = {"Content-Type": request.headers.get("Content-Type", "text/plain")}
            connection.request(request.method, request.path, body, kind)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if self.warning and b'"result"' in content:
            content = json.dumps({**json.loads(content), "warnings": [self.warning]}).encode()
        kept = {name: text for name in self.forwarded if (text := answer.getheader(name))}
        return Answer(content, answer.status, kept)

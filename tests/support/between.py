"""Something between the controller and the API server, so that a test can act at the very moment.

A loopback HTTP proxy: it passes everything on over TLS, watches included, and runs what a test asks
for right before a request goes on. What the API server then answers is its own answer. A test may
also let it answer itself, as a broken server would.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

from support.lab import Lab

_PASSED_ON = {"authorization", "accept", "content-type", "user-agent", "content-length"}
_SILENCE_SECONDS = 600.0


@dataclass(frozen=True)
class Answer:
    """What to answer in the API server's place."""

    status: HTTPStatus
    body: bytes = b""


@dataclass
class Order:
    """What to do before requests of a kind are passed on."""

    method: str
    path: str
    """End of the path, without the query."""
    do: Callable[[], Answer | None]
    times: int = 1
    done: int = 0


class Between:
    """A context manager around the proxy; works in threads of its own."""

    def __init__(self, lab: Lab) -> None:
        self._host = lab.url.removeprefix("https://")
        self._tls = ssl.create_default_context(cafile=lab.directory / "ca.crt")
        self._orders: list[Order] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def before(
        self, method: str, path: str, do: Callable[[], Answer | None], *, times: int = 1
    ) -> Order:
        """Let something happen right before a request goes on; or answer it, where `do` does."""
        order = Order(method, path, do, times)
        with self._lock:
            self._orders.append(order)
        return order

    def kubeconfig(self, of: Path) -> Path:
        """Return a kubeconfig like another one that leads here."""
        content = json.loads(of.read_text())
        url = f"http://127.0.0.1:{self._server.server_port}"
        content["clusters"][0]["cluster"] = {"server": url}
        path = of.with_name(f"between-{of.name}")
        path.write_text(json.dumps(content))
        path.chmod(0o600)
        return path

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def connection(self) -> http.client.HTTPSConnection:
        """Return a new connection to the API server."""
        return http.client.HTTPSConnection(self._host, context=self._tls, timeout=_SILENCE_SECONDS)

    def turn(self, method: str, path: str) -> Answer | None:
        """Carry out what was ordered for a request."""
        with self._lock:
            wanted = [
                one
                for one in self._orders
                if one.method == method and path.endswith(one.path) and one.done < one.times
            ]
            for one in wanted[:1]:
                one.done += 1
        return wanted[0].do() if wanted else None


def _handler(between: Between) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(size) if size else None
            answer = between.turn(self.command, self.path.partition("?")[0])
            try:
                if answer is None:
                    self._pass_on(body)
                else:
                    self._whole(answer.status, "application/json", answer.body)
            except (OSError, http.client.HTTPException):  # either side has gone
                self.close_connection = True

        do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815 - names that http.server asks for

        def _pass_on(self, body: bytes | None) -> None:
            headers = {k: v for k, v in self.headers.items() if k.lower() in _PASSED_ON}
            upstream = between.connection()
            try:
                upstream.request(self.command, self.path, body=body, headers=headers)
                answer = upstream.getresponse()
                kind = answer.getheader("Content-Type") or "application/json"
                if answer.chunked:
                    self._stream(answer, kind)
                else:
                    self._whole(answer.status, kind, answer.read(), answer.getheader("Date"))
            finally:
                upstream.close()

        def _whole(self, status: int, kind: str, body: bytes, date: str | None = None) -> None:
            self.send_response_only(status)
            self.send_header("Date", date or self.date_time_string())
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, answer: http.client.HTTPResponse, kind: str) -> None:
            self.send_response_only(answer.status)
            self.send_header("Date", answer.getheader("Date") or self.date_time_string())
            self.send_header("Content-Type", kind)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while part := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler

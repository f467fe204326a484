"""A relay in front of a Prometheus that counts what queries touch, or records what they answer.

The controller under measurement asks as it always does. `Relay` passes everything on; while it
counts, it adds ``stats=all`` and sums what the server says. What it recorded, `replaying` gives
back from a process of its own, so that neither the server's work nor ours disturbs the other.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from threading import Thread
from typing import Protocol

import msgspec
from typing_extensions import override

Request = tuple[str, str, bytes]
"""Method, path with query, body."""

_PATIENCE_SECONDS = 120


class _Answering(Protocol):
    def __call__(self, request: Request, headers: Mapping[str, str], /) -> Answer: ...


class Answer(msgspec.Struct, frozen=True):
    """One HTTP answer, as received."""

    status: int
    encoding: str
    body: bytes


class _Samples(msgspec.Struct, rename="camel"):
    total_queryable_samples: int = 0


class _Stats(msgspec.Struct):
    samples: _Samples = msgspec.field(default_factory=_Samples)


class _Data(msgspec.Struct):
    stats: _Stats = msgspec.field(default_factory=_Stats)


class _Reply(msgspec.Struct):
    data: _Data = msgspec.field(default_factory=_Data)


class Relay:
    """An HTTP server on loopback in front of another one, in a thread."""

    def __init__(self, upstream: str, *, counting: bool) -> None:
        """Prepare.

        Args:
            upstream: URL of the Prometheus, without a path.
            counting: whether to ask for statistics; it changes the answers a little.
        """
        self.samples = 0
        """Samples that the queries since the last reset touched."""
        self.requests = 0
        self.recorded: dict[Request, Answer] = {}
        self._upstream = upstream.removeprefix("http://")
        self._counting = counting

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve as long as the block lasts; gives the address."""
        with _serving(self._pass_on) as server:
            thread = Thread(target=server.serve_forever, daemon=True)
            thread.start()
            yield _address(server)
            server.shutdown()
            thread.join()

    def reset(self) -> None:
        """Begin to count anew."""
        self.samples = self.requests = 0

    def _pass_on(self, request: Request, headers: Mapping[str, str]) -> Answer:
        method, path, body = request
        sent = {
            name: headers[name] for name in ("Content-Type", "Accept-Encoding") if name in headers
        }
        if self._counting:
            sent.pop("Accept-Encoding", None)
            body += b"&stats=all"
        connection = HTTPConnection(self._upstream, timeout=_PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            encoding = response.getheader("Content-Encoding") or ""
            answer = Answer(response.status, encoding, response.read())
        finally:
            connection.close()
        self.requests += 1
        if self._counting:
            stats = msgspec.json.decode(answer.body, type=_Reply).data.stats
            self.samples += stats.samples.total_queryable_samples
        else:
            self.recorded[request] = answer
        return answer


@contextmanager
def replaying(recorded: Mapping[Request, Answer]) -> Iterator[str]:
    """Answer recorded requests from another process; gives its address.

    A request that was not recorded is answered with 404, which ends the benchmark.
    """
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=_replay, args=(dict(recorded), there), daemon=True)
    process.start()
    try:
        yield str(here.recv())
    finally:
        process.terminate()
        process.join()


def _replay(recorded: dict[Request, Answer], told: Connection) -> None:
    missing = Answer(404, "", b'{"status":"error","errorType":"x","error":"not recorded"}')
    with _serving(lambda request, _headers: recorded.get(request, missing)) as server:
        told.send(_address(server))
        server.serve_forever()


class _Server(ThreadingHTTPServer):
    daemon_threads = True


def _serving(answer: _Answering) -> _Server:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body leave together, so that no answer waits for an ACK

        def do_GET(self) -> None:
            self._respond()

        def do_POST(self) -> None:
            self._respond()

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            found = answer((self.command, self.path, body), dict(self.headers.items()))
            self.send_response(found.status)
            self.send_header("Content-Type", "application/json")
            if found.encoding:
                self.send_header("Content-Encoding", found.encoding)
            self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        @override
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return _Server(("127.0.0.1", 0), Handler)


def _address(server: _Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"

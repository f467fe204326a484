"""DCGM exporters over HTTP: a described world's nodes as a real Prometheus would scrape them.

One loopback port for all nodes, `/exporters/<node>/metrics` each, as `gpu_pruner.sim` has it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from gpu_pruner.sim.exporter import CONTENT_TYPE


class Exporters:
    """A context manager around the server; it works in threads of its own."""

    def __init__(self, exposition: Callable[[str], str]) -> None:
        """Take what answers a scrape of a node, by its name."""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                node = self.path.removeprefix("/exporters/").removesuffix("/metrics")
                try:
                    body, status = exposition(node).encode(), HTTPStatus.OK
                except KeyError:
                    body, status = b"no such node\n", HTTPStatus.NOT_FOUND
                with suppress(ConnectionError):  # Prometheus waits for a second only
                    self.send_response(status)
                    self.send_header("Content-Type", CONTENT_TYPE)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        """Return host:port."""
        return f"127.0.0.1:{self._server.server_port}"

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

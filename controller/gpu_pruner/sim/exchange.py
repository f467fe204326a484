"""One HTTP request and its answer, at the level where an answer can also be cut or withheld.

Wraps tornado's server connection, because a simulated server must be able to close it in the
middle of a line. The ``Date`` header carries simulated time. Called by `serving`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from tornado.http1connection import HTTP1Connection
from tornado.httputil import (
    HTTPHeaders,
    HTTPServerRequest,
    ResponseStartLine,
    format_timestamp,
)
from tornado.iostream import StreamClosedError

from gpu_pruner.model.units import Timestamp

JSON = "application/json"


class Exchange:
    """A request that waits for its answer."""

    def __init__(self, request: HTTPServerRequest, *, date: Timestamp) -> None:
        self.method: Final = request.method or ""
        self.path: Final = request.path
        self.query: Final = request.query
        self.body: Final = request.body
        self.closed: Final = asyncio.Event()
        """Set when the client has gone."""
        self.status = 0
        """What was answered; 0 as long as nothing was."""
        self.on_head: Callable[[], None] | None = None
        """Called when the head of the answer is about to be sent."""
        self._request = request
        self._date = date
        connection = request.connection
        if not isinstance(connection, HTTP1Connection):
            raise TypeError("the simulated server speaks HTTP/1.1 only")
        self._connection = connection
        connection.set_close_callback(self.closed.set)

    def argument(self, name: str) -> str:
        """Return the last value of a query parameter, or the empty string."""
        values = self._request.query_arguments.get(name)
        return values[-1].decode("utf-8", "replace") if values else ""

    def header(self, name: str) -> str:
        """Return a header, or the empty string."""
        return self._request.headers.get(name, "")

    async def answer(
        self,
        body: bytes,
        *,
        status: int = HTTPStatus.OK,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a whole answer."""
        extra = {"Content-Length": str(len(body)), "Content-Type": content_type}
        await self._begin(status, extra | dict(headers or {}), chunk=body)
        if not self.closed.is_set():
            self._connection.finish()

    async def begin_stream(self, content_type: str = JSON) -> None:
        """Send the head of an answer whose length nobody knows yet."""
        await self._begin(HTTPStatus.OK, {"Content-Type": content_type})

    async def write(self, chunk: bytes) -> bool:
        """Send a part of a streamed answer.

        Returns:
            Whether the client is still there.
        """
        if self.closed.is_set():
            return False
        try:
            await self._connection.write(chunk)
        except StreamClosedError:
            self.closed.set()
        return not self.closed.is_set()

    def end_stream(self) -> None:
        """End a streamed answer properly."""
        if not self.closed.is_set():
            self._connection.finish()

    def abort(self) -> None:
        """Close the connection as it is, in the middle of whatever was being sent."""
        if not self.closed.is_set():
            self.closed.set()
            self._connection.detach().close()

    async def _begin(self, status: int, extra: Mapping[str, str], *, chunk: bytes = b"") -> None:
        self.status = int(status)
        if self.on_head is not None:
            self.on_head()
        if self.closed.is_set():
            return
        headers = HTTPHeaders({"Date": format_timestamp(self._date)})
        headers.update(extra)
        start = ResponseStartLine("HTTP/1.1", self.status, HTTPStatus(self.status).phrase)
        try:
            await self._connection.write_headers(start, headers, chunk)
        except StreamClosedError:
            self.closed.set()

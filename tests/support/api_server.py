"""A thin client for a Kubernetes API server: JSON in, JSON out, one exception.

For tests that look at the cluster or play a person or a kubelet. It knows nothing of the product,
which talks to the same server through `gpu_pruner.kube`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from types import TracebackType
from typing import Self

import aiohttp
from support.connections import Connections

from gpu_pruner.sim.tree import JsonObject, elements, mapping, number, text

MERGE_PATCH = "application/merge-patch+json"
_QUIET_SECONDS = 60.0
"""How long the server may say nothing, longer than its watches are asked to last."""
_WATCH_SECONDS = 40
_CONNECTIONS = 50


class ApiError(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """A session with one API server. Use it as an async context manager."""

    def __init__(self, url: str, tls: ssl.SSLContext, *, token: str = "") -> None:
        self._url = url
        self._tls = tls
        self._calls: set[asyncio.Task[JsonObject]] = set()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def __aenter__(self) -> Self:
        limits = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=_QUIET_SECONDS)
        self._connections = Connections(ssl=self._tls, limit=_CONNECTIONS)
        self._session = aiohttp.ClientSession(
            connector=self._connections,
            headers=self._headers,
            timeout=limits,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.gather(*self._calls, return_exceptions=True)
        await self._session.close()
        await self._connections.gone()

    async def get(self, path: str, **query: str) -> JsonObject:
        return await self._call("GET", path, query=query)

    async def create(self, path: str, body: JsonObject) -> JsonObject:
        return await self._call("POST", path, body=body)

    async def patch(self, path: str, body: JsonObject) -> JsonObject:
        """Apply a merge-patch."""
        return await self._call("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def delete(self, path: str, body: JsonObject | None = None) -> JsonObject:
        return await self._call("DELETE", path, body=body)

    async def items(self, path: str, **query: str) -> tuple[list[JsonObject], str]:
        """Return the items of a list and its resourceVersion."""
        answer = await self.get(path, **query)
        return elements(answer, "items"), text(answer, "metadata", "resourceVersion")

    async def watch(self, path: str, *, since: str) -> AsyncGenerator[tuple[str, JsonObject]]:
        """Yield (type, object) of one watch until the server ends it.

        Raises:
            ApiError: the server refused it or reported an error in it, 410 for example.
        """
        query = {"watch": "true", "resourceVersion": since, "timeoutSeconds": str(_WATCH_SECONDS)}
        async with self._session.get(self._url + path, params=query) as answer:
            if answer.status != HTTPStatus.OK:
                raise ApiError(answer.status, await answer.text())
            line = b""
            try:
                async for chunk in answer.content.iter_any():
                    *lines, line = (line + chunk).split(b"\n")
                    for one in lines:
                        yield _event(one)
            finally:
                # A TLS connection that is closed in mid-answer would say goodbye in the background,
                # perhaps for longer than the loop lives.
                if answer.connection and answer.connection.transport:
                    answer.connection.transport.abort()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        """Make one call. Who is cancelled meanwhile leaves it to end by itself, see `watch`."""
        request = self._session.request(
            method,
            self._url + path,
            params=query,
            data=json.dumps(body) if body is not None else None,
            headers={"Content-Type": content_type},
        )
        call = asyncio.create_task(_answer(request))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        call.add_done_callback(_retrieved)
        return await asyncio.shield(call)


def _retrieved(call: asyncio.Task[JsonObject]) -> None:
    """Look at how a call ended, also where whoever made it has gone."""
    if not call.cancelled():
        call.exception()


async def _answer(request: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> JsonObject:
    async with request as answer:
        content = await answer.read()
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise ApiError(answer.status, content[:1000].decode(errors="replace"))
        result: JsonObject = json.loads(content)
        return result


def _event(line: bytes) -> tuple[str, JsonObject]:
    event: JsonObject = json.loads(line)
    kind, found = text(event, "type"), mapping(event, "object")
    if kind == "ERROR":
        raise ApiError(number(found, "code"), text(found, "message"))
    return kind, found

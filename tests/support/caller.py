"""Somebody who speaks raw HTTP to an API server, real or simulated, and sees what it answers."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass

import aiohttp

from gpu_pruner.sim.patches import MERGE
from gpu_pruner.sim.tree import JsonObject, elements, mapping, text

NO_ANSWER = 599
"""Stands for a connection that ended without an answer."""
_LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=90)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: JsonObject
    """Empty where it is no JSON object."""
    raw: bytes
    headers: Mapping[str, str]

    @property
    def reason(self) -> str:
        return text(self.body, "reason")

    @property
    def version(self) -> str:
        return text(self.body, "metadata", "resourceVersion")

    @property
    def uid(self) -> str:
        return text(self.body, "metadata", "uid")

    @property
    def name(self) -> str:
        return text(self.body, "metadata", "name")

    @property
    def items(self) -> list[JsonObject]:
        return elements(self.body, "items")


class Caller:
    """Make it on the event loop where it is used, and close it there."""

    def __init__(self, url: str, *, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        self._url = url
        credentials = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls or True), headers=credentials, timeout=_LIMITS
        )
        self._http._retry_connection = False  # a test wants to see that a connection was lost

    async def get(self, path: str, *, accept: str = "application/json") -> Answer:
        return await self.send("GET", path, headers={"Accept": accept})

    async def post(self, path: str, body: JsonObject) -> Answer:
        return await self.send("POST", path, body=body)

    async def put(self, path: str, body: JsonObject) -> Answer:
        return await self.send("PUT", path, body=body)

    async def patch(self, path: str, body: object, *, kind: str = MERGE) -> Answer:
        return await self.send("PATCH", path, body=body, headers={"Content-Type": kind})

    async def delete(self, path: str, body: JsonObject | None = None) -> Answer:
        return await self.send("DELETE", path, body=body)

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Ask, and return the answer; a connection that ends without one is `NO_ANSWER`.

        Args:
            method: of HTTP.
            path: with its query, percent-encoded.
            body: sent as it is where it is bytes, else as JSON.
            headers: beside the credentials.
        """
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if sent is not None else {}
        try:
            async with self._http.request(
                method, self._url + path, data=sent, headers=kind | (headers or {})
            ) as answer:
                raw = await answer.read()
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
            return Answer(NO_ANSWER, {}, b"", {})
        try:
            decoded = mapping(json.loads(raw))
        except ValueError:
            decoded = {}
        return Answer(answer.status, decoded, raw, answer.headers)

    async def watch(
        self, path: str, *, accept: str = "application/json"
    ) -> AsyncGenerator[JsonObject, None]:
        """Go through the events of a watch until the server ends it, properly or not."""
        async with self._http.get(self._url + path, headers={"Accept": accept}) as answer:
            rest = b""
            try:
                async for chunk in answer.content.iter_any():
                    *whole, rest = (rest + chunk).split(b"\n")
                    for line in whole:
                        yield mapping(json.loads(line))
            except aiohttp.ClientError:
                return
            finally:
                # Else a TLS connection says goodbye for longer than the loop may live.
                if answer.connection and answer.connection.transport:
                    answer.connection.transport.abort()

    async def close(self) -> None:
        await self._http.close()
        await asyncio.sleep(0)  # lets aborted connections leave the loop

"""A real API server with a bad day: a proxy in front of it that hangs, cuts, forgets and repeats.

Speaks plain HTTP to the client and TLS to the server; credentials go through as they come. It works
on a thread with an event loop of its own, so that blocking tests can use it, too.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import aiohttp
import yaml
from aiohttp import web
from support.connections import Connections
from support.lab import Lab
from support.prometheus import free_port

T = TypeVar("T")

_SENT_ON = ("Authorization", "Accept", "Content-Type", "User-Agent")
_ANSWERED = ("Content-Type", "Date", "Retry-After", "Warning")
_EXPIRED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "The provided continue parameter is too old",
    "reason": "Expired",
    "code": 410,
}
_STARTED_SECONDS = 30.0


@dataclass
class BadProxy:
    """A context manager. Its troubles hold for whatever is asked or told while they are on."""

    lab: Lab
    forgets: bool = False
    """Every continue token is answered with 410."""
    expires: int = 0
    """So many of the next watches are answered with 410: the client must list again."""
    is_stale: bool = False
    """Lists are answered as they were when last asked for, and watches tell nothing new."""
    pages: int = 0
    """Items per page of a list, however many were asked for; 0: as asked."""
    when_listing: Callable[[], None] | None = None
    """Called once when half of a list was sent; then the connection ends."""
    asked: list[str] = field(default_factory=list)
    """Method and path of every request, in order."""
    url: str = field(init=False)

    def __enter__(self) -> Self:
        self._lists: dict[str, bytes] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STARTED_SECONDS)
        self._loop.close()

    def kubeconfig(self, of: Path) -> Path:
        """Return a copy of a kubeconfig that leads through the proxy."""
        config = yaml.safe_load(of.read_text())
        config["clusters"][0]["cluster"] = {"server": self.url}
        path = of.with_name(f"through-proxy-{of.name}")
        path.write_text(json.dumps(config))
        path.chmod(0o600)
        return path

    def hang_watches(self) -> None:
        """Let every open watch stay open and tell nothing more, bookmarks neither."""
        self._loop.call_soon_threadsafe(lambda: self._hung.update(self._watches))

    def break_watches(self) -> None:
        """End every open watch, as a server that goes away would."""
        self._loop.call_soon_threadsafe(self._end_watches)

    def _end_watches(self) -> None:
        for one in self._watches:
            one.cancel()

    def _do(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_STARTED_SECONDS)

    async def _open(self) -> None:
        tls = ssl.create_default_context(cafile=self.lab.directory / "ca.crt")
        self._connections = Connections(ssl=tls)
        self._http = aiohttp.ClientSession(
            connector=self._connections,
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        self._watches: set[asyncio.Task[object]] = set()
        self._hung: set[asyncio.Task[object]] = set()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        port = free_port()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{port}"

    async def _close(self) -> None:
        self._end_watches()
        await self._runner.cleanup()
        await self._http.close()
        await self._connections.gone()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path_qs}")
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        try:
            return await self._passed_on(request)
        except aiohttp.ClientError:
            _abort(request)
            return web.Response(status=HTTPStatus.BAD_GATEWAY)

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Return what the proxy says in the server's place, if anything."""
        is_list = _is_list(request)
        if is_list and self.forgets and "continue" in request.query:
            return web.json_response(_EXPIRED, status=HTTPStatus.GONE)
        if is_list and self.is_stale and request.path in self._lists:
            return web.Response(body=self._lists[request.path], content_type="application/json")
        if "watch" in request.query and self.expires:
            self.expires -= 1
            return web.json_response(_EXPIRED, status=HTTPStatus.GONE)
        return None

    async def _passed_on(self, request: web.Request) -> web.StreamResponse:
        is_list = _is_list(request)
        query = dict(request.query)
        if is_list and self.pages:
            query["limit"] = str(self.pages)
        async with self._http.request(
            request.method,
            self.lab.url + request.path,
            params=query,
            data=await request.read() or None,
            headers={key: request.headers[key] for key in _SENT_ON if key in request.headers},
        ) as upstream:
            if "watch" in request.query:
                return await self._watch(request, upstream)
            body = await upstream.read()
            head = {key: one for key, one in upstream.headers.items() if key in _ANSWERED}
            if is_list and self.when_listing is not None:
                return await self._half(request, body, head)
            if is_list and "continue" not in request.query:
                self._lists[request.path] = body
            return web.Response(body=body, status=upstream.status, headers=head)

    async def _half(
        self, request: web.Request, body: bytes, head: dict[str, str]
    ) -> web.StreamResponse:
        answer = web.StreamResponse(headers=head)
        answer.content_length = len(body)
        await answer.prepare(request)
        await answer.write(body[: len(body) // 2])
        hook, self.when_listing = self.when_listing, None
        if hook is not None:
            await asyncio.to_thread(hook)
        _abort(request)
        return answer

    async def _watch(
        self, request: web.Request, upstream: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        head = {key: one for key, one in upstream.headers.items() if key in _ANSWERED}
        answer = web.StreamResponse(status=upstream.status, headers=head)
        await answer.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._watches.add(task)
        try:
            async for chunk in upstream.content.iter_any():
                while self.is_stale or task in self._hung:
                    await asyncio.sleep(0.02)
                await answer.write(chunk)
        except (asyncio.CancelledError, ConnectionError, aiohttp.ClientError):
            _abort(request)
        finally:
            self._watches.discard(task)
            self._hung.discard(task)
            upstream.close()
        return answer


def _is_list(request: web.Request) -> bool:
    return request.method == "GET" and "watch" not in request.query and "limit" in request.query


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()

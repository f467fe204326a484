"""The HTTP face of the simulated cluster: one loopback port for API server and exporters.

Imitates the transport of a real server: bearer tokens (401 for unknown ones; health and version
are open to all), 403 for who has no rights, faults, and a plain-text 404 for a path of no group.
Requests of resources are answered by `api`; every one is noted in the request log. Called by
`cluster`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from http import HTTPStatus

import msgspec
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.netutil import bind_sockets

from gpu_pruner.model.units import Timestamp
from gpu_pruner.sim.access import ANONYMOUS, Access, Person
from gpu_pruner.sim.api import Api
from gpu_pruner.sim.discovery import discover
from gpu_pruner.sim.exchange import Exchange
from gpu_pruner.sim.exporter import CONTENT_TYPE
from gpu_pruner.sim.failures import ApiFailure, forbidden, no_such_path, unauthorized
from gpu_pruner.sim.faults import Fault, Faults, Trouble
from gpu_pruner.sim.journal import RequestRecord
from gpu_pruner.sim.resources import OWN_ACCESS_REVIEWS, OWN_REVIEWS
from gpu_pruner.sim.routes import Route, parse_route
from gpu_pruner.sim.tree import JsonObject

_OWN = frozenset({OWN_ACCESS_REVIEWS.plural, OWN_REVIEWS.plural})
"""Reviews that everybody may ask for, about themselves."""
_OPEN = frozenset({"/version", "/healthz", "/readyz", "/livez"})
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_LOGIN_PAGE = b"<!doctype html><html><head><title>Sign in</title></head><body></body></html>"
_EXPORTERS = "/exporters/"


class Server:
    """Accepts connections and sends every request where it belongs."""

    def __init__(
        self,
        api: Api,
        *,
        access: Access,
        faults: Faults,
        now: Callable[[], Timestamp],
        scrape: Callable[[str], str | None],
    ) -> None:
        self.requests: list[RequestRecord] = []
        self._api = api
        self._access = access
        self._faults = faults
        self._now = now
        self._scrape = scrape
        self._tasks: dict[asyncio.Task[None], Exchange] = {}
        self._http = HTTPServer(self._accept)

    def listen(self, port: int) -> int:
        """Listen on the loopback address; return the port (a free one where 0 is asked)."""
        sockets = bind_sockets(port, "127.0.0.1")
        self._http.add_sockets(sockets)
        return int(sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and cut every open connection."""
        self._http.stop()
        self.cut_connections()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._http.close_all_connections()

    def cut_connections(self, path: str = "") -> None:
        """Close the connections of requests being answered now whose path holds this text."""
        for exchange in tuple(self._tasks.values()):
            if path in exchange.path:
                exchange.abort()

    def _accept(self, request: HTTPServerRequest) -> None:
        exchange = Exchange(request, date=self._now())
        task = asyncio.get_running_loop().create_task(self._serve(exchange))
        self._tasks[task] = exchange
        task.add_done_callback(self._tasks.pop)

    async def _serve(self, exchange: Exchange) -> None:
        speaker = self._access.speaker(exchange.header("Authorization"))
        user = speaker.name if speaker else ""
        fault = self._faults.strike(exchange.method, exchange.path, user=user)
        route = parse_route(exchange.path)
        exchange.on_head = lambda: self._note(exchange, user=user, route=route)
        try:
            if fault is None or not await _misbehave(exchange, fault):
                await self._answer(exchange, speaker=speaker, route=route)
        except ApiFailure as failure:
            await _refuse(exchange, failure)
        if not exchange.status:
            self._note(exchange, user=user, route=route)

    async def _answer(
        self, exchange: Exchange, *, speaker: Person | None, route: Route | None
    ) -> None:
        path = exchange.path
        if path.startswith(_EXPORTERS):
            await self._answer_scrape(exchange)
        elif path in _OPEN - {"/version"}:
            await exchange.answer(b"ok", content_type="text/plain; charset=utf-8")
        elif speaker is None:
            raise unauthorized()
        elif not self._is_allowed(exchange, speaker, route=route):
            raise _forbidden(exchange, speaker, route=route)
        elif route is not None and self._api.serves(route):
            await self._api.answer(exchange, route=route, asker=speaker)
        elif route is not None and self._api.knows_group(route):
            raise no_such_path()
        elif (document := discover(self._api.catalogue, path)) is not None:
            await exchange.answer(msgspec.json.encode(document))
        else:
            await exchange.answer(
                b"404 page not found\n",
                status=HTTPStatus.NOT_FOUND,
                content_type="text/plain; charset=utf-8",
            )

    def _is_allowed(self, exchange: Exchange, speaker: Person, *, route: Route | None) -> bool:
        """Tell whether somebody may do that: look around and ask what one may, if nothing else."""
        if speaker.may_do_everything or exchange.path in _OPEN:
            return True
        if speaker is ANONYMOUS:
            return False
        return route is None or route.plural in _OWN

    async def _answer_scrape(self, exchange: Exchange) -> None:
        node, _, tail = exchange.path.removeprefix(_EXPORTERS).partition("/")
        text = self._scrape(node) if tail == "metrics" else None
        if text is None:
            exchange.abort()
        else:
            await exchange.answer(text.encode(), content_type=CONTENT_TYPE)

    def _note(self, exchange: Exchange, *, user: str, route: Route | None) -> None:
        if exchange.path.startswith(_EXPORTERS):
            return
        self.requests.append(
            RequestRecord(
                at=self._now(),
                user=user,
                verb=_verb(exchange, route),
                method=exchange.method,
                path=exchange.path,
                query=exchange.query,
                status=exchange.status,
                body=exchange.body,
                group=route.group if route else "",
                resource=route.plural if route else "",
                namespace=route.namespace if route else "",
                name=route.name if route else "",
                subresource=route.subresource if route else "",
                dry_run=exchange.argument("dryRun") == "All",
            )
        )


def _verb(exchange: Exchange, route: Route | None) -> str:
    verb = _VERBS.get(exchange.method, "get")
    if route is None or verb != "get":
        return verb
    is_watch = exchange.argument("watch").lower() in {"true", "1"}
    return "watch" if is_watch else "get" if route.name else "list"


def _forbidden(exchange: Exchange, speaker: Person, *, route: Route | None) -> ApiFailure:
    if route is None:
        return forbidden(
            speaker.name, f'{exchange.method.lower()} path "{exchange.path}"', details={}
        )
    resource = f"{route.plural}/{route.subresource}".rstrip("/")
    place = f'in the namespace "{route.namespace}"' if route.namespace else "at the cluster scope"
    what = f'{_verb(exchange, route)} resource "{resource}" in API group "{route.group}" {place}'
    details = {"name": route.name, "group": route.group, "kind": route.plural}
    group = f".{route.group}" if route.group else ""
    subject = f'{route.plural}{group} "{route.name}"' if route.name else f"{route.plural}{group}"
    told: JsonObject = {key: value for key, value in details.items() if value}
    return forbidden(speaker.name, what, details=told, name=subject)


async def _misbehave(exchange: Exchange, fault: Fault) -> bool:
    """Let a fault strike; tell whether the request is thereby done with."""
    if fault.latency_seconds:
        await _unless_closed(exchange, asyncio.sleep(fault.latency_seconds))
    match fault.trouble:
        case Trouble.LATE:
            return exchange.closed.is_set()
        case Trouble.STATUS:
            raise fault.failure()
        case Trouble.HTML:
            await exchange.answer(_LOGIN_PAGE, content_type="text/html; charset=utf-8")
        case Trouble.GARBAGE:
            await exchange.answer(b"\x00\xff not JSON\n")
        case Trouble.CUT:
            await exchange.begin_stream()
            await exchange.write(b'{"kind":"Po')
            exchange.abort()
        case Trouble.REFUSED:
            exchange.abort()
        case Trouble.STALL:
            await _unless_closed(exchange, fault.lifted.wait())
            return exchange.closed.is_set()
    return True


async def _refuse(exchange: Exchange, failure: ApiFailure) -> None:
    after = failure.retry_after_seconds
    headers = {} if after is None else {"Retry-After": str(after)}
    body = msgspec.json.encode(failure.status())
    await exchange.answer(body, status=failure.code, headers=headers)


async def _unless_closed(exchange: Exchange, waiting: Coroutine[object, object, object]) -> None:
    """Wait for something, but no longer than the client does."""
    tasks = [asyncio.ensure_future(waiting), asyncio.ensure_future(exchange.closed.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""Requests of resources, answered from the store: get, list, watch, create, update, patch, delete.

Imitates the API server's generic registry: which method fits which path, what a subresource does,
which shape the ``Accept`` header asks for. The rules of writing are in `writes`, those of lists in
`listing`, those of watches in `watching`. Called by `serving`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from gpu_pruner.model.units import Seconds
from gpu_pruner.sim.exchange import Exchange
from gpu_pruner.sim.failures import ApiFailure, bad_request, not_allowed
from gpu_pruner.sim.faults import Faults
from gpu_pruner.sim.listing import PARTIAL, Pages, encode_list, encode_object, list_metadata
from gpu_pruner.sim.patches import MERGE, Patch
from gpu_pruner.sim.resources import ACCESS_REVIEWS, Resource
from gpu_pruner.sim.routes import Query, Route, parse_query
from gpu_pruner.sim.scaling import encode_scale, resize
from gpu_pruner.sim.selectors import Matcher, field_matcher, label_matcher
from gpu_pruner.sim.state import State
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tables import TABLE, encode_table
from gpu_pruner.sim.tree import JsonObject, child, mapping, number, text
from gpu_pruner.sim.watching import Watch, WatchOptions
from gpu_pruner.sim.writes import DeleteOptions, Target


@dataclass(frozen=True, slots=True)
class _Call:
    """A request whose path and query are understood."""

    exchange: Exchange
    target: Target
    query: Query
    user: str

    @property
    def accept(self) -> str:
        """Return the ``Accept`` header."""
        return self.exchange.header("Accept")


class Api:
    """The resource half of the API server."""

    def __init__(
        self,
        state: State,
        *,
        faults: Faults,
        bookmark_seconds: Seconds,
    ) -> None:
        self.catalogue = state.catalogue
        self.pages = Pages(state.store)
        self._store = state.store
        self._writer = state.writer
        self._now = state.moments.now
        self._faults = faults
        self._bookmark_seconds = bookmark_seconds

    def serves(self, route: Route) -> bool:
        """Tell whether the path of a route exists."""
        resource = self._resource(route)
        if resource is None or (route.namespace and not resource.namespaced):
            return False
        if route.name and resource.namespaced and not route.namespace:
            return False
        subresources = {"": True, "status": resource.has_status, "scale": resource.has_scale}
        return subresources.get(route.subresource, False)

    async def answer(self, exchange: Exchange, *, route: Route, user: str) -> None:
        """Answer a request whose path exists.

        Raises:
            ApiFailure: it is refused.
        """
        resource = self._resource(route)
        if resource is None:
            raise ApiFailure(HTTPStatus.NOT_FOUND, "NotFound", "there is no such resource")
        target = Target(resource, route.namespace, route.name, route.subresource)
        call = _Call(exchange, target, parse_query(exchange.argument), user)
        match exchange.method:
            case "GET" if call.query.watch:
                await self._watch(call)
            case "GET" if target.name:
                await self._send(call, self._writer.existing(target))
            case "GET":
                await self._list(call)
            case "POST" if not target.name:
                await self._create(call)
            case "PATCH" if target.name:
                await self._send(call, self._patch(call))
            case "PUT" if target.name:
                await self._send(call, self._replace(call))
            case "DELETE" if target.name and not target.subresource:
                await self._delete(call)
            case _:
                raise not_allowed(f"{exchange.method} of {resource.plural}")

    def _resource(self, route: Route) -> Resource | None:
        return self.catalogue.find(group=route.group, version=route.version, plural=route.plural)

    async def _send(self, call: _Call, item: Item, *, status: int = HTTPStatus.OK) -> None:
        is_scale = call.target.subresource == "scale"
        body = encode_scale(item) if is_scale else self._object(call, item)
        await call.exchange.answer(body, status=status)

    def _object(self, call: _Call, item: Item) -> bytes:
        if TABLE in call.accept:
            metadata: JsonObject = {"resourceVersion": str(item.version)}
            return encode_table(item.resource, [item], metadata=metadata, now=self._now())
        return encode_object(item, partial=PARTIAL in call.accept)

    async def _list(self, call: _Call) -> None:
        resource, query = call.target.resource, call.query
        if resource.create_only:
            raise not_allowed(f"a list of {resource.plural}")
        if query.continue_token:
            page = self.pages.following(query.continue_token, query.limit)
        else:
            matcher = _matcher(call.target, query)
            namespace = call.target.namespace
            page = self.pages.first(resource, namespace, matcher=matcher, limit=query.limit)
        if TABLE in call.accept:
            metadata = list_metadata(page)
            body = encode_table(resource, page.items, metadata=metadata, now=self._now())
        else:
            body = encode_list(resource, page, partial=PARTIAL in call.accept)
        await call.exchange.answer(body)

    async def _watch(self, call: _Call) -> None:
        exchange, target, query = call.exchange, call.target, call.query
        options = WatchOptions(
            resource=target.resource,
            namespace=target.namespace,
            matcher=_matcher(target, query),
            version=query.resource_version,
            bookmarks=query.bookmarks,
            initial_events=query.send_initial_events,
            encode=lambda item: self._object(call, item),
            head=_head(call),
            timeout_seconds=query.timeout_seconds,
            bookmark_seconds=self._bookmark_seconds,
        )
        watch = Watch(self._store, options)
        await exchange.begin_stream()
        closing = asyncio.ensure_future(_end_when_closed(exchange, watch))
        try:
            async for line in watch.lines():
                await self._faults.until_lifted(exchange.method, exchange.path, user=call.user)
                if not await exchange.write(line):
                    break
            exchange.end_stream()
        finally:
            closing.cancel()

    async def _create(self, call: _Call) -> None:
        body = _object(call.exchange.body)
        if call.target.resource is ACCESS_REVIEWS:
            body["status"] = {"allowed": True}
            await call.exchange.answer(msgspec.json.encode(body), status=HTTPStatus.CREATED)
            return
        item = self._writer.create(call.target, body, dry_run=call.query.dry_run)
        await self._send(call, item, status=HTTPStatus.CREATED)

    def _patch(self, call: _Call) -> Item:
        body = _decoded(call.exchange.body)
        kind = call.exchange.header("Content-Type").partition(";")[0].strip()
        patch = Patch(kind, body)
        if call.target.subresource == "scale":
            patch = Patch(MERGE, resize(body))
        return self._writer.patch(call.target, patch, dry_run=call.query.dry_run)

    def _replace(self, call: _Call) -> Item:
        body = _object(call.exchange.body)
        if call.target.subresource == "scale":
            patch = Patch(MERGE, resize(body))
            return self._writer.patch(call.target, patch, dry_run=call.query.dry_run)
        return self._writer.replace(call.target, body, dry_run=call.query.dry_run)

    async def _delete(self, call: _Call) -> None:
        exchange, target = call.exchange, call.target
        asked = _object(exchange.body) if exchange.body else {}
        grace = exchange.argument("gracePeriodSeconds") or child(asked, "gracePeriodSeconds")
        policy = exchange.argument("propagationPolicy") or text(asked, "propagationPolicy")
        options = DeleteOptions(
            grace_seconds=None if grace is None else number({"grace": grace}, "grace"),
            uid=text(asked, "preconditions", "uid"),
            version=text(asked, "preconditions", "resourceVersion"),
            orphan=policy == "Orphan",
        )
        item = self._writer.delete(target, options, dry_run=call.query.dry_run)
        if self._store.get(target.resource, target.key) is not None:
            await self._send(call, item)
            return
        status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": _deleted(target.resource, item),
        }
        await exchange.answer(msgspec.json.encode(status))


def _matcher(target: Target, query: Query) -> Matcher:
    labels = label_matcher(query.label_selector)
    selector = query.field_selector
    if target.name:
        selector = f"{selector},metadata.name={target.name}".lstrip(",")
    fields = field_matcher(selector, target.resource)
    return lambda body: labels(body) and fields(body)


def _head(call: _Call) -> JsonObject:
    if PARTIAL in call.accept:
        return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    resource = call.target.resource
    return {"kind": resource.kind, "apiVersion": resource.api_version}


def _deleted(resource: Resource, item: Item) -> JsonObject:
    return {"name": item.name, "group": resource.group, "kind": resource.plural, "uid": item.uid}


def _decoded(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"the body is not JSON: {error}"[:200]) from error


def _object(body: bytes) -> JsonObject:
    decoded = _decoded(body)
    if not isinstance(decoded, dict):
        raise bad_request("the body is not an object")
    return mapping(decoded)


async def _end_when_closed(exchange: Exchange, watch: Watch) -> None:
    await exchange.closed.wait()
    watch.end()

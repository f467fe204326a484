"""Requests of resources, answered from the store: get, list, watch, create, update, patch, delete.

Imitates the API server's generic registry: which method fits which path, what a subresource does,
which shape the ``Accept`` header asks for. The rules of writing are in `writes`, those of lists in
`listing`, those of watches in `watching`. Called by `serving`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

import msgspec

from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.sim.exchange import Exchange
from gpu_pruner.sim.failures import ApiFailure, bad_request, not_allowed
from gpu_pruner.sim.faults import Faults
from gpu_pruner.sim.listing import PARTIAL, Pages, encode_list, encode_object, list_metadata
from gpu_pruner.sim.patches import MERGE
from gpu_pruner.sim.resources import ACCESS_REVIEWS, Catalogue, Resource
from gpu_pruner.sim.routes import Query, Route, parse_query
from gpu_pruner.sim.scaling import encode_scale, resize
from gpu_pruner.sim.selectors import Matcher, field_matcher, label_matcher
from gpu_pruner.sim.store import Item, Store
from gpu_pruner.sim.tables import TABLE, encode_table
from gpu_pruner.sim.tree import JsonObject, child, mapping, number, text
from gpu_pruner.sim.watching import Watch, WatchOptions
from gpu_pruner.sim.writes import DeleteOptions, Target, Writer


class Api:
    """The resource half of the API server."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        *,
        writer: Writer,
        faults: Faults,
        now: Callable[[], Timestamp],
        bookmark_seconds: Seconds,
    ) -> None:
        self.catalogue = catalogue
        self.pages = Pages(store)
        self._store = store
        self._writer = writer
        self._faults = faults
        self._now = now
        self._bookmark_seconds = bookmark_seconds

    def serves(self, route: Route) -> bool:
        """Tell whether the path of a route exists."""
        resource = self.catalogue.find(route.group, route.version, route.plural)
        if resource is None or (route.namespace and not resource.namespaced):
            return False
        if route.name and resource.namespaced and not route.namespace:
            return False
        subresources = {"": True, "status": resource.has_status, "scale": resource.has_scale}
        return subresources.get(route.subresource, False)

    async def answer(self, exchange: Exchange, route: Route, user: str) -> None:
        """Answer a request whose path exists.

        Raises:
            ApiFailure: it is refused.
        """
        resource = self.catalogue.find(route.group, route.version, route.plural)
        if resource is None:
            raise ApiFailure(HTTPStatus.NOT_FOUND, "NotFound", "there is no such resource")
        target = Target(resource, route.namespace, route.name, route.subresource)
        query = parse_query(exchange.argument)
        match exchange.method:
            case "GET" if query.watch:
                await self._watch(exchange, target, query, user)
            case "GET" if target.name:
                await self._send(exchange, target, self._writer.existing(target))
            case "GET":
                await self._list(exchange, target, query)
            case "POST" if not target.name:
                await self._create(exchange, target, query)
            case "PATCH" if target.name:
                item = self._patch(target, exchange, query)
                await self._send(exchange, target, item)
            case "PUT" if target.name:
                await self._send(exchange, target, self._replace(target, exchange, query))
            case "DELETE" if target.name and not target.subresource:
                await self._delete(exchange, target, query)
            case _:
                raise not_allowed(f"{exchange.method} of {resource.plural}")

    async def _send(
        self, exchange: Exchange, target: Target, item: Item, *, status: int = HTTPStatus.OK
    ) -> None:
        if target.subresource == "scale":
            await exchange.answer(encode_scale(item), status=status)
        else:
            await exchange.answer(self._object(exchange, item), status=status)

    def _object(self, exchange: Exchange, item: Item) -> bytes:
        accept = exchange.header("Accept")
        if TABLE in accept:
            metadata: JsonObject = {"resourceVersion": str(item.version)}
            return encode_table(item.resource, [item], metadata=metadata, now=self._now())
        return encode_object(item, partial=PARTIAL in accept)

    async def _list(self, exchange: Exchange, target: Target, query: Query) -> None:
        if target.resource.create_only:
            raise not_allowed(f"a list of {target.resource.plural}")
        if query.continue_token:
            page = self.pages.following(query.continue_token, query.limit)
        else:
            matcher = _matcher(target, query)
            page = self.pages.first(
                target.resource, target.namespace, matcher=matcher, limit=query.limit
            )
        accept = exchange.header("Accept")
        if TABLE in accept:
            body = encode_table(
                target.resource, page.items, metadata=list_metadata(page), now=self._now()
            )
        else:
            body = encode_list(target.resource, page, partial=PARTIAL in accept)
        await exchange.answer(body)

    async def _watch(self, exchange: Exchange, target: Target, query: Query, user: str) -> None:
        options = WatchOptions(
            namespace=target.namespace,
            matcher=_matcher(target, query),
            version=query.resource_version,
            bookmarks=query.bookmarks,
            initial_events=query.send_initial_events,
            encode=lambda item: self._object(exchange, item),
            timeout_seconds=query.timeout_seconds,
            bookmark_seconds=self._bookmark_seconds,
        )
        watch = Watch(self._store, target.resource, options)
        await exchange.begin_stream()
        closing = asyncio.ensure_future(_end_when_closed(exchange, watch))
        try:
            async for line in watch.lines():
                await self._faults.until_lifted(exchange.method, exchange.path, user)
                if not await exchange.write(line):
                    break
            exchange.end_stream()
        finally:
            closing.cancel()

    async def _create(self, exchange: Exchange, target: Target, query: Query) -> None:
        body = _object(exchange.body)
        if target.resource is ACCESS_REVIEWS:
            body["status"] = {"allowed": True}
            await exchange.answer(msgspec.json.encode(body), status=HTTPStatus.CREATED)
            return
        item = self._writer.create(target, body, dry_run=query.dry_run)
        await self._send(exchange, target, item, status=HTTPStatus.CREATED)

    def _patch(self, target: Target, exchange: Exchange, query: Query) -> Item:
        content_type = exchange.header("Content-Type").partition(";")[0].strip()
        patch = _decoded(exchange.body)
        if target.subresource == "scale":
            patch, content_type = resize(patch), MERGE
        return self._writer.patch(target, patch, content_type, dry_run=query.dry_run)

    def _replace(self, target: Target, exchange: Exchange, query: Query) -> Item:
        body = _object(exchange.body)
        if target.subresource == "scale":
            return self._writer.patch(target, resize(body), MERGE, dry_run=query.dry_run)
        return self._writer.replace(target, body, dry_run=query.dry_run)

    async def _delete(self, exchange: Exchange, target: Target, query: Query) -> None:
        asked = _object(exchange.body) if exchange.body else {}
        grace = exchange.argument("gracePeriodSeconds") or child(asked, "gracePeriodSeconds")
        policy = exchange.argument("propagationPolicy") or text(asked, "propagationPolicy")
        options = DeleteOptions(
            grace_seconds=None if grace is None else number({"grace": grace}, "grace"),
            uid=text(asked, "preconditions", "uid"),
            version=text(asked, "preconditions", "resourceVersion"),
            orphan=policy == "Orphan",
        )
        item = self._writer.delete(target, options, dry_run=query.dry_run)
        if self._store.get(target.resource, target.namespace, target.name) is not None:
            await self._send(exchange, target, item)
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

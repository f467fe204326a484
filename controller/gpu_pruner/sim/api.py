"""Requests of resources, answered from the store: get, list, watch, create, update, patch, delete.

Imitates the API server's generic registry: which method fits which path, what a subresource does,
which shape the ``Accept`` header asks for. The rules of writing are in `writes`, those of lists in
`listing`, those of watches in `watching`. Called by `serving`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from gpu_pruner.model.units import Seconds
from gpu_pruner.sim.access import Access, Person
from gpu_pruner.sim.bodies import decoded_body, object_body, object_of_kind
from gpu_pruner.sim.deletes import DeleteOptions, Dependents
from gpu_pruner.sim.exchange import Exchange
from gpu_pruner.sim.failures import (
    invalid_option,
    no_such_path,
    not_allowed,
    unsupported_media,
)
from gpu_pruner.sim.faults import Faults
from gpu_pruner.sim.listing import PARTIAL, Pages, encode_list, encode_object, list_metadata
from gpu_pruner.sim.patches import Patch, unsupported
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.reviews import reviewed, token_for
from gpu_pruner.sim.routes import Query, Route, Validation, parse_query
from gpu_pruner.sim.scaling import encode_scale, patched_scale, replaced_scale
from gpu_pruner.sim.selectors import Matcher, field_matcher, label_matcher
from gpu_pruner.sim.state import State
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tables import TABLE, encode_table
from gpu_pruner.sim.targets import Target
from gpu_pruner.sim.tree import JsonObject, child, number, text
from gpu_pruner.sim.watching import Watch, WatchOptions
from gpu_pruner.sim.writes import WriteOptions


@dataclass(frozen=True, slots=True)
class _Call:
    """A request whose path and query are understood."""

    exchange: Exchange
    target: Target
    query: Query
    asker: Person
    options: WriteOptions = field(init=False)

    def __post_init__(self) -> None:
        """Read how the client wants something written."""
        program = self.exchange.header("User-Agent").partition("/")[0]
        options = WriteOptions(
            dry_run=self.query.dry_run,
            manager=self.query.field_manager or program or "unknown",
            strict=self.query.validation is Validation.STRICT,
        )
        object.__setattr__(self, "options", options)

    @property
    def accept(self) -> str:
        """Return the ``Accept`` header."""
        return self.exchange.header("Accept")

    @property
    def warnings(self) -> Mapping[str, str]:
        """Return the header that tells of unknown fields."""
        if self.query.validation is not Validation.WARN or not self.options.unknown:
            return {}
        told = (f'299 - "unknown field \\"{one}\\""' for one in self.options.unknown)
        return {"Warning": ", ".join(told)}


class Api:
    """The resource half of the API server."""

    def __init__(
        self,
        state: State,
        *,
        access: Access,
        faults: Faults,
        bookmark_seconds: Seconds,
    ) -> None:
        self.catalogue = state.catalogue
        self.pages = Pages(state.store)
        self._store = state.store
        self._writer = state.writer
        self._now = state.moments.now
        self._access = access
        self._faults = faults
        self._bookmark_seconds = bookmark_seconds

    def serves(self, route: Route) -> bool:
        """Tell whether the path of a route exists."""
        resource = self._resource(route)
        if resource is None or (route.namespace and not resource.namespaced):
            return False
        if route.name and resource.namespaced and not route.namespace:
            return False
        subresources = {
            "": not (resource.create_only and route.name),
            "status": resource.has_status,
            "scale": resource.scale is not None,
            "token": resource.token_requests,
        }
        return subresources.get(route.subresource, False)

    def knows_group(self, route: Route) -> bool:
        """Tell whether there is anything in the group of a route."""
        return any(one.group == route.group for one in self.catalogue)

    async def answer(self, exchange: Exchange, *, route: Route, asker: Person) -> None:
        """Answer a request whose path exists and who is allowed to make it.

        Raises:
            ApiFailure: it is refused.
        """
        resource = self._resource(route)
        if resource is None:
            raise no_such_path()
        target = Target(resource, route.namespace, route.name, route.subresource)
        call = _Call(exchange, target, parse_query(exchange.argument), asker)
        match exchange.method:
            case "GET" if call.query.watch:
                await self._watch(call)
            case "GET" if target.name:
                await self._send(call, self._writer.existing(target))
            case "GET":
                await self._list(call)
            case "POST" if resource.create_only or target.subresource == "token":
                await self._review(call)
            case "POST" if not target.name:
                await self._create(call)
            case "PATCH" if target.name:
                await self._send(call, self._patch(call))
            case "PUT" if target.name:
                await self._replace(call)
            case "DELETE" if target.name and not target.subresource:
                await self._delete(call)
            case _:
                raise not_allowed(f"{exchange.method} of {resource.plural}")

    def _resource(self, route: Route) -> Resource | None:
        return self.catalogue.find(group=route.group, version=route.version, plural=route.plural)

    async def _send(self, call: _Call, item: Item, *, status: int = HTTPStatus.OK) -> None:
        is_scale = call.target.subresource == "scale"
        body = encode_scale(item) if is_scale else self._object(call, item)
        await call.exchange.answer(body, status=status, headers=call.warnings)

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
            selects = bool(query.label_selector or query.field_selector)
            matcher = _matcher(call.target, query) if selects else None
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
                await self._faults.until_lifted(
                    exchange.method, exchange.path, user=call.asker.name
                )
                if not await exchange.write(line):
                    break
            exchange.end_stream()
        finally:
            closing.cancel()

    async def _review(self, call: _Call) -> None:
        target, body = call.target, object_body(call.exchange)
        if target.subresource == "token":
            account = self._writer.existing(target)
            answer = token_for(account, body, access=self._access, now=self._now())
        else:
            answer = reviewed(target.resource, body, access=self._access, asker=call.asker)
        await call.exchange.answer(msgspec.json.encode(answer), status=HTTPStatus.CREATED)

    async def _create(self, call: _Call) -> None:
        body = object_of_kind(call.target.resource, call.exchange)
        item = self._writer.create(call.target, body, call.options)
        await self._send(call, item, status=HTTPStatus.CREATED)

    def _patch(self, call: _Call) -> Item:
        kind = call.exchange.header("Content-Type").partition(";")[0].strip()
        if unsupported(kind, call.target.resource):
            raise unsupported_media(kind)
        patch = Patch(kind, decoded_body(call.exchange.body))
        if call.target.subresource == "scale":
            patch = patched_scale(self._writer.existing(call.target), patch.body)
        return self._writer.patch(call.target, patch, call.options)

    async def _replace(self, call: _Call) -> None:
        target, options = call.target, call.options
        if target.subresource == "scale":
            scale = object_body(call.exchange)
            patch = replaced_scale(self._writer.existing(target), scale)
            await self._send(call, self._writer.patch(target, patch, options))
            return
        body = object_of_kind(target.resource, call.exchange)
        if target.resource.upserts and self._store.get(target.resource, target.key) is None:
            item = self._writer.create(target, body, options)
            await self._send(call, item, status=HTTPStatus.CREATED)
            return
        await self._send(call, self._writer.replace(target, body, options))

    async def _delete(self, call: _Call) -> None:
        exchange, target = call.exchange, call.target
        asked = object_body(exchange) if exchange.body else {}
        options = _delete_options(exchange, asked)
        item, is_gone = self._writer.delete(target, options, dry_run=call.query.dry_run)
        if not is_gone:
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


def _delete_options(exchange: Exchange, asked: JsonObject) -> DeleteOptions:
    grace = exchange.argument("gracePeriodSeconds") or child(asked, "gracePeriodSeconds")
    policy = exchange.argument("propagationPolicy") or text(asked, "propagationPolicy")
    if policy not in {"", *Dependents}:
        raise invalid_option("propagationPolicy", policy)
    return DeleteOptions(
        grace_seconds=None if grace is None else number({"grace": grace}, "grace"),
        uid=text(asked, "preconditions", "uid"),
        version=text(asked, "preconditions", "resourceVersion"),
        dependents=Dependents(policy or Dependents.BACKGROUND),
    )


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
    group: JsonObject = {"group": resource.group} if resource.group else {}
    return {"name": item.name, **group, "kind": resource.plural, "uid": item.uid}


async def _end_when_closed(exchange: Exchange, watch: Watch) -> None:
    await exchange.closed.wait()
    watch.end()

"""Watches: what they begin with, what they tell, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from support.bodies import thing
from support.servers import Server

from gpu_pruner.sim.tree import JsonObject, mapping, number, text, texts

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"


def told(event: JsonObject) -> tuple[str, str]:
    return text(event, "type"), text(event, "object", "metadata", "name")


async def make(server: Server, name: str, **labels: str) -> str:
    """Make a ConfigMap and return its version."""
    body: JsonObject = {"metadata": {"name": name, "labels": labels}}
    return (await server.caller.post(server.config_maps, body)).version


async def label(server: Server, name: str, **labels: str | None) -> None:
    await server.caller.patch(f"{server.config_maps}/{name}", {"metadata": {"labels": labels}})


async def collect(events: AsyncIterator[JsonObject], count: int) -> list[JsonObject]:
    async with asyncio.timeout(60):
        return [await anext(events) for _ in range(count)]


def watching(server: Server, query: str, *, accept: str = "application/json"):
    return aclosing(server.caller.watch(f"{server.config_maps}?watch=true&{query}", accept=accept))


async def test_changes_after_a_version_come_in_order(server: Server) -> None:
    version = await make(server, "before")
    await make(server, "first")

    async with watching(server, f"resourceVersion={version}") as events:
        seen = await collect(events, 1)
        await label(server, "first", color="red")
        await server.caller.delete(f"{server.config_maps}/first")
        seen += await collect(events, 2)

    assert [told(one) for one in seen] == [
        ("ADDED", "first"),
        ("MODIFIED", "first"),
        ("DELETED", "first"),
    ]
    assert all(text(one, "object", "kind") == "ConfigMap" for one in seen)
    versions = [int(text(one, "object", "metadata", "resourceVersion")) for one in seen]
    assert int(version) < versions[0] < versions[1] < versions[2]
    assert texts(seen[2], "object", "metadata", "labels") == {"color": "red"}


async def test_a_list_tells_where_a_watch_goes_on(server: Server) -> None:
    await make(server, "before")
    listed = await server.caller.get(f"{server.config_maps}?limit=500")
    await make(server, "after")

    async with watching(server, f"resourceVersion={listed.version}") as events:
        assert [told(one) for one in await collect(events, 1)] == [("ADDED", "after")]


async def test_what_leaves_the_selector_is_deleted(server: Server) -> None:
    version = await make(server, "one", color="red")

    async with watching(server, f"resourceVersion={version}&labelSelector=color%3Dred") as events:
        await label(server, "one", color="blue")
        await label(server, "one", color="red")
        seen = await collect(events, 2)

    assert [told(one) for one in seen] == [("DELETED", "one"), ("ADDED", "one")]


async def test_other_namespaces_are_not_told(server: Server) -> None:
    version = await make(server, "one")
    await server.caller.post(
        "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "other-"}}
    )
    await make(server, "two")

    async with watching(server, f"resourceVersion={version}") as events:
        assert [told(one) for one in await collect(events, 1)] == [("ADDED", "two")]


async def test_without_a_version_it_begins_with_what_there_is(server: Server) -> None:
    await make(server, "one", mine="yes")

    async with watching(server, "labelSelector=mine%3Dyes") as events:
        seen = await collect(events, 1)

    assert told(seen[0]) == ("ADDED", "one")


async def test_the_first_state_can_be_asked_for_and_ends_with_a_bookmark(server: Server) -> None:
    await make(server, "one", mine="yes")
    query = (
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true&labelSelector=mine%3Dyes"
    )

    async with watching(server, query) as events:
        first, end = await collect(events, 2)

    assert told(first) == ("ADDED", "one")
    assert text(end, "type") == "BOOKMARK"
    assert texts(end, "object", "metadata", "annotations") == {"k8s.io/initial-events-end": "true"}
    assert int(text(end, "object", "metadata", "resourceVersion")) > 0


async def test_a_bookmark_comes_before_the_end(server: Server) -> None:
    """Where anything happened, be it elsewhere, the last bookmark leaves 1 to 3 seconds."""
    version = await make(server, "one")
    query = f"resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=6"

    async with watching(server, query) as events:
        following = asyncio.create_task(collect(events, 1))
        await asyncio.sleep(1)  # the watch is open
        other = await server.caller.post(
            "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "other-"}}
        )
        (seen,) = await following

    assert text(seen, "type") == "BOOKMARK"
    bookmark = mapping(seen, "object")
    assert (bookmark["kind"], bookmark["apiVersion"]) == ("ConfigMap", "v1")
    assert int(text(bookmark, "metadata", "resourceVersion")) >= int(other.version)
    assert "name" not in mapping(bookmark, "metadata")


async def test_it_ends_when_its_time_is_over(server: Server) -> None:
    version = await make(server, "one")

    async with watching(server, f"resourceVersion={version}&timeoutSeconds=1") as events:
        assert [one async for one in events] == []


@pytest.mark.parametrize("wish", ["", "&allowWatchBookmarks=true"])
async def test_a_version_that_is_too_old_is_told_in_the_stream(
    server: Server, things: str, wish: str
) -> None:
    path = f"{things}?watch=true&resourceVersion=1{wish}"
    async with aclosing(server.caller.watch(path)) as events:
        seen = [one async for one in events]

    (error,) = seen
    status = mapping(error, "object")
    assert (error["type"], status["kind"], status["status"]) == ("ERROR", "Status", "Failure")
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert "too old resource version" in text(status, "message")


async def test_metadata_alone_can_be_watched(server: Server) -> None:
    version = await make(server, "one")
    await make(server, "two", color="red")

    async with watching(server, f"resourceVersion={version}", accept=PARTIAL) as events:
        (seen,) = await collect(events, 1)

    assert told(seen) == ("ADDED", "two")
    assert text(seen, "object", "kind") == "PartialObjectMetadata"
    assert set(mapping(seen, "object")) == {"kind", "apiVersion", "metadata"}


async def test_one_object_can_be_watched(server: Server) -> None:
    version = await make(server, "one")
    await make(server, "two")
    await label(server, "one", color="red")

    query = f"resourceVersion={version}&fieldSelector=metadata.name%3Done"
    async with watching(server, query) as events:
        assert [told(one) for one in await collect(events, 1)] == [("MODIFIED", "one")]


async def test_a_custom_kind_can_be_watched(server: Server, things: str) -> None:
    made = await server.caller.post(things, thing("one"))
    await server.caller.patch(f"{things}/one/status", {"status": {"size": 3}})

    path = f"{things}?watch=true&resourceVersion={made.version}"
    async with aclosing(server.caller.watch(path)) as events:
        (seen,) = await collect(events, 1)

    assert told(seen) == ("MODIFIED", "one")
    assert number(seen, "object", "status", "size") == 3

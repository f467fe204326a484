from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from support.simulated import CONFIG_MAPS, DEPLOYMENTS, SMALL_WORLD, Simulation

from gpu_pruner.sim.cluster import Tuning
from gpu_pruner.sim.faults import Fault, Trouble
from gpu_pruner.sim.tree import JsonObject, child, mapping, number, text


@pytest.fixture
async def chatty() -> AsyncIterator[Simulation]:
    """Sends a bookmark as soon as it is quiet."""
    async for one in Simulation.of(SMALL_WORLD, tuning=Tuning(bookmark_seconds=0.05)):
        yield one


def told(event: JsonObject) -> tuple[str, str]:
    return text(event, "type"), text(event, "object", "metadata", "name")


async def make(simulation: Simulation, name: str, **labels: str) -> str:
    answer = await simulation.caller.post(
        CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}}
    )
    return answer.version


async def label(simulation: Simulation, name: str, **labels: str | None) -> None:
    await simulation.caller.patch(f"{CONFIG_MAPS}/{name}", {"metadata": {"labels": labels}})


async def collect(events: AsyncIterator[JsonObject], count: int) -> list[JsonObject]:
    found = []
    async for event in events:
        found.append(event)
        if len(found) == count:
            break
    return found


async def test_changes_after_a_version_come_in_order(simulation: Simulation) -> None:
    version = await make(simulation, "before")
    await make(simulation, "first")
    path = f"{CONFIG_MAPS}?watch=true&resourceVersion={version}"
    async with aclosing(simulation.caller.watch(path)) as events:
        assert told(await anext(events)) == ("ADDED", "first")
        await label(simulation, "first", color="red")
        await simulation.caller.delete(f"{CONFIG_MAPS}/first")
        seen = await collect(events, 2)
    assert [told(one) for one in seen] == [("MODIFIED", "first"), ("DELETED", "first")]
    versions = [int(text(one, "object", "metadata", "resourceVersion")) for one in seen]
    assert int(version) < versions[0] < versions[1]


async def test_without_a_version_it_begins_with_what_there_is(simulation: Simulation) -> None:
    async with aclosing(simulation.caller.watch(f"{DEPLOYMENTS}?watch=true")) as events:
        event = await anext(events)
    assert told(event) == ("ADDED", "serve")
    assert child(event, "object", "kind") == "Deployment"


async def test_what_leaves_the_selector_is_deleted(simulation: Simulation) -> None:
    version = await make(simulation, "one", color="red")
    path = f"{CONFIG_MAPS}?watch=true&resourceVersion={version}&labelSelector=color=red"
    async with aclosing(simulation.caller.watch(path)) as events:
        await label(simulation, "one", color="blue")
        await label(simulation, "one", color="red")
        seen = [told(one) for one in await collect(events, 2)]
    assert seen == [("DELETED", "one"), ("ADDED", "one")]


async def test_other_namespaces_are_not_seen(simulation: Simulation) -> None:
    version = await make(simulation, "one")
    path = f"{CONFIG_MAPS}?watch=true&resourceVersion={version}"
    async with aclosing(simulation.caller.watch(path)) as events:
        elsewhere = "/api/v1/namespaces/default/configmaps"
        await simulation.caller.post(elsewhere, {"metadata": {"name": "elsewhere"}})
        await make(simulation, "two")
        assert told(await anext(events)) == ("ADDED", "two")


async def test_bookmarks_carry_the_newest_version_of_all(chatty: Simulation) -> None:
    version = await make(chatty, "one")
    path = f"{DEPLOYMENTS}?watch=true&resourceVersion={version}&allowWatchBookmarks=true"
    async with aclosing(chatty.caller.watch(path)) as events:
        newest = await make(chatty, "two")
        bookmark = await anext(events)
        while text(bookmark, "object", "metadata", "resourceVersion") != newest:
            bookmark = await anext(events)
    assert text(bookmark, "type") == "BOOKMARK"
    assert child(bookmark, "object") == {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"resourceVersion": newest},
    }


async def test_no_bookmarks_unless_asked(chatty: Simulation) -> None:
    version = await make(chatty, "one")
    path = f"{CONFIG_MAPS}?watch=true&resourceVersion={version}&timeoutSeconds=1"
    seen = [one async for one in chatty.caller.watch(path)]
    assert seen == []


async def test_initial_events_end_with_a_marked_bookmark(simulation: Simulation) -> None:
    path = (
        f"{DEPLOYMENTS}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true"
        "&resourceVersionMatch=NotOlderThan"
    )
    async with aclosing(simulation.caller.watch(path)) as events:
        added, bookmark = await collect(events, 2)
    assert told(added) == ("ADDED", "serve")
    annotations = child(bookmark, "object", "metadata", "annotations")
    assert annotations == {"k8s.io/initial-events-end": "true"}


async def test_metadata_alone_where_that_is_accepted(simulation: Simulation) -> None:
    path = f"{DEPLOYMENTS}?watch=true&sendInitialEvents=true"
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    async with aclosing(simulation.caller.watch(path, accept=accept)) as events:
        added, bookmark = await collect(events, 2)
    assert child(added, "object", "kind") == "PartialObjectMetadata"
    assert "spec" not in mapping(added, "object")
    assert child(bookmark, "object", "kind") == "PartialObjectMetadata"


async def test_a_version_that_is_too_old_is_an_error_event(simulation: Simulation) -> None:
    version = await make(simulation, "one")
    await make(simulation, "two")
    simulation.cluster.forget_history()
    path = f"{CONFIG_MAPS}?watch=true&resourceVersion={version}"
    seen = [one async for one in simulation.caller.watch(path)]
    assert [text(one, "type") for one in seen] == ["ERROR"]
    assert number(seen[0], "object", "code") == 410
    assert text(seen[0], "object", "reason") == "Expired"


async def test_history_is_bounded() -> None:
    async for one in Simulation.of(SMALL_WORLD, tuning=Tuning(history=3)):
        version = await make(one, "first")
        for index in range(4):
            await make(one, f"later-{index}")
        path = f"{CONFIG_MAPS}?watch=true&resourceVersion={version}"
        seen = [event async for event in one.caller.watch(path)]
        assert [text(event, "type") for event in seen] == ["ERROR"]


async def test_a_cut_ends_the_stream(simulation: Simulation) -> None:
    events = simulation.caller.watch(f"{DEPLOYMENTS}?watch=true")
    assert told(await anext(events)) == ("ADDED", "serve")
    simulation.cluster.cut_connections(DEPLOYMENTS)
    assert [one async for one in events] == []


async def test_a_stall_silences_an_open_watch_until_it_is_lifted(simulation: Simulation) -> None:
    version = await make(simulation, "one")
    path = f"{CONFIG_MAPS}?watch=true&resourceVersion={version}"
    async with aclosing(simulation.caller.watch(path)) as events:
        await make(simulation, "two")
        assert told(await anext(events)) == ("ADDED", "two")
        fault = simulation.cluster.faults.add(
            Fault(path="configmaps$", method="GET", trouble=Trouble.STALL)
        )
        waiting = asyncio.ensure_future(anext(events))
        await make(simulation, "three")
        await simulation.clock.settle()
        assert not waiting.done()
        simulation.cluster.faults.remove(fault)
        assert told(await waiting) == ("ADDED", "three")

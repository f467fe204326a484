from __future__ import annotations

from dataclasses import replace

import pytest
from support.acting import BOOK, DEPLOYMENT, SPACE, World
from support.decisions import a_decision
from support.memory_cluster import tree

from gpu_pruner.errors import Forbidden
from gpu_pruner.kube.gpuworkloads import name_for
from gpu_pruner.kube.resources import GPUWORKLOADS, NAMESPACES
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.orders import Result
from gpu_pruner.model.rules import Mode

NAME = name_for(DEPLOYMENT)
FRESH = replace(BOOK, phase=Phase.NOMINATED)


async def test_the_first_write_creates_the_object_owned_by_its_root() -> None:
    world = World()
    outcome = await world.actor.write_book(a_decision(DEPLOYMENT), FRESH)
    assert outcome.result is Result.DONE
    assert world.wrote() == [("create", "gpuworkloads", ""), ("patch", "gpuworkloads", "status")]
    meta = tree(world.cluster.stored(GPUWORKLOADS, SPACE, NAME)["metadata"])
    assert meta["ownerReferences"] == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "server", "uid": "uid-d"}
    ]
    read = world.bookkeeping.book
    assert replace(read, object_name="", resource_version="") == FRESH


async def test_a_known_book_is_patched_with_its_resource_version() -> None:
    world = World()
    book = await world.has_book(FRESH)
    later = replace(book, phase=Phase.WARNED)
    outcome = await world.actor.write_book(a_decision(DEPLOYMENT), later)
    assert outcome.result is Result.DONE
    sent = world.cluster.writes[-1].body
    assert tree(sent["metadata"])["resourceVersion"] == book.resource_version
    assert world.bookkeeping.book.phase is Phase.WARNED


async def test_the_status_never_touches_what_people_want() -> None:
    world = World()
    book = await world.has_book(intent={"exempt": True})
    await world.actor.write_book(a_decision(DEPLOYMENT), book)
    assert world.bookkeeping.intent.exempt


async def test_a_book_that_changed_meanwhile_is_a_conflict_and_stays() -> None:
    world = World()
    book = await world.has_book(FRESH)
    world.says({"release": True})
    later = replace(book, phase=Phase.WARNED)
    outcome = await world.actor.write_book(a_decision(DEPLOYMENT), later)
    assert outcome.result is Result.CONFLICT
    assert world.bookkeeping.book.phase is Phase.NOMINATED


async def test_an_object_made_by_somebody_else_meanwhile_is_a_conflict() -> None:
    world = World()
    await world.has_book()
    unseen = replace(FRESH, object_name="", resource_version="")
    outcome = await world.actor.write_book(a_decision(DEPLOYMENT), unseen)
    assert outcome.result is Result.CONFLICT


async def test_a_deleted_object_is_created_again() -> None:
    world = World()
    book = await world.has_book(FRESH)
    world.cluster.remove(GPUWORKLOADS, SPACE, NAME)
    outcome = await world.actor.write_book(a_decision(DEPLOYMENT), book)
    assert outcome.result is Result.DONE
    assert world.bookkeeping.book.phase is Phase.NOMINATED


async def test_a_missing_kind_is_refused_with_the_fix_and_asked_for_once_a_minute() -> None:
    world = World()
    world.cluster.missing_kinds.add("gpuworkloads")
    first = await world.actor.write_book(a_decision(DEPLOYMENT), FRESH)
    assert first.result is Result.REFUSED
    assert "kubectl apply -k deploy/crds" in first.detail
    world.cluster.missing_kinds.clear()
    assert await world.actor.write_book(a_decision(DEPLOYMENT), FRESH) == first
    world.clock.at += 60
    again = await world.actor.write_book(a_decision(DEPLOYMENT), FRESH)
    assert again.result is Result.DONE


async def test_a_missing_namespace_is_not_taken_for_a_missing_kind() -> None:
    world = World()
    world.cluster.remove(NAMESPACES, "", SPACE)
    outcome = await world.actor.write_book(a_decision(DEPLOYMENT), FRESH)
    assert (outcome.result, outcome.detail) == (
        Result.REFUSED,
        "namespace team-a does not exist any more",
    )


async def test_a_forbidden_write_is_a_failure_with_the_servers_words() -> None:
    world = World()
    world.cluster.failures["create", "gpuworkloads"] = Forbidden("may not create gpuworkloads")
    outcome = await world.actor.write_book(a_decision(DEPLOYMENT), FRESH)
    assert (outcome.result, outcome.detail) == (Result.FAILED, "may not create gpuworkloads")


async def test_a_dry_run_keeps_its_books() -> None:
    world = World(mode=Mode.DRY_RUN)
    await world.actor.write_book(a_decision(DEPLOYMENT), FRESH)
    assert world.bookkeeping.book.phase is Phase.NOMINATED


async def test_no_more_than_two_writes_a_second_in_the_long_run() -> None:
    world = World()
    book = await world.has_book(FRESH)
    began = world.clock.now()
    for _ in range(50):
        await world.actor.write_book(a_decision(DEPLOYMENT), book)
        book = world.bookkeeping.book
    assert world.clock.now() - began == 20.0  # 10 at once, 40 at half a second


async def test_a_clock_that_is_set_back_does_not_stop_the_writes() -> None:
    world = World()
    book = await world.has_book(FRESH)
    await world.actor.write_book(a_decision(DEPLOYMENT), book)
    world.clock.at -= 86_400
    world.clock.waits.clear()
    await world.actor.write_book(a_decision(DEPLOYMENT), world.bookkeeping.book)
    assert world.clock.waits == []


async def test_a_blank_book_reads_back_blank() -> None:
    world = World()
    await world.actor.write_book(a_decision(DEPLOYMENT), Book())
    read = world.bookkeeping.book
    assert replace(read, object_name="", resource_version="") == Book()


@pytest.mark.parametrize("spec", [{"uid": "uid-of-another"}, {"uid": ""}])
async def test_a_strangers_object_under_our_name_is_reported_with_the_fix(
    spec: dict[str, str],
) -> None:
    world = World()
    world.cluster.put(
        GPUWORKLOADS,
        {
            "metadata": {"name": NAME, "namespace": SPACE, "uid": "uid-g"},
            "spec": {
                "rootRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", **spec}
            },
        },
    )
    before = world.cluster.stored(GPUWORKLOADS, SPACE, NAME)
    outcome = await world.actor.write_book(a_decision(DEPLOYMENT), FRESH)
    assert outcome.result is Result.REFUSED
    assert f"kubectl delete gpw {NAME} -n {SPACE}" in outcome.detail
    assert world.cluster.stored(GPUWORKLOADS, SPACE, NAME) == before

"""A pause that somebody calls wrong: what is written, with its evidence, before the restore."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.acting import BOOK, DEPLOYMENT, NOTEBOOK, SPACE, World, a_root
from support.manual_clock import NOON
from support.memory_cluster import Json, tree

from gpu_pruner.act.complaints import Wrong, complain
from gpu_pruner.act.levers import Levers
from gpu_pruner.errors import ActionRefused, Conflict
from gpu_pruner.kube.gpuworkloads import name_for
from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.units import DAY, Timestamp, rfc3339
from gpu_pruner.model.workload import Complaint, RootRef

SAID = Wrong(by="ada", reason="it was training", at=NOON + 60)
SENTENCE = "No GPU work on 4 of 4 GPUs."


async def a_pause(root: RootRef = DEPLOYMENT, *, by: str = "gpu-pruner") -> World:
    world = World(root)
    world.has(a_root(root))
    await world.actor.pause(world.order(by=by), await world.has_book())
    world.cluster.writes.clear()
    return world


async def said_of(world: World, said: Wrong = SAID) -> Timestamp | None:
    root, record = await world.actor.recorded(replace(world.root, uid=""))
    return await complain(world.cluster, root, record, said, levers=Levers())


def spec(world: World) -> dict[str, Json]:
    return tree(world.cluster.stored(GPUWORKLOADS, SPACE, name_for(world.root))["spec"])


@pytest.mark.parametrize("root", [DEPLOYMENT, NOTEBOOK], ids=lambda one: one.kind)
async def test_a_complaint_and_a_day_of_exemption_are_one_write_with_the_evidence(
    root: RootRef,
) -> None:
    world = await a_pause(root)
    assert await said_of(world) == NOON + 60 + DAY
    assert world.wrote() == [("patch", "gpuworkloads", "")]
    assert world.bookkeeping.intent.complaint == Complaint(
        pause="d-1",
        at=NOON + 60,
        by="ada",
        reason="it was training",
        evidence=SENTENCE,
        paused_at=NOON,
    )
    intent = world.bookkeeping.intent
    assert (intent.exempt, intent.exempt_until, intent.exempt_by) == (True, NOON + 60 + DAY, "ada")
    assert intent.exempt_reason == "its pause was wrong: it was training"


@pytest.mark.parametrize("until", [None, rfc3339(NOON + 30 * DAY)])
async def test_an_exemption_that_reaches_farther_stays(until: str | None) -> None:
    world = await a_pause()
    theirs: dict[str, Json] = {"exempt": True, "exemptBy": "carol", "exemptReason": "a course"}
    world.says(theirs if until is None else {**theirs, "exemptUntil": until})
    assert await said_of(world) == (None if until is None else NOON + 30 * DAY)
    assert (spec(world)["exemptBy"], spec(world)["wrongBy"]) == ("carol", "ada")


async def test_a_shorter_exemption_is_prolonged() -> None:
    world = await a_pause()
    world.says({"exempt": True, "exemptUntil": rfc3339(NOON + 600), "exemptBy": "carol"})
    await said_of(world)
    assert (spec(world)["exemptBy"], spec(world)["exemptUntil"]) == (
        "ada",
        rfc3339(NOON + 60 + DAY),
    )


async def test_it_can_be_said_after_somebody_restarted_the_workload() -> None:
    world = await a_pause()
    live = world.live
    world.has({**live, "spec": {**tree(live["spec"]), "replicas": 3}})
    await said_of(world)
    assert spec(world)["wrongEvidence"] == SENTENCE


async def test_it_can_be_said_where_only_the_book_has_the_record() -> None:
    world = await a_pause()
    await world.actor.restore(DEPLOYMENT, by="ada", why="needed")
    assert world.annotation(PAUSED) is None
    await said_of(world)
    assert spec(world)["wrongPause"] == "d-1"


async def test_a_gpuworkload_that_was_deleted_is_made_again() -> None:
    world = await a_pause()
    root, record = await world.actor.recorded(DEPLOYMENT)
    other = World()
    await complain(other.cluster, root, record, SAID, levers=Levers())
    assert (spec(other)["wrongBy"], spec(other)["exempt"]) == ("ada", True)
    assert None not in spec(other).values()


async def test_a_pause_that_a_person_ordered_is_no_mistake_of_ours() -> None:
    world = await a_pause(by="carol")
    with pytest.raises(ActionRefused, match="paused by carol .* resume it without --wrong"):
        await said_of(world)
    assert world.wrote() == []


async def test_without_a_record_there_is_nothing_to_call_wrong() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.has_book(BOOK)
    with pytest.raises(ActionRefused, match="no record of a pause of ours"):
        await said_of(world)


async def test_what_could_not_be_written_is_an_error_and_can_be_said_again() -> None:
    world = await a_pause()
    world.cluster.failures["patch", "gpuworkloads"] = Conflict("changed")
    with pytest.raises(Conflict):
        await said_of(world)
    world.cluster.failures.clear()
    await said_of(world)
    await said_of(world, replace(SAID, at=NOON + 120))
    assert (spec(world)["wrongPause"], spec(world)["wrongAt"]) == ("d-1", rfc3339(NOON + 120))

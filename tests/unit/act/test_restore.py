from __future__ import annotations

from dataclasses import replace

import pytest
from support.acting import (
    DEPLOYMENT,
    NOTEBOOK,
    STATEFUL_SET,
    World,
    a_root,
    assert_untouched,
)
from support.memory_cluster import Json, tree

from gpu_pruner.act.actor import Actor
from gpu_pruner.errors import Conflict
from gpu_pruner.model.annotations import NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.book import Phase
from gpu_pruner.model.orders import Result
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.workload import RootRef


@pytest.mark.parametrize("root", [DEPLOYMENT, STATEFUL_SET, NOTEBOOK])
async def test_what_was_paused_comes_back_exactly_and_leaves_no_trace(root: RootRef) -> None:
    world = World(root)
    world.has(a_root(root))
    before = world.live
    await world.actor.pause(world.order(), await world.has_book())
    assert world.live != before

    outcome = await world.actor.restore(root, by="gpu-pruner", why="kept")

    assert outcome.result is Result.DONE
    assert world.live["spec"] == before["spec"]
    assert tree(world.live["metadata"])["annotations"] == {"owner-note": "mine"}


async def test_a_dry_run_restores_nothing() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    world.cluster.writes.clear()
    rehearsing = Actor(world.cluster, clock=world.clock, mode=Mode.DRY_RUN)
    outcome = await rehearsing.restore(DEPLOYMENT, by="ada", why="")
    assert (outcome.result, outcome.detail) == (
        Result.DRY_RUN,
        "would be restored; it had 3 replicas",
    )
    assert world.wrote() == []


async def test_a_persons_restore_is_told_to_the_controller() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    await world.actor.restore(DEPLOYMENT, by="ada", why="needed")
    book = world.bookkeeping.book
    assert (book.phase, book.message) == (Phase.RESTORING, "Restored by ada: needed")
    assert book.pause is not None
    assert book.pause.replicas == 3


async def test_a_restore_stands_even_if_the_book_cannot_be_written() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    world.cluster.failures["patch", "gpuworkloads"] = Conflict("changed")
    outcome = await world.actor.restore(DEPLOYMENT, by="ada", why="needed")
    assert outcome.result is Result.DONE
    assert "could not be told: changed" in outcome.detail
    assert world.replicas == 3


@pytest.mark.parametrize("vandalised", [None, "{}", "[1]", '{"replicas": 99999999999}'])
async def test_a_record_that_vanished_or_was_vandalised_is_replaced_by_the_books(
    vandalised: str | None,
) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    notes = {} if vandalised is None else {PAUSED: vandalised}
    world.has(a_root(DEPLOYMENT, replicas=0, annotations=notes))
    outcome = await world.actor.restore(DEPLOYMENT, by="gpu-pruner", why="")
    assert outcome.result is Result.DONE
    assert world.replicas == 3
    assert world.annotation(PAUSED) is None


async def test_a_record_copied_from_another_object_restores_nothing() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order())
    copied = str(world.annotation(PAUSED))
    other = World(replace(DEPLOYMENT, uid="uid-other"))
    other.has(a_root(other.root, replicas=0, annotations={PAUSED: copied}))
    before = other.live
    outcome = await other.actor.restore(other.root, by="ada", why="")
    assert_untouched(other, before, outcome)
    assert "kubectl scale deployment server -n team-a --replicas=N" in outcome.detail


@pytest.mark.parametrize("root", [DEPLOYMENT, NOTEBOOK])
async def test_a_zero_that_is_not_ours_is_not_restored(root: RootRef) -> None:
    world = World(root)
    world.has(a_root(root, replicas=0, annotations={NOTEBOOK_STOPPED: "2026-01-30T08:00:00Z"}))
    before = world.live
    outcome = await world.actor.restore(root, by="ada", why="")
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.REFUSED
    assert "kubectl" in outcome.detail


async def test_after_a_persons_restart_only_the_record_is_removed() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    record = str(world.annotation(PAUSED))
    world.has(a_root(DEPLOYMENT, replicas=1, annotations={PAUSED: record}))
    outcome = await world.actor.restore(DEPLOYMENT, by="ada", why="")
    assert outcome.result is Result.DONE
    assert "somebody restarted it already" in outcome.detail
    assert world.replicas == 1
    assert world.annotation(PAUSED) is None


async def test_a_running_object_without_a_record_is_not_written_to() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    outcome = await world.actor.restore(DEPLOYMENT, by="ada", why="")
    assert outcome.result is Result.DONE
    assert world.wrote() == []


async def test_after_a_restart_a_new_pause_remembers_the_new_size() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    record = str(world.annotation(PAUSED))
    world.has(a_root(DEPLOYMENT, replicas=5, annotations={PAUSED: record}))
    again = await world.actor.pause(world.order(decision_id="d-2", by="ada"))
    assert again.result is Result.DONE
    outcome = await world.actor.restore(DEPLOYMENT, by="ada", why="")
    assert outcome.result is Result.DONE
    assert world.replicas == 5


async def test_a_restore_under_which_the_object_changes_is_dropped() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    world.cluster.before_patch["deployments"] = world.touched
    outcome = await world.actor.restore(DEPLOYMENT, by="ada", why="")
    assert outcome.result is Result.CONFLICT
    assert world.replicas == 0


async def test_a_dry_run_leaves_the_record_of_a_restarted_object() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    record = str(world.annotation(PAUSED))
    world.has(a_root(DEPLOYMENT, replicas=1, annotations={PAUSED: record}))
    before = world.live
    rehearsing = Actor(world.cluster, clock=world.clock, mode=Mode.DRY_RUN)
    outcome = await rehearsing.restore(DEPLOYMENT, by="ada", why="")
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.DRY_RUN


def sized_by(world: World, manager: str) -> None:
    """Let the API server tell who wrote the size last."""
    fields: dict[str, Json] = {"f:spec": {"f:replicas": {}}}
    entry: Json = {"manager": manager, "time": "2026-01-31T13:00:00Z", "fieldsV1": fields}
    meta = {**tree(world.live["metadata"]), "managedFields": [entry]}
    world.has({**world.live, "metadata": meta})


async def test_an_old_record_says_nothing_of_a_stop_by_somebody_else() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(by="ada"))
    sized_by(world, "kubectl")  # restarted with 5, and stopped again
    before = world.live
    for outcome in (
        await world.actor.restore(DEPLOYMENT, by="ada", why=""),
        await world.actor.pause(world.order(by="ada")),
    ):
        assert_untouched(world, before, outcome)
        assert outcome.result is Result.REFUSED
        assert "paused already" not in outcome.detail


async def test_a_size_that_we_wrote_last_is_restored() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(by="ada"))
    sized_by(world, "gpu-pruner")
    again = await world.actor.pause(world.order(by="ada"))
    assert "paused already" in again.detail
    assert (await world.actor.restore(DEPLOYMENT, by="ada", why="")).result is Result.DONE
    assert world.replicas == 3


async def test_a_notebook_that_somebody_stopped_again_is_not_ours_to_start() -> None:
    world = World(NOTEBOOK)
    world.has(a_root(NOTEBOOK))
    await world.actor.pause(world.order(by="ada"))
    record = str(world.annotation(PAUSED))
    stopped = {PAUSED: record, NOTEBOOK_STOPPED: "2026-02-01T08:00:00Z"}
    world.has(a_root(NOTEBOOK, annotations=stopped))
    before = world.live
    outcome = await world.actor.restore(NOTEBOOK, by="ada", why="")
    assert_untouched(world, before, outcome)
    again = await world.actor.pause(world.order(by="ada"))
    assert again.detail == "it is already stopped, and not by us"

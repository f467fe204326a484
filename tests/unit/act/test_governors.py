"""What owns the size of a root is what is paused and restored, never the root behind its back."""

from __future__ import annotations

import pytest
from support.acting import DEPLOYMENT, SPACE, World, a_root
from support.memory_cluster import Json, tree

from gpu_pruner.errors import Forbidden
from gpu_pruner.kube.resources import JOBS, KUEUE_WORKLOADS, SCALEDOBJECTS, Resource
from gpu_pruner.model.annotations import KEDA_PAUSED_REPLICAS, PAUSED
from gpu_pruner.model.orders import Result
from gpu_pruner.model.workload import RootRef
from gpu_pruner.resolve.pauses import decode

JOB = RootRef("Job", SPACE, "train", "batch", "uid-j")


def scaled_object(
    name: str = "scaler",
    *,
    target: str = "server",
    annotations: dict[str, Json] | None = None,
    **ref: Json,
) -> dict[str, Json]:
    return {
        "metadata": {
            "name": name,
            "namespace": SPACE,
            "uid": f"uid-{name}",
            "annotations": annotations or {},
        },
        "spec": {"scaleTargetRef": {"name": target, **ref}, "minReplicaCount": 1},
    }


def admission(of: RootRef) -> dict[str, Json]:
    above: dict[str, Json] = {
        "apiVersion": "batch/v1" if of.kind == "Job" else "apps/v1",
        "kind": of.kind,
        "name": of.name,
        "uid": of.uid,
        "controller": True,
    }
    meta: dict[str, Json] = {
        "name": "job-train-1",
        "namespace": SPACE,
        "uid": "uid-w",
        "ownerReferences": [above],
    }
    return {"metadata": meta, "spec": {"active": True, "queueName": "gpus"}}


def noted(world: World, resource: Resource, name: str) -> dict[str, Json]:
    meta = tree(world.cluster.stored(resource, SPACE, name)["metadata"])
    return tree(meta.get("annotations") or {})


async def test_what_keda_scales_is_held_at_zero_by_keda_and_given_back_to_it() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    world.cluster.put(SCALEDOBJECTS, scaled_object())
    before = world.live

    paused = await world.actor.pause(world.order(), await world.has_book())

    assert (paused.result, paused.detail) == (
        Result.DONE,
        "being paused; through ScaledObject scaler",
    )
    assert [plural for _, plural, _ in world.wrote()] == ["gpuworkloads", "scaledobjects"]
    assert world.live == before
    notes = noted(world, SCALEDOBJECTS, "scaler")
    record = decode(str(notes[PAUSED]))
    assert record is not None
    assert (record.lever, record.name, record.uid) == ("ScaledObject", "scaler", "uid-scaler")
    assert notes[KEDA_PAUSED_REPLICAS] == "0"
    assert world.bookkeeping.book.pause == record

    restored = await world.actor.restore(DEPLOYMENT, by="jo", why="back")

    assert restored.result is Result.DONE
    assert noted(world, SCALEDOBJECTS, "scaler") == {}
    assert world.live == before


@pytest.mark.parametrize("held_at", ["2", "", "many"])
async def test_where_somebody_holds_it_already_that_size_comes_back(held_at: str) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    world.cluster.put(SCALEDOBJECTS, scaled_object(annotations={KEDA_PAUSED_REPLICAS: held_at}))
    await world.actor.pause(world.order(), await world.has_book())
    assert noted(world, SCALEDOBJECTS, "scaler")[KEDA_PAUSED_REPLICAS] == "0"
    await world.actor.restore(DEPLOYMENT, by="jo", why="back")
    assert noted(world, SCALEDOBJECTS, "scaler") == {KEDA_PAUSED_REPLICAS: held_at}


@pytest.mark.parametrize(
    "other",
    [
        scaled_object(target="another"),
        scaled_object(kind="StatefulSet"),
        scaled_object(apiVersion="example.org/v1"),
    ],
)
async def test_a_scaler_of_something_else_is_left_alone(other: dict[str, Json]) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    world.cluster.put(SCALEDOBJECTS, other)
    outcome = await world.actor.pause(world.order(), await world.has_book())
    assert outcome.result is Result.DONE
    assert world.replicas == 0
    assert noted(world, SCALEDOBJECTS, "scaler") == {}


async def test_two_owners_of_one_size_are_refused() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    world.cluster.put(SCALEDOBJECTS, scaled_object("one"))
    world.cluster.put(SCALEDOBJECTS, scaled_object("two"))
    outcome = await world.actor.pause(world.order(), await world.has_book())
    assert outcome.result is Result.REFUSED
    assert outcome.detail == "ScaledObject one and ScaledObject two both own its size"
    assert world.wrote() == []


async def test_what_cannot_be_asked_may_own_the_size_so_that_nothing_is_done() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    world.cluster.failures["list", "scaledobjects"] = Forbidden("not allowed", status=403)
    outcome = await world.actor.pause(world.order(), await world.has_book())
    assert outcome.result is Result.FAILED
    assert world.wrote() == []


async def test_where_keda_and_kueue_are_not_installed_the_root_is_paused() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    world.cluster.missing_kinds |= {SCALEDOBJECTS.plural, KUEUE_WORKLOADS.plural}
    outcome = await world.actor.pause(world.order(), await world.has_book())
    assert (outcome.result, world.replicas) == (Result.DONE, 0)


async def test_a_governed_root_at_zero_is_nothing_to_pause() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT, replicas=0))
    world.cluster.put(SCALEDOBJECTS, scaled_object())
    outcome = await world.actor.pause(world.order(), await world.has_book())
    assert outcome.result is Result.REFUSED
    assert "already at zero" in outcome.detail


async def test_a_scaler_that_changed_meanwhile_is_a_conflict() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    world.cluster.put(SCALEDOBJECTS, scaled_object())
    book = await world.has_book()
    world.cluster.before_patch["scaledobjects"] = lambda: world.cluster.put(
        SCALEDOBJECTS, scaled_object()
    )
    outcome = await world.actor.pause(world.order(), book)
    assert outcome.result is Result.CONFLICT
    assert noted(world, SCALEDOBJECTS, "scaler") == {}


async def test_a_scaler_made_after_our_pause_does_not_hide_it() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    world.cluster.put(SCALEDOBJECTS, scaled_object())
    outcome = await world.actor.restore(DEPLOYMENT, by="jo", why="back")
    assert outcome.result is Result.DONE
    assert world.replicas == 3


async def test_a_job_that_kueue_admitted_is_stopped_through_its_workload() -> None:
    world = World(JOB)
    world.cluster.put(
        JOBS,
        {
            "metadata": {"name": "train", "namespace": SPACE, "uid": "uid-j", "generation": 1},
            "spec": {"suspend": False},
        },
    )
    world.cluster.put(KUEUE_WORKLOADS, admission(JOB))

    await world.actor.pause(world.order(), await world.has_book())

    spec = tree(world.cluster.stored(KUEUE_WORKLOADS, SPACE, "job-train-1")["spec"])
    assert spec == {"active": False, "queueName": "gpus"}
    assert tree(world.cluster.stored(JOBS, SPACE, "train")["spec"]) == {"suspend": False}

    await world.actor.restore(JOB, by="jo", why="back")

    spec = tree(world.cluster.stored(KUEUE_WORKLOADS, SPACE, "job-train-1")["spec"])
    assert spec == {"active": True, "queueName": "gpus"}
    assert PAUSED not in noted(world, KUEUE_WORKLOADS, "job-train-1")


async def test_what_kueue_would_admit_anew_is_not_stopped_through_kueue() -> None:
    """Source: kubernetes-sigs/kueue#3851, a StatefulSet's Workload is made anew, and active."""
    world = World()
    world.has(a_root(DEPLOYMENT))
    world.cluster.put(KUEUE_WORKLOADS, admission(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    assert world.replicas == 0

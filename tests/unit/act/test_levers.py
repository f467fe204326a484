from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from support.manual_clock import NOON
from support.memory_cluster import Json, merge, tree

from gpu_pruner.act.levers import LEVER_KINDS, LEVERS, Lever, lever_for
from gpu_pruner.act.pause_record import decode
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import NOTEBOOK_LOCK, NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.book import PauseRecord

each_lever = pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.kind)


def live(stored: dict[str, Json]) -> Owner:
    return msgspec.json.decode(json.dumps(stored), type=Owner)


def stored(*, replicas: int | None, annotations: dict[str, Json] | None = None) -> dict[str, Json]:
    meta: dict[str, Json] = {
        "name": "one",
        "namespace": "team-a",
        "uid": "uid-1",
        "resourceVersion": "41",
        "generation": 2,
        "annotations": annotations or {},
    }
    return {"metadata": meta, "spec": {} if replicas is None else {"replicas": replicas}}


def record(lever: Lever, replicas: int | None) -> PauseRecord:
    return PauseRecord(
        lever=lever.kind,
        replicas=replicas,
        uid="uid-1",
        generation=2,
        at=NOON,
        decision="d-1",
        why="idle",
    )


def applied(target: dict[str, Json], patch: object) -> dict[str, Json]:
    return merge(target, tree(json.loads(json.dumps(patch))))


def test_a_lever_is_found_by_kind_and_group_and_never_by_kind_alone() -> None:
    for lever in LEVERS:
        assert lever_for(lever.kind, lever.group) is lever
        assert lever_for(lever.kind, "example.org") is None
        assert lever_for(lever.kind, "") is None
    assert lever_for("Pod", "") is None


def test_there_is_one_lever_per_kind() -> None:
    assert len(LEVER_KINDS) == len(LEVERS)


@each_lever
@given(
    size=some.one_of(some.none(), some.integers(1, 2**31 - 1)),
    notes=some.dictionaries(some.sampled_from(["a", "b/c", "gpu-pruner.io/owner"]), some.text()),
)
def test_pause_then_restore_gives_back_every_object_as_it_was(
    lever: Lever, size: int | None, notes: dict[str, Json]
) -> None:
    before = stored(replicas=size, annotations=notes)
    taken = record(lever, lever.size(live(before)))
    assert lever.obstacle(live(before)) == ""
    paused = applied(before, lever.pause_patch(live(before), taken))
    assert lever.is_paused(live(paused))
    assert not lever.is_restored(live(paused), taken)
    found = decode(str(tree(tree(paused["metadata"])["annotations"])[PAUSED]))
    assert found == taken
    assert lever.can_restore(found)
    again = applied(paused, lever.restore_patch(live(paused), found))
    assert lever.is_restored(live(again), found)
    assert not lever.is_paused(live(again))
    assert again["metadata"] == before["metadata"]
    if size is not None:
        assert again["spec"] == before["spec"]


@each_lever
def test_every_patch_carries_its_preconditions(lever: Lever) -> None:
    seen = live(stored(replicas=2))
    for patch in (
        lever.pause_patch(seen, record(lever, 2)),
        lever.restore_patch(seen, record(lever, 2)),
    ):
        meta = tree(json.loads(json.dumps(patch))["metadata"])
        assert (meta["uid"], meta["resourceVersion"]) == ("uid-1", "41")


def test_an_unset_size_is_one_replica() -> None:
    deployment = lever_for("Deployment", "apps")
    assert deployment is not None
    assert deployment.size(live(stored(replicas=None))) == 1


def test_a_record_without_a_size_cannot_restore_a_size() -> None:
    deployment = lever_for("Deployment", "apps")
    assert deployment is not None
    assert not deployment.can_restore(record(deployment, None))


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        (None, False),
        ({}, False),
        ({"whenScaled": None}, False),
        ({"whenScaled": "Retain", "whenDeleted": "Delete"}, False),
        ({"whenScaled": "Delete"}, True),
        ({"whenScaled": "SomethingNew"}, True),
    ],
)
def test_a_stateful_set_is_refused_unless_its_claims_are_retained(
    policy: Json, *, refused: bool
) -> None:
    lever = lever_for("StatefulSet", "apps")
    assert lever is not None
    body = stored(replicas=2)
    tree(body["spec"])["persistentVolumeClaimRetentionPolicy"] = policy
    assert bool(lever.obstacle(live(body))) is refused


def test_the_start_up_lock_of_open_data_hub_is_no_stop() -> None:
    lever = lever_for("Notebook", "kubeflow.org")
    assert lever is not None
    locked = live(stored(replicas=None, annotations={NOTEBOOK_STOPPED: NOTEBOOK_LOCK}))
    assert not lever.is_paused(locked)
    assert "lock" in lever.obstacle(locked)

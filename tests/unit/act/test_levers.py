from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from support.manual_clock import NOON
from support.memory_cluster import Json, merge, tree

from gpu_pruner.act.lever import Lever
from gpu_pruner.act.levers import LEVER_KINDS, LEVERS, lever_for
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import (
    KSERVE_FROZEN,
    KSERVE_STOP,
    NOTEBOOK_LOCK,
    NOTEBOOK_STOPPED,
    OWNER,
    PAUSED,
)
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.resolve.pauses import decode

each_lever = pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.kind)


def live(stored: dict[str, Json]) -> Owner:
    return msgspec.json.decode(json.dumps(stored), type=Owner)


SWITCHED: dict[str, dict[str, Json]] = {
    "Workspace": {"paused": False},
    "PyTorchJob": {"runPolicy": {"suspend": False, "cleanPodPolicy": "None"}},
    **{key: {"suspend": False} for key in ("Job", "JobSet", "RayCluster", "TrainJob")},
}
"""The spec of a running object, of kinds without a size."""


def running(
    lever: Lever, size: int | None, annotations: dict[str, Json] | None = None
) -> dict[str, Json]:
    body = stored(replicas=size, annotations=annotations)
    if lever.kind in SWITCHED:
        body["spec"] = SWITCHED[lever.kind]
    if lever.kind == "InferenceService":
        body["status"] = {"conditions": [{"type": "Stopped", "status": "False"}]}
    return body


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


def record(
    lever: Lever, replicas: int | None, *, former: Mapping[str, str] | None = None
) -> PauseRecord:
    return PauseRecord(
        former=former or {},
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
    notes=some.dictionaries(
        some.sampled_from(["a", "b/c", OWNER, KSERVE_STOP]),
        some.text().filter(lambda text: text.lower() != "true"),
    ),
)
def test_pause_then_restore_gives_back_every_object_as_it_was(
    lever: Lever, size: int | None, notes: dict[str, Json]
) -> None:
    before = running(lever, size, notes)
    taken = record(lever, lever.size(live(before)), former=lever.former(live(before)))
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
    if size is not None or lever.kind in SWITCHED:
        assert again["spec"] == before["spec"]


@each_lever
def test_every_patch_carries_its_preconditions(lever: Lever) -> None:
    seen = live(running(lever, 2))
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


@pytest.mark.parametrize("when", ["whenScaled", "whenDeleted"])
def test_a_leader_worker_set_is_refused_unless_its_claims_are_retained(when: str) -> None:
    lever = lever_for("LeaderWorkerSet", "leaderworkerset.x-k8s.io")
    assert lever is not None
    body = stored(replicas=2)
    groups = tree(body["spec"])["leaderWorkerTemplate"] = {"size": 4}
    assert lever.obstacle(live(body)) == ""
    groups["persistentVolumeClaimRetentionPolicy"] = {when: "Delete"}
    assert f"{when}: Delete" in lever.obstacle(live(body))


def service(
    *,
    mode: str,
    knows_stop: bool = False,
    least: int | None = None,
    annotations: dict[str, Json] | None = None,
) -> dict[str, Json]:
    body = stored(replicas=None, annotations=annotations)
    body["spec"] = {"predictor": {} if least is None else {"minReplicas": least}}
    conditions: list[Json] = [{"type": "Ready", "status": "True"}]
    if knows_stop:
        conditions.append({"type": "Stopped", "status": "False"})
    body["status"] = {"deploymentMode": mode, "conditions": conditions}
    return body


@pytest.mark.parametrize("mode", ["RawDeployment", "Standard", "ModelMesh", ""])
def test_a_service_whose_controller_does_not_know_the_stop_is_refused(mode: str) -> None:
    lever = lever_for("InferenceService", "serving.kserve.io")
    assert lever is not None
    assert "KServe before 0.16" in lever.obstacle(live(service(mode=mode)))
    assert lever.obstacle(live(service(mode=mode, knows_stop=True))) == ""


def test_a_service_that_its_controller_leaves_alone_is_refused() -> None:
    lever = lever_for("InferenceService", "serving.kserve.io")
    assert lever is not None
    frozen = service(mode="Standard", knows_stop=True, annotations={KSERVE_FROZEN: "true"})
    assert "disable-auto-update" in lever.obstacle(live(frozen))


@pytest.mark.parametrize("least", [None, 1, 3])
def test_an_older_service_on_knative_is_drained_and_filled_again(least: int | None) -> None:
    lever = lever_for("InferenceService", "serving.kserve.io")
    assert lever is not None
    before = service(mode="Serverless", least=least)
    assert lever.obstacle(live(before)) == ""
    taken = record(lever, lever.size(live(before)))
    paused = applied(before, lever.pause_patch(live(before), taken))
    assert tree(tree(paused["spec"])["predictor"])["minReplicas"] == 0
    assert KSERVE_STOP not in tree(tree(paused["metadata"])["annotations"])
    assert lever.is_paused(live(paused))
    again = applied(paused, lever.restore_patch(live(paused), taken))
    assert (again["spec"], again["metadata"]) == (before["spec"], before["metadata"])


def test_an_older_service_that_scales_to_zero_by_itself_is_none_of_ours() -> None:
    lever = lever_for("InferenceService", "serving.kserve.io")
    assert lever is not None
    body = service(mode="Serverless", least=0)
    assert not lever.is_paused(live(body))
    assert "by itself" in lever.obstacle(live(body))


def writes(*managers: tuple[str, str, dict[str, Json]]) -> list[Json]:
    return [
        {"manager": manager, "time": time, "fieldsV1": fields} for manager, time, fields in managers
    ]


STOP: dict[str, Json] = {"f:metadata": {"f:annotations": {f"f:{KSERVE_STOP}": {}}}}
SUSPEND: dict[str, Json] = {"f:spec": {"f:suspend": {}}}
PAUSE: dict[str, Json] = {"f:spec": {"f:paused": {}}}
RUN_POLICY: dict[str, Json] = {"f:spec": {"f:runPolicy": {"f:suspend": {}}}}


@pytest.mark.parametrize(
    ("kind", "group", "fields"),
    [
        ("InferenceService", "serving.kserve.io", STOP),
        ("LLMInferenceService", "serving.kserve.io", STOP),
        ("Workspace", "kubeflow.org", PAUSE),
        ("Job", "batch", SUSPEND),
        ("PyTorchJob", "kubeflow.org", RUN_POLICY),
    ],
)
def test_a_stop_that_somebody_else_wrote_after_ours_is_theirs(
    kind: str, group: str, fields: dict[str, Json]
) -> None:
    lever = lever_for(kind, group)
    assert lever is not None
    before = running(lever, None)
    taken = record(lever, None)
    paused = applied(before, lever.pause_patch(live(before), taken))
    tree(paused["metadata"])["managedFields"] = writes(
        ("gpu-pruner", "2026-01-31T12:00:00Z", fields)
    )
    assert lever.is_pause_of(live(paused), taken)
    tree(paused["metadata"])["managedFields"] = writes(
        ("gpu-pruner", "2026-01-31T12:00:00Z", {}), ("kubectl", "2026-01-31T12:10:00Z", fields)
    )
    assert not lever.is_pause_of(live(paused), taken)

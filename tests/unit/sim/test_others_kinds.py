"""Kinds that others define, with what their controllers are known to do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from support.simulated import UNTIL_GONE, UNTIL_READY, Simulation

from gpu_pruner.model.annotations import KSERVE_STOP, LWS_NAME
from gpu_pruner.sim.tree import child, elements, number, text, texts
from gpu_pruner.sim.world import Node, Workload, World

GROUPS = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/team-a/leaderworkersets/groups"
MODEL = "/apis/serving.kserve.io/v1beta1/namespaces/team-a/inferenceservices/model"
WORLD = World(
    nodes=(Node(name="node-1", gpus=8),),
    workloads=(
        Workload(
            kind="LeaderWorkerSet", namespace="team-a", name="groups", replicas=2, group_size=3
        ),
        Workload(kind="InferenceService", namespace="team-a", name="model"),
    ),
)


@pytest.fixture
async def simulation() -> AsyncIterator[Simulation]:
    async for one in Simulation.of(WORLD):
        yield one


def condition(simulation: Simulation, kind: str) -> str:
    found = elements(simulation.status("InferenceService", "model"), "conditions")
    return next(text(one, "status") for one in found if text(one, "type") == kind)


async def test_a_group_is_a_leader_and_its_workers(simulation: Simulation) -> None:
    assert sorted(simulation.pod_names("LeaderWorkerSet", "groups")) == [
        *("groups-0", "groups-0-1", "groups-0-2", "groups-1", "groups-1-1", "groups-1-2")
    ]
    worker = simulation.cluster.get("Pod", name="groups-1-2", namespace="team-a")
    owner = simulation.cluster.get("StatefulSet", name="groups-1", namespace="team-a")
    assert texts(worker, "metadata", "labels")[LWS_NAME] == "groups"
    assert elements(worker, "metadata", "ownerReferences")[0]["kind"] == "StatefulSet"
    assert elements(owner, "metadata", "ownerReferences")[0]["kind"] == "Pod"
    status = simulation.status("LeaderWorkerSet", "groups")
    assert (status["replicas"], status["readyReplicas"]) == (2, 2)


async def test_workers_go_with_their_leader(simulation: Simulation) -> None:
    await simulation.caller.patch(f"{GROUPS}/scale", {"spec": {"replicas": 0}})
    await simulation.clock.advance(2 * UNTIL_GONE)

    assert simulation.pod_names("LeaderWorkerSet", "groups") == []
    assert number(simulation.status("LeaderWorkerSet", "groups"), "replicas", default=-1) == 0

    await simulation.caller.patch(f"{GROUPS}/scale", {"spec": {"replicas": 2}})
    await simulation.clock.advance(2 * UNTIL_READY)
    assert len(simulation.pod_names("LeaderWorkerSet", "groups")) == 6
    assert simulation.status("LeaderWorkerSet", "groups")["readyReplicas"] == 2


async def test_a_stopped_service_has_no_deployment(simulation: Simulation) -> None:
    assert len(simulation.pod_names("InferenceService", "model")) == 1
    assert (condition(simulation, "Ready"), condition(simulation, "Stopped")) == ("True", "False")

    await simulation.caller.patch(MODEL, {"metadata": {"annotations": {KSERVE_STOP: "true"}}})
    await simulation.clock.advance(UNTIL_GONE)
    assert simulation.cluster.get("Deployment", name="model-predictor", namespace="team-a") is None
    assert simulation.pod_names("InferenceService", "model") == []
    assert (condition(simulation, "Ready"), condition(simulation, "Stopped")) == ("False", "True")

    await simulation.caller.patch(MODEL, {"metadata": {"annotations": {KSERVE_STOP: None}}})
    await simulation.clock.advance(UNTIL_READY)
    assert len(simulation.pod_names("InferenceService", "model")) == 1
    assert condition(simulation, "Ready") == "True"


async def test_an_annotation_restarts_the_model_server(simulation: Simulation) -> None:
    before = simulation.pod_names("InferenceService", "model")

    await simulation.caller.patch(MODEL, {"metadata": {"annotations": {"example.com/note": "x"}}})
    await simulation.clock.advance(UNTIL_READY + UNTIL_GONE)

    after = simulation.pod_names("InferenceService", "model")
    assert len(after) == 1
    assert set(after).isdisjoint(before)


async def test_a_size_of_zero_is_taken_for_one(simulation: Simulation) -> None:
    await simulation.caller.patch(MODEL, {"spec": {"predictor": {"minReplicas": 0}}})
    await simulation.clock.settle()

    found = simulation.cluster.get("Deployment", name="model-predictor", namespace="team-a")
    assert child(found, "spec", "replicas") == 1

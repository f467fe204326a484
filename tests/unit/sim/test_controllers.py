from __future__ import annotations

from http import HTTPStatus

from support.simulated import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NOTEBOOKS,
    PODS,
    SMALL_WORLD,
    STATEFUL_SETS,
    UNTIL_GONE,
    UNTIL_READY,
    Simulation,
)

from gpu_pruner.model.annotations import NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.units import HOUR, MINUTE, parse_rfc3339
from gpu_pruner.sim.tree import JsonObject, child, elements, number, text, texts
from gpu_pruner.sim.world import Node, Workload, World

SERVE = f"{DEPLOYMENTS}/serve"
TRAIN = f"{STATEFUL_SETS}/train"
NOTEBOOK = f"{NOTEBOOKS}/notebook-1"


async def resize(simulation: Simulation, path: str, replicas: int) -> None:
    await simulation.caller.patch(path, {"spec": {"replicas": replicas}})
    await simulation.clock.settle()


def phases(simulation: Simulation, kind: str, name: str) -> dict[str, str]:
    pods = simulation.cluster.pods_of(kind, name=name, namespace="team-a")
    return {text(one, "metadata", "name"): text(one, "status", "phase") for one in pods}


async def test_the_world_begins_as_if_it_had_run_for_long(simulation: Simulation) -> None:
    began = simulation.cluster.begin - 2 * HOUR
    for pod in simulation.cluster.all("Pod"):
        assert text(pod, "status", "phase") == "Running"
        ready = [o for o in elements(pod, "status", "conditions") if text(o, "type") == "Ready"]
        assert parse_rfc3339(text(ready[0], "lastTransitionTime")) == began + 20
        started = elements(pod, "status", "containerStatuses")[0]
        assert parse_rfc3339(text(started, "state", "running", "startedAt")) == began + 12
        assert parse_rfc3339(text(pod, "metadata", "creationTimestamp")) == began
    assert simulation.cluster.gpus_allocated() == 5
    assert number(simulation.status("Deployment", "serve"), "readyReplicas") == 2
    assert number(simulation.status("StatefulSet", "train"), "readyReplicas") == 2
    assert number(simulation.status("Notebook", "notebook-1"), "readyReplicas") == 1


async def test_pods_name_their_owners_up_to_the_root(simulation: Simulation) -> None:
    pod = simulation.cluster.pods_of("Deployment", name="serve", namespace="team-a")[0]
    owner = elements(pod, "metadata", "ownerReferences")[0]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)
    replica_set = simulation.cluster.get("ReplicaSet", name=text(owner, "name"), namespace="team-a")
    assert elements(replica_set, "metadata", "ownerReferences")[0]["name"] == "serve"
    assert text(pod, "metadata", "name").startswith(text(owner, "name"))


async def test_a_deployment_at_zero_keeps_its_gpus_until_the_pods_are_gone(
    simulation: Simulation,
) -> None:
    await resize(simulation, SERVE, 0)
    pods = simulation.cluster.pods_of("Deployment", name="serve", namespace="team-a")
    assert [bool(text(one, "metadata", "deletionTimestamp")) for one in pods] == [True, True]
    assert "replicas" not in simulation.status("Deployment", "serve")
    assert simulation.cluster.gpus_allocated() == 5
    await simulation.clock.advance(UNTIL_GONE)
    assert simulation.pod_names("Deployment", "serve") == []
    assert simulation.cluster.gpus_allocated() == 3


async def test_a_deployment_that_comes_back_is_ready_after_a_while(simulation: Simulation) -> None:
    await resize(simulation, SERVE, 0)
    await simulation.clock.advance(UNTIL_GONE)
    await resize(simulation, SERVE, 2)
    assert set(phases(simulation, "Deployment", "serve").values()) == {"Pending"}
    await simulation.clock.advance(13.0)
    assert set(phases(simulation, "Deployment", "serve").values()) == {"Running"}
    assert "readyReplicas" not in simulation.status("Deployment", "serve")
    await simulation.clock.advance(UNTIL_READY - 13.0)
    status = simulation.status("Deployment", "serve")
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (2, 2, 2)


async def test_annotations_of_a_deployment_are_copied_to_its_replica_set(
    simulation: Simulation,
) -> None:
    await simulation.caller.patch(SERVE, {"metadata": {"annotations": {PAUSED: "record"}}})
    await simulation.clock.settle()
    replica_set = simulation.cluster.all("ReplicaSet", "team-a")[0]
    assert texts(replica_set, "metadata", "annotations") == {PAUSED: "record"}


async def test_a_new_template_is_rolled_out_and_the_old_set_emptied(
    simulation: Simulation,
) -> None:
    template = {"template": {"metadata": {"labels": {"app": "serve", "version": "2"}}}}
    await simulation.caller.patch(SERVE, {"spec": template | {"replicas": 1}})
    await simulation.clock.settle()
    sets = simulation.cluster.all("ReplicaSet", "team-a")
    assert len(sets) == 2
    await simulation.clock.advance(UNTIL_READY + UNTIL_GONE)
    assert len(simulation.pod_names("Deployment", "serve")) == 1
    status = simulation.status("Deployment", "serve")
    assert (status["replicas"], status["updatedReplicas"]) == (1, 1)


async def test_a_stateful_set_grows_in_order(simulation: Simulation) -> None:
    await resize(simulation, TRAIN, 0)
    await simulation.clock.advance(2 * UNTIL_GONE)
    assert simulation.pod_names("StatefulSet", "train") == []
    await resize(simulation, TRAIN, 2)
    assert simulation.pod_names("StatefulSet", "train") == ["train-0"]
    await simulation.clock.advance(UNTIL_READY)
    assert simulation.pod_names("StatefulSet", "train") == ["train-0", "train-1"]


async def test_a_stateful_set_shrinks_from_the_end(simulation: Simulation) -> None:
    await resize(simulation, TRAIN, 0)
    assert simulation.status("StatefulSet", "train")["replicas"] == 2
    await simulation.clock.advance(UNTIL_GONE)
    assert simulation.pod_names("StatefulSet", "train") == ["train-0"]
    await simulation.clock.advance(UNTIL_GONE)
    status = simulation.status("StatefulSet", "train")
    assert status["replicas"] == 0
    assert "readyReplicas" not in status


async def test_a_stateful_set_replaces_pods_of_an_old_template_one_by_one(
    simulation: Simulation,
) -> None:
    before = {
        text(one, "metadata", "name"): text(one, "metadata", "uid")
        for one in simulation.cluster.pods_of("StatefulSet", name="train", namespace="team-a")
    }
    labels = {"app": "train", "version": "2"}
    await simulation.caller.patch(TRAIN, {"spec": {"template": {"metadata": {"labels": labels}}}})
    await simulation.clock.settle()
    status = simulation.status("StatefulSet", "train")
    assert status["currentRevision"] != status["updateRevision"]
    await simulation.clock.advance(2 * (UNTIL_READY + UNTIL_GONE))
    pods = simulation.cluster.pods_of("StatefulSet", name="train", namespace="team-a")
    assert [text(one, "metadata", "name") for one in pods] == ["train-0", "train-1"]
    assert not {text(one, "metadata", "uid") for one in pods} & set(before.values())
    status = simulation.status("StatefulSet", "train")
    assert status["currentRevision"] == status["updateRevision"]
    assert (status["readyReplicas"], status["updatedReplicas"]) == (2, 2)


async def test_the_stop_annotation_stops_a_notebook_and_its_absence_starts_it(
    simulation: Simulation,
) -> None:
    stop = {"metadata": {"annotations": {NOTEBOOK_STOPPED: "2026-01-31T12:00:00Z"}}}
    await simulation.caller.patch(NOTEBOOK, stop)
    await simulation.clock.advance(UNTIL_GONE)
    assert simulation.replicas("StatefulSet", "notebook-1") == 0
    assert simulation.pod_names("Notebook", "notebook-1") == []
    assert simulation.status("Notebook", "notebook-1")["readyReplicas"] == 0
    start = {"metadata": {"annotations": {NOTEBOOK_STOPPED: None}}}
    await simulation.caller.patch(NOTEBOOK, start)
    await simulation.clock.advance(UNTIL_READY)
    assert simulation.pod_names("Notebook", "notebook-1") == ["notebook-1-0"]
    assert simulation.status("Notebook", "notebook-1")["readyReplicas"] == 1


async def test_scaling_the_stateful_set_of_a_notebook_is_undone(simulation: Simulation) -> None:
    await resize(simulation, f"{STATEFUL_SETS}/notebook-1", 0)
    assert simulation.replicas("StatefulSet", "notebook-1") == 1


async def test_what_its_owner_leaves_behind_is_collected(simulation: Simulation) -> None:
    await simulation.caller.delete(SERVE)
    await simulation.clock.advance(UNTIL_GONE)
    assert simulation.cluster.all("ReplicaSet", "team-a") == ()
    assert [
        p for p in simulation.cluster.all("Pod") if "serve" in text(p, "metadata", "name")
    ] == []


async def test_an_object_whose_owner_never_was_is_collected(simulation: Simulation) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve", "uid": "another"}
    metadata: JsonObject = {"name": "orphan", "ownerReferences": [owner]}
    await simulation.caller.post(CONFIG_MAPS, {"metadata": metadata})
    await simulation.clock.settle()
    answer = await simulation.caller.get(f"{CONFIG_MAPS}/orphan")
    assert answer.status == HTTPStatus.NOT_FOUND


async def test_a_deletion_may_leave_the_dependents(simulation: Simulation) -> None:
    await simulation.caller.delete(SERVE, {"propagationPolicy": "Orphan"})
    await simulation.clock.advance(UNTIL_GONE)
    assert len(simulation.cluster.all("ReplicaSet", "team-a")) == 1
    assert number(simulation.cluster.all("ReplicaSet", "team-a")[0], "status", "replicas") == 2


async def test_a_pod_waits_for_free_gpus_and_takes_them(simulation: Simulation) -> None:
    await resize(simulation, SERVE, 4)
    await simulation.clock.advance(UNTIL_READY)
    waiting = [
        one
        for one in simulation.cluster.pods_of("Deployment", name="serve", namespace="team-a")
        if text(one, "status", "phase") == "Pending"
    ]
    assert len(waiting) == 1
    condition = elements(waiting[0], "status", "conditions")[0]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["reason"] == "Unschedulable"
    await resize(simulation, TRAIN, 1)
    await simulation.clock.advance(UNTIL_GONE + UNTIL_READY)
    assert set(phases(simulation, "Deployment", "serve").values()) == {"Running"}


async def test_the_surplus_that_goes_first_is_what_does_not_run(simulation: Simulation) -> None:
    running = set(simulation.pod_names("Deployment", "serve"))
    await resize(simulation, SERVE, 4)
    await resize(simulation, SERVE, 2)
    await simulation.clock.advance(UNTIL_GONE)
    assert set(simulation.pod_names("Deployment", "serve")) == running


async def test_a_node_that_is_lost_gets_no_new_pods(simulation: Simulation) -> None:
    for node in ("node-1", "node-2"):
        simulation.cluster.set_node_ready(node, ready=False)
    await resize(simulation, SERVE, 3)
    await simulation.clock.advance(UNTIL_READY)
    assert "Pending" in phases(simulation, "Deployment", "serve").values()
    for node in ("node-1", "node-2"):
        simulation.cluster.set_node_ready(node, ready=True)
    await simulation.clock.advance(UNTIL_READY)
    assert set(phases(simulation, "Deployment", "serve").values()) == {"Running"}


async def test_a_deleted_pod_is_replaced(simulation: Simulation) -> None:
    name = simulation.pod_names("Deployment", "serve")[0]
    await simulation.caller.delete(f"{PODS}/{name}")
    await simulation.clock.advance(UNTIL_READY)
    after = simulation.pod_names("Deployment", "serve")
    assert len(after) == 2
    assert name not in after


async def test_pods_that_the_world_deletes_come_anew_under_their_name() -> None:
    train = Workload(
        kind="StatefulSet", namespace="team-a", name="train", replicas=2, pods_deleted=(3.0,)
    )
    async for one in Simulation.of(World(workloads=(train,))):
        before = one.cluster.pods_of("StatefulSet", name="train", namespace="team-a")
        await one.clock.advance(3 * MINUTE - 1)
        assert one.cluster.pods_of("StatefulSet", name="train", namespace="team-a") == before
        await one.clock.advance(1 + UNTIL_GONE + 2 * UNTIL_READY)
        after = one.cluster.pods_of("StatefulSet", name="train", namespace="team-a")
        assert one.pod_names("StatefulSet", "train") == ["train-0", "train-1"]
        uids = {text(pod, "metadata", "uid") for pod in (*before, *after)}
        assert len(uids) == 4
        assert one.cluster.requests == [], "nobody asked for it over HTTP"


async def test_bare_pods_and_daemon_sets_are_served_too() -> None:
    world = World(
        nodes=(Node(name="node-1", gpus=2), Node(name="node-2", gpus=2)),
        workloads=(
            Workload(kind="Pod", namespace="team-a", name="bare"),
            Workload(kind="DaemonSet", namespace="team-a", name="everywhere"),
        ),
    )
    async for one in Simulation.of(world):
        assert one.pod_names("Pod", "bare") == ["bare"]
        pods = one.cluster.pods_of("DaemonSet", name="everywhere", namespace="team-a")
        assert sorted(text(pod, "spec", "nodeName") for pod in pods) == ["node-1", "node-2"]
        assert child(one.status("DaemonSet", "everywhere"), "numberReady") == 2


async def test_the_same_world_is_built_the_same_way() -> None:
    kinds = ("Pod", "ReplicaSet", "Node")
    first, second = [
        [one.cluster.all(kind) for kind in kinds]
        for _ in range(2)
        async for one in Simulation.of(SMALL_WORLD)
    ]
    assert first == second

"""What the built-in controllers report while workloads come, change size and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from http import HTTPStatus

import pytest
from support.bodies import deployment
from support.kubelet import FakeKubelet
from support.servers import Server

from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, number, text, texts
from gpu_pruner.sim.world import World

WAIT_SECONDS = 60.0


@pytest.fixture
async def nodes(server: Server) -> AsyncIterator[None]:
    """Have pods run: the simulated cluster has a node, the real one gets it."""
    playing = FakeKubelet(server.lab.api("kubelet"), World()) if server.lab else nullcontext()
    with playing:
        yield
        for kind in ("deployments", "statefulsets"):
            await server.caller.delete(server.path(kind, group="apps/v1"))
        if server.lab:  # nobody else could confirm that its pods are gone
            await until_no_pods(server)


@pytest.fixture
async def running(server: Server, nodes: None) -> str:
    """Return the path of a Deployment whose two pods are Ready."""
    await server.caller.post(server.deployments, deployment(replicas=2))
    path = f"{server.deployments}/server"
    await until(server, path, lambda one: number(one, "status", "readyReplicas") == 2)
    return path


@pytest.fixture
async def stateful(server: Server, nodes: None) -> str:
    """Return the path of a StatefulSet whose two pods are Ready."""
    sets = server.path("statefulsets", group="apps/v1")
    body = deployment("train", replicas=2)
    body["spec"] = mapping(body, "spec") | {"serviceName": "train"}
    await server.caller.post(sets, body)
    await until(server, f"{sets}/train", lambda one: number(one, "status", "readyReplicas") == 2)
    return f"{sets}/train"


async def until(server: Server, path: str, holds: Callable[[JsonObject], bool]) -> JsonObject:
    """Wait until something holds of an object, and return that."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds(found := (await server.caller.get(path)).body):
            await asyncio.sleep(0.05)
    return found


async def settled(server: Server, path: str, size: int) -> JsonObject:
    """Wait until an object has come to a size, as its own status says, and return the status."""

    def holds(one: JsonObject) -> bool:
        seen = number(one, "status", "observedGeneration")
        ready = number(one, "status", "readyReplicas")
        there = number(one, "status", "replicas")
        return seen == number(one, "metadata", "generation") and ready == there == size

    found = await until(server, path, holds)
    return mapping(found, "status")


async def pods(server: Server, app: str = "") -> list[JsonObject]:
    selector = f"?labelSelector=app%3D{app}" if app else ""
    return (await server.caller.get(server.path("pods") + selector)).items


async def until_no_pods(server: Server, app: str = "") -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while await pods(server, app):
            await asyncio.sleep(0.05)


def owner(one: JsonObject) -> tuple[str, str, object]:
    (reference,) = elements(one, "metadata", "ownerReferences")
    return text(reference, "kind"), text(reference, "name"), reference["controller"]


async def test_a_deployment_that_runs_says_so(server: Server, running: str) -> None:
    status = await settled(server, running, 2)

    assert (status["updatedReplicas"], status["availableReplicas"]) == (2, 2)
    assert "unavailableReplicas" not in status
    conditions = {text(one, "type"): one for one in elements(status, "conditions")}
    assert text(conditions["Available"], "status") == "True"
    assert text(conditions["Progressing"], "reason") == "NewReplicaSetAvailable"


async def test_its_pods_lead_to_it(server: Server, running: str) -> None:
    found = await pods(server, "server")
    kind, name, controls = owner(found[0])
    replica_set = await server.caller.get(f"{server.path('replicasets', group='apps/v1')}/{name}")

    assert (kind, controls) == ("ReplicaSet", True)
    assert owner(replica_set.body) == ("Deployment", "server", True)
    digest = texts(found[0], "metadata", "labels")["pod-template-hash"]
    assert name == f"server-{digest}"
    assert text(found[0], "metadata", "name").startswith(f"{name}-")
    assert texts(replica_set.body, "metadata", "labels")["pod-template-hash"] == digest


async def test_a_pod_that_runs_is_ready(server: Server, running: str) -> None:
    (pod, _) = await pods(server, "server")

    assert text(pod, "status", "phase") == "Running"
    assert text(pod, "spec", "nodeName") == "node-1"
    ready = [one for one in elements(pod, "status", "conditions") if one["type"] == "Ready"]
    assert [text(one, "status") for one in ready] == ["True"]
    assert text(ready[0], "lastTransitionTime").endswith("Z")
    (container,) = elements(pod, "status", "containerStatuses")
    assert text(container, "state", "running", "startedAt").endswith("Z")


async def test_at_zero_a_deployment_counts_nothing(server: Server, running: str) -> None:
    await server.caller.patch(running, {"spec": {"replicas": 0}})

    status = await settled(server, running, 0)
    await until_no_pods(server, "server")

    assert not {"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"} & set(status)
    assert child(status, "observedGeneration") == 2


async def test_it_comes_back_to_its_size(server: Server, running: str) -> None:
    before = {text(one, "metadata", "uid") for one in await pods(server, "server")}
    await server.caller.patch(running, {"spec": {"replicas": 0}})
    await until_no_pods(server, "server")
    await server.caller.patch(running, {"spec": {"replicas": 2}})

    await settled(server, running, 2)

    after = {text(one, "metadata", "uid") for one in await pods(server, "server")}
    assert len(after) == 2
    assert not before & after


async def test_a_note_on_a_deployment_restarts_nothing_and_is_copied(
    server: Server, running: str
) -> None:
    before = {text(one, "metadata", "uid") for one in await pods(server, "server")}
    note: JsonObject = {"example.com/note": "x"}
    await server.caller.patch(running, {"metadata": {"annotations": note}})

    await settled(server, running, 2)
    found = await pods(server, "server")
    path = f"{server.path('replicasets', group='apps/v1')}/{owner(found[0])[1]}"
    await until(
        server, path, lambda one: "example.com/note" in texts(one, "metadata", "annotations")
    )

    assert {text(one, "metadata", "uid") for one in found} == before
    assert "example.com/note" not in texts(found[0], "metadata", "annotations")


async def test_a_new_template_replaces_the_pods(server: Server, running: str) -> None:
    before = {text(one, "metadata", "uid") for one in await pods(server, "server")}
    note: JsonObject = {"metadata": {"annotations": {"example.com/note": "x"}}}
    await server.caller.patch(running, {"spec": {"template": note}})

    async with asyncio.timeout(WAIT_SECONDS):
        while before & {text(one, "metadata", "uid") for one in await pods(server, "server")}:
            await asyncio.sleep(0.05)

    status = await settled(server, running, 2)
    assert status["updatedReplicas"] == 2


async def test_a_stateful_set_names_its_pods_and_keeps_zero_counters(
    server: Server, stateful: str
) -> None:
    found = await pods(server, "train")
    assert sorted(text(one, "metadata", "name") for one in found) == ["train-0", "train-1"]
    assert owner(found[0]) == ("StatefulSet", "train", True)
    assert texts(found[0], "metadata", "labels")["apps.kubernetes.io/pod-index"] in {"0", "1"}

    await server.caller.patch(stateful, {"spec": {"replicas": 0}})
    status = await settled(server, stateful, 0)

    assert (status["replicas"], status["availableReplicas"]) == (0, 0)
    assert "readyReplicas" not in status
    await until_no_pods(server, "train")


async def test_a_pod_is_made_anew_under_the_same_name(server: Server, stateful: str) -> None:
    path = f"{server.path('pods')}/train-0"
    before = await server.caller.get(path)

    await server.caller.delete(path)

    await until(server, path, lambda one: text(one, "metadata", "uid") not in {"", before.uid})
    await settled(server, stateful, 2)


async def test_what_is_deleted_takes_its_pods_along(server: Server, running: str) -> None:
    answer = await server.caller.delete(running, {"propagationPolicy": "Background"})

    assert answer.status == HTTPStatus.OK
    await server.until_gone(running)
    await until_no_pods(server, "server")

"""The scale subresource: the size and nothing else, with its own refusals."""

from __future__ import annotations

import pytest
from support.bodies import deployment
from support.servers import Server

from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, number, text, texts


@pytest.fixture
async def scale(server: Server) -> str:
    await server.caller.post(server.deployments, deployment(replicas=2))
    return f"{server.deployments}/server/scale"


async def test_it_shows_size_and_selector(server: Server, scale: str) -> None:
    answer = await server.caller.get(scale)
    whole = await server.caller.get(f"{server.deployments}/server")

    assert (answer.body["kind"], answer.body["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (answer.name, answer.uid) == ("server", whole.uid)
    assert set(mapping(answer.body, "metadata")) == {
        *("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    assert answer.body["spec"] == {"replicas": 2}
    assert text(answer.body, "status", "selector") == "app=server"


async def test_a_size_of_zero_is_left_out(server: Server, scale: str) -> None:
    answer = await server.caller.patch(scale, {"spec": {"replicas": 0}})

    assert answer.body["spec"] == {}
    whole = await server.caller.get(f"{server.deployments}/server")
    assert child(whole.body, "spec", "replicas") == 0


async def test_annotations_that_come_along_are_lost(server: Server, scale: str) -> None:
    note: JsonObject = {"annotations": {"example/note": "x"}}

    await server.caller.patch(scale, {"metadata": note, "spec": {"replicas": 1}})

    whole = await server.caller.get(f"{server.deployments}/server")
    assert "example/note" not in texts(whole.body, "metadata", "annotations")
    assert number(whole.body, "spec", "replicas") == 1
    assert number(whole.body, "metadata", "generation") == 2


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"spec": {"replicas": -1}}, 422, "Invalid"),
        ({"spec": {"replicas": "many"}}, 422, "Invalid"),
        ({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 0}}, 409, "Conflict"),
        ({"metadata": {"uid": "another"}, "spec": {"replicas": 0}}, 409, "Conflict"),
    ],
)
async def test_a_scale_that_is_refused(
    server: Server, scale: str, body: JsonObject, status: int, reason: str
) -> None:
    answer = await server.caller.patch(scale, body)

    assert (answer.status, answer.reason) == (status, reason)
    assert number((await server.caller.get(scale)).body, "spec", "replicas") == 2


async def test_a_negative_size_names_the_field(server: Server, scale: str) -> None:
    answer = await server.caller.patch(scale, {"spec": {"replicas": -1}})

    details = mapping(answer.body, "details")
    assert (details["kind"], details["group"], details["name"]) == (
        "Scale",
        "autoscaling",
        "server",
    )
    assert [text(one, "field") for one in elements(details, "causes")] == ["spec.replicas"]


async def test_a_scale_that_asks_for_nothing_changes_nothing(server: Server, scale: str) -> None:
    answer = await server.caller.patch(scale, {"spec": {}})

    assert (answer.status, answer.body["spec"]) == (200, {"replicas": 2})


async def test_it_can_be_put(server: Server, scale: str) -> None:
    body = (await server.caller.get(scale)).body
    metadata = {key: one for key, one in mapping(body, "metadata").items() if key == "name"}

    answer = await server.caller.put(scale, body | {"metadata": metadata, "spec": {"replicas": 3}})

    assert (answer.status, answer.body["spec"]) == (200, {"replicas": 3})


async def test_of_an_object_that_is_not_there(server: Server) -> None:
    answer = await server.caller.get(f"{server.deployments}/none/scale")

    assert (answer.status, answer.reason) == (404, "NotFound")


async def test_a_kind_without_a_size_has_none(server: Server) -> None:
    await server.caller.post(server.config_maps, {"metadata": {"name": "one"}})

    answer = await server.caller.get(f"{server.config_maps}/one/scale")

    assert (answer.status, answer.reason) == (404, "NotFound")

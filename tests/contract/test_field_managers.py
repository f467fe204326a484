"""Who wrote which field last, as ``metadata.managedFields`` tells."""

from __future__ import annotations

import pytest
from support.bodies import deployment, thing
from support.caller import Answer
from support.servers import Server

from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, text


def owners(answer: Answer, *path: str) -> set[tuple[str, str]]:
    """Return the managers of a field, each with the subresource that it wrote through."""
    steps = [f"f:{one}" for one in path]
    return {
        (text(one, "manager"), text(one, "subresource"))
        for one in elements(answer.body, "metadata", "managedFields")
        if child(one, "fieldsV1", *steps) is not None
    }


@pytest.fixture
async def path(server: Server) -> str:
    await server.caller.post(f"{server.deployments}?fieldManager=maker", deployment())
    return f"{server.deployments}/server"


async def test_who_creates_owns_all(server: Server) -> None:
    answer = await server.caller.post(f"{server.deployments}?fieldManager=maker", deployment())

    (entry,) = elements(answer.body, "metadata", "managedFields")
    assert entry["manager"] == "maker"
    assert (entry["operation"], entry["apiVersion"]) == ("Update", "apps/v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert text(entry, "time").endswith("Z")
    assert {"f:replicas", "f:selector", "f:template"} <= set(mapping(entry, "fieldsV1", "f:spec"))


async def test_who_writes_a_field_takes_it_over(server: Server, path: str) -> None:
    answer = await server.caller.patch(f"{path}?fieldManager=second", {"spec": {"replicas": 3}})

    assert owners(answer, "spec", "replicas") == {("second", "")}
    assert owners(answer, "spec", "template") == {("maker", "")}


async def test_who_writes_what_it_is_already_takes_nothing(server: Server, path: str) -> None:
    answer = await server.caller.patch(f"{path}?fieldManager=second", {"spec": {"replicas": 1}})

    assert owners(answer, "spec", "replicas") == {("maker", "")}


async def test_annotations_have_their_owners(server: Server, path: str) -> None:
    note: JsonObject = {"metadata": {"annotations": {"example.com/note": "x"}}}

    answer = await server.caller.patch(f"{path}?fieldManager=second", note)

    assert owners(answer, "metadata", "annotations", "example.com/note") == {("second", "")}
    assert owners(answer, "spec", "replicas") == {("maker", "")}


async def test_scaling_says_so(server: Server, path: str) -> None:
    await server.caller.patch(f"{path}/scale?fieldManager=scaler", {"spec": {"replicas": 3}})

    answer = await server.caller.get(path)

    assert owners(answer, "spec", "replicas") == {("scaler", "scale")}


async def test_without_a_name_the_program_is_the_manager(server: Server, path: str) -> None:
    answer = await server.caller.send(
        "PATCH",
        path,
        body={"spec": {"replicas": 3}},
        headers={
            "User-Agent": "some-tool/1.2 (linux)",
            "Content-Type": "application/merge-patch+json",
        },
    )

    assert owners(answer, "spec", "replicas") == {("some-tool", "")}


async def test_a_field_that_is_removed_has_no_owner(server: Server, path: str) -> None:
    note: JsonObject = {"metadata": {"annotations": {"example.com/note": "x"}}}
    await server.caller.patch(f"{path}?fieldManager=second", note)

    gone: JsonObject = {"metadata": {"annotations": {"example.com/note": None}}}
    answer = await server.caller.patch(f"{path}?fieldManager=third", gone)

    assert owners(answer, "metadata", "annotations", "example.com/note") == set()


async def test_custom_kinds_and_their_status(server: Server, things: str) -> None:
    await server.caller.post(f"{things}?fieldManager=maker", thing("one"))

    answer = await server.caller.patch(
        f"{things}/one/status?fieldManager=teller", {"status": {"size": 2}}
    )

    assert owners(answer, "status", "size") == {("teller", "status")}
    assert owners(answer, "spec", "owner") == {("maker", "")}


async def test_a_client_may_wipe_the_list(server: Server, path: str) -> None:
    answer = await server.caller.patch(path, {"metadata": {"managedFields": [{}]}})

    assert elements(answer.body, "metadata", "managedFields") == []

"""What is refused, and how the refusal looks: a `Status` that says code, reason and what."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from support.bodies import deployment
from support.caller import Answer
from support.servers import Server

from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, text

AS_PATCH = {"Content-Type": "application/merge-patch+json"}


def said(answer: Answer) -> tuple[int, object, object, object]:
    """Return status, and the code, reason and outcome in the body."""
    body = answer.body
    assert (body["kind"], body["apiVersion"]) == ("Status", "v1")
    assert body["metadata"] == {}
    assert text(body, "message")
    return (answer.status, body["code"], body["reason"], body["status"])


async def test_an_object_that_is_not_there(server: Server) -> None:
    answer = await server.caller.get(f"{server.config_maps}/none")

    assert said(answer) == (404, 404, "NotFound", "Failure")
    assert answer.body["details"] == {"name": "none", "kind": "configmaps"}
    assert answer.body["message"] == 'configmaps "none" not found'


async def test_an_object_of_a_group_that_is_not_there(server: Server) -> None:
    answer = await server.caller.get(f"{server.deployments}/none")

    assert answer.body["details"] == {"name": "none", "group": "apps", "kind": "deployments"}
    assert answer.body["message"] == 'deployments.apps "none" not found'


@pytest.mark.parametrize(
    "path", ["/apis/apps/v1/nothings", "/apis/apps/v0/deployments", "/api/v1/nothings"]
)
async def test_a_kind_that_a_known_group_does_not_have(server: Server, path: str) -> None:
    answer = await server.caller.get(path)

    assert said(answer) == (404, 404, "NotFound", "Failure")
    assert answer.body["details"] == {}


@pytest.mark.parametrize("path", ["/apis/nobody.example/v1/nothings", "/nonsense"])
async def test_a_group_that_is_not_there_is_no_status(server: Server, path: str) -> None:
    answer = await server.caller.get(path)

    assert answer.status == HTTPStatus.NOT_FOUND
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.raw == b"404 page not found\n"


async def test_who_is_not_known(server: Server) -> None:
    answer = await server.stranger().get(server.config_maps)

    assert said(answer) == (401, 401, "Unauthorized", "Failure")


async def test_who_should_come_back_later(server: Server) -> None:
    answer = await server.throttled()

    assert said(answer)[:3] == (429, 429, "TooManyRequests")
    seconds = child(answer.body, "details", "retryAfterSeconds")
    # Once the real server has counted the budget, it does not say how long to wait.
    assert answer.headers.get("Retry-After") == (None if seconds is None else str(seconds))
    assert seconds in {10, None}


async def test_a_name_that_is_taken(server: Server) -> None:
    body: JsonObject = {"metadata": {"name": "one"}}
    await server.caller.post(server.config_maps, body)

    answer = await server.caller.post(server.config_maps, body)

    assert said(answer) == (409, 409, "AlreadyExists", "Failure")
    assert answer.body["details"] == {"name": "one", "kind": "configmaps"}


async def test_a_version_that_is_old(server: Server) -> None:
    made = await server.caller.post(server.deployments, deployment())
    path = f"{server.deployments}/server"
    await server.caller.patch(path, {"metadata": {"annotations": {"a": "b"}}})

    answer = await server.caller.patch(
        path, {"metadata": {"resourceVersion": made.version}, "spec": {"replicas": 0}}
    )

    assert said(answer) == (409, 409, "Conflict", "Failure")
    assert answer.body["details"] == {"name": "server", "group": "apps", "kind": "deployments"}
    assert "Operation cannot be fulfilled on deployments.apps" in text(answer.body, "message")


async def test_an_object_that_breaks_a_rule(server: Server) -> None:
    answer = await server.caller.post(server.config_maps, {"metadata": {"name": "Not A Name"}})

    assert said(answer) == (422, 422, "Invalid", "Failure")
    details = mapping(answer.body, "details")
    assert (details["name"], details["kind"]) == ("Not A Name", "ConfigMap")
    (cause,) = elements(details, "causes")
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "metadata.name")


async def test_a_body_that_is_no_json(server: Server) -> None:
    answer = await server.caller.send("POST", server.config_maps, body=b"{no json")

    assert said(answer) == (400, 400, "BadRequest", "Failure")


async def test_a_body_of_an_unknown_format(server: Server) -> None:
    kind = {"Content-Type": "application/xml"}

    answer = await server.caller.send("POST", server.config_maps, body=b"<a/>", headers=kind)

    assert said(answer)[:3] == (415, 415, "UnsupportedMediaType")


async def test_a_patch_of_an_unknown_type(server: Server) -> None:
    await server.caller.post(server.config_maps, {"metadata": {"name": "one"}})

    answer = await server.caller.patch(f"{server.config_maps}/one", {}, kind="application/xml")

    assert said(answer)[:3] == (415, 415, "UnsupportedMediaType")


async def test_a_method_that_the_path_does_not_have(server: Server) -> None:
    answer = await server.caller.send("POST", f"{server.config_maps}/one", body=b"{}")

    assert said(answer)[:3] == (405, 405, "MethodNotAllowed")


async def test_a_namespace_that_is_not_there(server: Server) -> None:
    body: JsonObject = {"metadata": {"name": "one"}}
    answer = await server.caller.post("/api/v1/namespaces/no-such-team/configmaps", body)

    assert said(answer) == (404, 404, "NotFound", "Failure")
    assert answer.body["details"] == {"name": "no-such-team", "kind": "namespaces"}


async def test_what_is_deleted_is_told(server: Server) -> None:
    made = await server.caller.post(server.config_maps, {"metadata": {"name": "one"}})

    answer = await server.caller.delete(f"{server.config_maps}/one")

    assert answer.status == HTTPStatus.OK
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
    assert answer.body["details"] == {"name": "one", "kind": "configmaps", "uid": made.uid}
    assert child(answer.body, "code") is None


@pytest.mark.parametrize("verb", ["GET", "PATCH", "DELETE"])
async def test_who_is_not_allowed(server: Server, verb: str) -> None:
    account, _ = await server.account("nobody")

    answer = await account.send(verb, f"{server.deployments}/server", body={}, headers=AS_PATCH)

    assert said(answer) == (403, 403, "Forbidden", "Failure")
    assert answer.body["details"] == {"name": "server", "group": "apps", "kind": "deployments"}
    user = f"system:serviceaccount:{server.namespace}:nobody"
    word = {"GET": "get", "PATCH": "patch", "DELETE": "delete"}[verb]
    assert answer.body["message"] == (
        f'deployments.apps "server" is forbidden: User "{user}" cannot {word} resource '
        f'"deployments" in API group "apps" in the namespace "{server.namespace}"'
    )


async def test_a_list_that_is_not_allowed(server: Server) -> None:
    account, _ = await server.account("nobody")

    answer = await account.get("/api/v1/nodes")

    assert said(answer) == (403, 403, "Forbidden", "Failure")
    assert answer.body["details"] == {"kind": "nodes"}
    assert "at the cluster scope" in text(answer.body, "message")

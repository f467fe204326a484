"""Who somebody is, and what somebody may do: the reviews that servers ask of an API server."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from support.caller import Answer, Caller
from support.servers import Server

from gpu_pruner.sim.tree import JsonObject, child, mapping, text

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
OWN_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MYSELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
READ_PODS: JsonObject = {"verb": "get", "group": "", "resource": "pods"}


async def review(caller: Caller, path: str, spec: JsonObject) -> Answer:
    return await caller.post(path, {"spec": spec})


def allowed(answer: Answer) -> object:
    assert answer.status == HTTPStatus.CREATED
    return child(answer.body, "status", "allowed")


async def test_a_token_says_who_it_is(server: Server) -> None:
    _, token = await server.account("notebook", "gpu-pruner")

    answer = await review(
        server.caller, TOKENS, {"token": token, "audiences": ["gpu-pruner", "other"]}
    )

    assert (answer.status, answer.body["kind"]) == (HTTPStatus.CREATED, "TokenReview")
    status = mapping(answer.body, "status")
    assert (status["authenticated"], status["audiences"]) == (True, ["gpu-pruner"])
    user = mapping(status, "user")
    assert user["username"] == f"system:serviceaccount:{server.namespace}:notebook"
    assert user["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{server.namespace}",
        "system:authenticated",
    ]
    assert len(text(user, "uid")) == 36


async def test_a_token_for_others_is_none(server: Server) -> None:
    _, token = await server.account("notebook", "somebody-else")

    answer = await review(server.caller, TOKENS, {"token": token, "audiences": ["gpu-pruner"]})

    assert answer.status == HTTPStatus.CREATED
    assert child(answer.body, "status", "authenticated") is None
    assert text(answer.body, "status", "error")
    assert child(answer.body, "status", "user") == {}


async def test_a_token_for_others_does_not_open_the_api_server(server: Server) -> None:
    stranger, _ = await server.account("notebook", "gpu-pruner")

    assert (await stranger.get(server.config_maps)).status == HTTPStatus.UNAUTHORIZED


async def test_nonsense_is_no_token(server: Server) -> None:
    answer = await review(server.caller, TOKENS, {"token": "nonsense"})

    assert child(answer.body, "status", "authenticated") is None
    assert text(answer.body, "status", "error")


async def test_a_review_without_a_token_is_bad(server: Server) -> None:
    answer = await review(server.caller, TOKENS, {})

    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_an_account_without_rights_may_nothing(server: Server) -> None:
    account, _ = await server.account("nobody")
    spec: JsonObject = {
        "user": f"system:serviceaccount:{server.namespace}:nobody",
        "resourceAttributes": READ_PODS | {"namespace": server.namespace},
    }

    told = await review(server.caller, ACCESS, spec)
    own = await review(
        account, OWN_ACCESS, {"resourceAttributes": READ_PODS | {"namespace": server.namespace}}
    )

    assert told.body["kind"] == "SubjectAccessReview"
    assert own.body["kind"] == "SelfSubjectAccessReview"
    assert (allowed(told), allowed(own)) == (False, False)


async def test_an_administrator_may_everything(server: Server) -> None:
    admin: JsonObject = {"user": "somebody", "groups": ["system:masters"]}

    told = await review(server.caller, ACCESS, admin | {"resourceAttributes": READ_PODS})
    own = await review(server.caller, OWN_ACCESS, {"resourceAttributes": READ_PODS})

    assert (allowed(told), allowed(own)) == (True, True)


async def test_everybody_may_ask_who_they_are(server: Server) -> None:
    account, _ = await server.account("nobody")

    answer = await account.post(MYSELF, {})

    assert (answer.status, answer.body["kind"]) == (HTTPStatus.CREATED, "SelfSubjectReview")
    user = mapping(answer.body, "status", "userInfo")
    assert user["username"] == f"system:serviceaccount:{server.namespace}:nobody"
    assert "spec" not in answer.body
    assert (await server.anonymous().post(MYSELF, {})).status == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("path", [ACCESS, OWN_ACCESS])
async def test_a_review_of_nothing_is_invalid(server: Server, path: str) -> None:
    answer = await review(server.caller, path, {"user": "jane"} if path == ACCESS else {})

    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_a_review_is_not_stored(server: Server) -> None:
    for path in (TOKENS, ACCESS, OWN_ACCESS, MYSELF):
        assert (await server.caller.get(path)).status == HTTPStatus.METHOD_NOT_ALLOWED


async def test_who_has_no_token_is_anonymous(server: Server) -> None:
    answer = await server.anonymous().get(server.config_maps)

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert 'User "system:anonymous" cannot list' in text(answer.body, "message")
    assert (await server.anonymous().get("/readyz")).raw == b"ok"
    assert (await server.anonymous().get("/version")).status == HTTPStatus.OK


async def test_a_token_tells_when_it_ends(server: Server) -> None:
    await server.account("notebook")

    path = f"{server.path('serviceaccounts')}/notebook/token"
    answer = await server.caller.post(path, {"spec": {"audiences": ["a"]}})

    assert (answer.status, answer.body["kind"]) == (HTTPStatus.CREATED, "TokenRequest")
    assert child(answer.body, "spec", "audiences") == ["a"]
    assert text(answer.body, "status", "expirationTimestamp").endswith("Z")


async def test_a_token_of_an_account_that_is_not_there(server: Server) -> None:
    path = f"{server.path('serviceaccounts')}/none/token"

    answer = await server.caller.post(path, {"spec": {"audiences": ["a"]}})

    assert (answer.status, answer.reason) == (404, "NotFound")

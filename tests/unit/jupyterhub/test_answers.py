"""A Hub's answers are hostile input: what is not as it should be is an error, and says nothing."""

from __future__ import annotations

import json

import pytest

from gpu_pruner.errors import HubError
from gpu_pruner.jupyterhub.answers import HubServer, read_page, read_server, refusal
from gpu_pruner.model.jupyterhub import ServerName

ALICE = ServerName("team-a", "alice")
STARTED = "2026-01-31T12:00:00.5Z"
RUNS = {"name": "", "ready": True, "pending": None, "started": STARTED, "user_options": {"a": 1}}


def users(*found: object, following: object = None) -> bytes:
    pagination = {"offset": 0, "limit": 200, "total": len(found), "next": following}
    return json.dumps({"items": found, "_pagination": pagination}).encode()


def test_servers_are_told_by_user_and_name() -> None:
    slow = RUNS | {"ready": True, "pending": "stop"}
    page = read_page(
        users(
            {"kind": "user", "name": "alice", "servers": {"": RUNS, "gpu": slow}},
            {"kind": "user", "name": "bob"},
            following={"offset": 200, "limit": 200, "url": "http://elsewhere"},
        ),
        namespace="team-a",
    )

    assert page.servers == {
        ALICE: HubServer(started=STARTED, ready=True),
        ServerName("team-a", "alice", "gpu"): HubServer(
            started=STARTED, ready=False, pending="stop"
        ),
    }
    assert (page.users, page.readable, page.next_offset) == (2, 1, 200)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"<html>Sign in</html>",
        b'{"items": []}',
        b'{"items": [{"servers": {}}], "_pagination": {"next": null}}',
        b'{"items": [{"name": "alice", "servers": {"": {"ready": "yes"}}}], "_pagination": {}}',
        b'{"items": [{"name": "alice", "servers": {"": {}}}], "_pagination": {"next": null}}',
        b"\xff\xfe",
    ],
)
def test_a_list_that_cannot_be_read_is_no_list(body: bytes) -> None:
    with pytest.raises(HubError, match="cannot be read"):
        read_page(body, namespace="team-a")


def test_one_server_is_read_from_its_user() -> None:
    body = json.dumps({"name": "alice", "servers": {"": RUNS}}).encode()

    assert read_server(body, ALICE) == HubServer(started=STARTED, ready=True)
    assert read_server(body, ServerName("team-a", "alice", "gpu")) is None


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"name": "alice"}', "may not read servers"),
        (b'{"name": "bob", "servers": {}}', "answered about another one"),
        (b"null", "cannot be read"),
    ],
)
def test_an_answer_that_says_nothing_of_the_server_does_not_say_that_it_is_stopped(
    body: bytes, why: str
) -> None:
    with pytest.raises(HubError, match=why):
        read_server(body, ALICE)


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (401, b"", "refuses the token"),
        (403, b'{"message": "Action is not authorized"}', "needs the scopes list:users"),
        (302, b"", "redirect"),
        (500, b"<html>", "answered 500"),
        (400, b'{"message": "alice is pending stop"}', "alice is pending stop"),
        (400, b'{"message": "Authorization: Bearer s3cret"}', "answered 400"),
    ],
)
def test_a_refusal_says_what_to_do_and_repeats_no_secret(
    status: int, body: bytes, why: str
) -> None:
    error = refusal(status, body)

    assert error.status == status
    assert why in str(error)
    assert "s3cret" not in str(error)
    assert len(str(refusal(status, b'{"message": "%s"}' % (b"x" * 9999)))) < 400

"""Leases, as an elector takes and renews them."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from support.servers import Server

from gpu_pruner.sim.tree import JsonObject, child, elements, text

HELD: JsonObject = {
    "holderIdentity": "replica-1",
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-01-31T12:00:00.123456Z",
    "renewTime": "2026-01-31T12:00:05.000000Z",
    "leaseTransitions": 0,
}


@pytest.fixture
def leases(server: Server) -> str:
    return server.path("leases", group="coordination.k8s.io/v1")


def lease(spec: JsonObject = HELD, **metadata: str) -> JsonObject:
    return {"metadata": {"name": "leader"} | metadata, "spec": spec}


async def test_it_is_taken_once(server: Server, leases: str) -> None:
    first = await server.caller.post(leases, lease())
    second = await server.caller.post(leases, lease())

    assert (first.status, first.body["spec"]) == (HTTPStatus.CREATED, HELD)
    assert "generation" not in child(first.body, "metadata")
    assert (second.status, second.reason) == (409, "AlreadyExists")


async def test_who_renews_an_older_version_loses(server: Server, leases: str) -> None:
    made = await server.caller.post(leases, lease())
    mine = lease(HELD | {"renewTime": "2026-01-31T12:00:15.000000Z"}, resourceVersion=made.version)
    theirs = lease(HELD | {"holderIdentity": "replica-2"}, resourceVersion=made.version)

    first = await server.caller.put(f"{leases}/leader", mine)
    second = await server.caller.put(f"{leases}/leader", theirs)

    assert (first.status, first.uid) == (200, made.uid)
    assert (second.status, second.reason) == (409, "Conflict")
    now = await server.caller.get(f"{leases}/leader")
    assert text(now.body, "spec", "holderIdentity") == "replica-1"


async def test_a_renewal_must_say_its_version(server: Server, leases: str) -> None:
    await server.caller.post(leases, lease())

    answer = await server.caller.put(f"{leases}/leader", lease())

    assert (answer.status, answer.reason) == (422, "Invalid")
    causes = elements(answer.body, "details", "causes")
    assert [text(one, "field") for one in causes] == ["metadata.resourceVersion"]


async def test_a_renewal_of_what_is_gone_makes_it_anew(server: Server, leases: str) -> None:
    answer = await server.caller.put(f"{leases}/leader", lease())

    assert (answer.status, answer.body["spec"]) == (HTTPStatus.CREATED, HELD)


async def test_a_patch_has_the_same_precondition(server: Server, leases: str) -> None:
    made = await server.caller.post(leases, lease())
    wanted: JsonObject = {"spec": {"holderIdentity": "", "renewTime": None}}
    condition: JsonObject = {"metadata": {"resourceVersion": made.version}}

    first = await server.caller.patch(f"{leases}/leader", wanted | condition)
    second = await server.caller.patch(f"{leases}/leader", {"spec": HELD} | condition)

    assert first.status == HTTPStatus.OK
    assert child(first.body, "spec", "renewTime") is None
    assert (second.status, second.reason) == (409, "Conflict")


@pytest.mark.parametrize(
    "spec",
    [{"leaseDurationSeconds": 0}, {"leaseDurationSeconds": "x"}, {"renewTime": "now"}],
    ids=["no_time", "no_number", "no_moment"],
)
async def test_what_makes_no_sense_is_refused(
    server: Server, leases: str, spec: JsonObject
) -> None:
    made = await server.caller.post(leases, lease())

    answer = await server.caller.patch(f"{leases}/leader", {"spec": spec})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert (await server.caller.get(f"{leases}/leader")).version == made.version


async def test_a_moment_without_microseconds_is_refused(server: Server, leases: str) -> None:
    answer = await server.caller.post(leases, lease(HELD | {"renewTime": "2026-01-31T12:00:05Z"}))

    assert (answer.status, answer.reason) == (400, "BadRequest")

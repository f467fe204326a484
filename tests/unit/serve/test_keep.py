"""A keep over HTTP: who may, what is written, and that nothing is said that helps a stranger."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs
from support.decisions import SERVER
from support.manual_clock import NOON, ManualClock

from gpu_pruner.errors import ClusterError, Forbidden
from gpu_pruner.kube.gpuworkloads import manifest_for, name_for
from gpu_pruner.kube.resources import GPUWORKLOADS

PATH = f"/api/v1/workloads/deployment/{SERVER.namespace}/{SERVER.name}/keep"
TOKEN = "canary-token"
BODY = {"for": "4h", "reason": "a demonstration"}


@pytest.fixture
def post(post_to):
    async def send(body=BODY, *, path=PATH, **how):
        return await post_to(path, body, **how)

    return send


def spec(cluster) -> Mapping:
    return cluster.stored(GPUWORKLOADS, SERVER.namespace, name_for(SERVER))["spec"]


async def test_a_replica_that_does_not_lead_writes_a_keep_down_with_the_name_of_who_asks(
    cluster, post
):
    cluster.put(
        GPUWORKLOADS,
        manifest_for(SERVER)
        | {"metadata": {"name": name_for(SERVER), "namespace": SERVER.namespace}},
    )
    status, told = await post()
    assert (status, told) == (
        200,
        {
            "ref": SERVER.ref,
            "by": "ada",
            "keepUntil": "2026-01-31T16:00:00Z",
            "honouredUntil": "2026-01-31T16:00:00Z",
        },
    )
    assert spec(cluster)["keepUntil"] == "2026-01-31T16:00:00Z"
    assert (spec(cluster)["keepBy"], spec(cluster)["keepReason"]) == ("ada", "a demonstration")
    assert spec(cluster)["rootRef"]["uid"] == SERVER.uid
    [write] = cluster.writes
    assert "status" not in write.body


async def test_a_keep_of_a_workload_without_a_gpuworkload_makes_one(cluster, post):
    assert (await post())[0] == 200
    assert spec(cluster)["keepBy"] == "ada"
    assert spec(cluster)["rootRef"]["uid"] == SERVER.uid


async def test_what_is_beyond_the_cap_is_written_and_told(cluster, post):
    _, told = await post(BODY | {"for": "72h"})
    assert told["keepUntil"] == "2026-02-03T12:00:00Z"
    assert told["honouredUntil"] == "2026-02-01T12:00:00Z"


async def test_the_api_server_is_asked_who_it_is_and_whether_they_may_there(cluster, post):
    await post()
    token, access = cluster.asked
    assert token == {"token": TOKEN}
    assert (access["user"], access["uid"], access["groups"]) == ("ada", "u-1", ["team-a"])
    assert access["resourceAttributes"] == {
        "namespace": SERVER.namespace,
        "verb": "patch",
        "group": "gpu-pruner.io",
        "version": "v1alpha1",
        "resource": "gpuworkloads",
    }


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer wrong"])
async def test_a_stranger_is_asked_for_a_token_and_nothing_is_written(cluster, post, token):
    status, told = await post(token=token)
    assert status == 401
    assert "token" in told["error"]
    assert cluster.writes == []


async def test_who_may_not_patch_gpuworkloads_there_may_not_keep(cluster, post):
    cluster.may = False
    status, told = await post()
    assert (status, told["error"]) == (
        403,
        f"ada may not patch gpuworkloads.gpu-pruner.io in {SERVER.namespace}",
    )
    assert cluster.writes == []


async def test_a_workload_that_nobody_knows_is_404_to_who_may_look(cluster, post):
    status, told = await post(path="/api/v1/workloads/deployment/team-a/nobody/keep")
    assert status == 404
    assert "team-a/nobody" in told["error"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{",
        {},
        {"for": "4h"},
        {"for": "4h", "reason": ""},
        {"for": "4h", "reason": "x" * 1025},
        {"for": 4, "reason": "x"},
        {"for": "-4h", "reason": "x"},
        {"for": "4", "reason": "x"},
        {"for": "0", "reason": "x"},
        {"for": "0h", "reason": "x"},
        {"for": "four hours", "reason": "x"},
        {"for": "9999d", "reason": "x"},
        {"for": "4h", "reason": "x", "by": "somebody else"},
        "\ud800",
    ],
)
async def test_a_body_that_is_no_wish_is_400_with_an_example(cluster, post, body):
    content = (
        body
        if not isinstance(body, str)
        else body.encode("utf-8", "surrogatepass").decode("latin-1")
    )
    status, told = await post(content)
    assert status == 400
    assert '{"for": "4h"' in told["error"]
    assert cluster.writes == []


@pytest.mark.parametrize("failure", [ClusterError("secret words"), Forbidden("secret words")])
async def test_an_api_server_in_trouble_is_503_and_the_words_stay_in_the_log(
    cluster, post, failure
):
    cluster.failures["create", "tokenreviews"] = failure
    with capture_logs() as lines:
        status, told = await post()
    assert status == 503
    assert "secret words" not in told["error"]
    assert "secret words" in str(lines)
    assert TOKEN not in str(lines)


async def test_a_cluster_without_the_kind_is_said(cluster, post):
    cluster.missing_kinds.add("gpuworkloads")
    status, told = await post()
    assert (status, "GPUWorkload kind" in told["error"]) == (409, True)


async def test_before_the_api_server_is_there_it_asks_to_come_again(cluster, post, desk):
    desk._client = None
    assert (await post())[0] == 503


async def test_many_at_once_are_asked_to_come_again(cluster, post):
    cluster.hold = asyncio.Event()
    many = [asyncio.create_task(post()) for _ in range(20)]
    statuses = []
    for one in asyncio.as_completed(many):
        statuses.append((await one)[0])
        if len(statuses) == 12:
            cluster.hold.set()
    assert statuses.count(429) >= 12 - 8
    assert statuses.count(200) >= 8
    assert (await post())[0] == 200


async def test_it_is_no_route_to_read(post):
    status, told = await post(method="GET")
    assert (status, bool(told["error"])) == (405, True)


def test_noon_is_what_the_expected_times_count_from() -> None:
    assert ManualClock().now() == NOON

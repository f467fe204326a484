"""Exemptions, releases and withdrawals over HTTP: what is written, and what stands against it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs
from support.decisions import SERVER

from gpu_pruner.errors import ClusterError
from gpu_pruner.kube.gpuworkloads import manifest_for, name_for
from gpu_pruner.kube.resources import GPUWORKLOADS

PATH = f"/api/v1/workloads/deployment/{SERVER.namespace}/{SERVER.name}"
WHY = {"reason": "done for today"}
KEPT = {"keepUntil": "2026-01-31T13:00:00Z", "keepReason": "a demonstration"}
RELEASED = {"release": True, "releaseAt": "2026-01-31T11:59:00Z", "releaseBy": "bob"}


def spec(cluster) -> Mapping:
    """Return what the GPUWorkload says besides its root."""
    stored = cluster.stored(GPUWORKLOADS, SERVER.namespace, name_for(SERVER))["spec"]
    return {name: value for name, value in stored.items() if name != "rootRef"}


def says(cluster, wish: Mapping) -> None:
    """Store the workload's GPUWorkload with a wish in it."""
    made = dict(manifest_for(SERVER))
    cluster.put(GPUWORKLOADS, made | {"spec": made["spec"] | wish})


async def test_an_exemption_for_good_is_written_with_who_and_why(cluster, post_to):
    status, told = await post_to(f"{PATH}/exempt", WHY)
    assert (status, told) == (200, {"ref": SERVER.ref, "by": "ada"})
    assert spec(cluster) == {"exempt": True, "exemptBy": "ada", "exemptReason": "done for today"}


async def test_an_exemption_for_a_while_takes_the_place_of_the_one_before(cluster, post_to):
    says(cluster, {"exempt": True, "exemptBy": "bob", "exemptReason": "mine"})
    _, told = await post_to(f"{PATH}/exempt", WHY | {"for": "30d"})
    assert told["exemptUntil"] == "2026-03-02T12:00:00Z"
    assert spec(cluster) == {
        "exempt": True,
        "exemptUntil": "2026-03-02T12:00:00Z",
        "exemptBy": "ada",
        "exemptReason": "done for today",
    }


async def test_a_release_is_written_with_its_moment_who_and_why(cluster, post_to):
    status, told = await post_to(f"{PATH}/release", WHY)
    assert (status, told) == (
        200,
        {
            "ref": SERVER.ref,
            "by": "ada",
            "releaseAt": "2026-01-31T12:00:00Z",
            "honouredUntil": "2026-01-31T12:30:00Z",
        },
    )
    assert spec(cluster) == {
        "release": True,
        "releaseAt": "2026-01-31T12:00:00Z",
        "releaseBy": "ada",
        "releaseReason": "done for today",
    }


async def test_who_may_not_change_the_workload_may_not_release_it(cluster, post_to):
    cluster.may_not_patch.add("deployments")
    status, told = await post_to(f"{PATH}/release", WHY)
    assert status == 403
    assert "ada may not patch deployments.apps in team-a" in told["error"]
    assert cluster.writes == []
    assert (await post_to(f"{PATH}/exempt", WHY))[0] == 200


@pytest.mark.parametrize(
    ("wish", "says_why"),
    [
        (KEPT | {"keepBy": "bob"}, "kept by bob until 2026-01-31T13:00:00Z"),
        (KEPT, "kept by somebody"),
        ({"exempt": True, "exemptBy": "ada"}, "exempt"),
        ({"exempt": True, "exemptUntil": "2026-02-01T00:00:00Z"}, "exempt"),
        ({"keepUntil": "tomorrow"}, "exempt"),
    ],
)
async def test_a_release_does_not_end_what_stands_against_it(cluster, post_to, wish, says_why):
    says(cluster, wish)
    status, told = await post_to(f"{PATH}/release", WHY)
    assert status == 409
    assert says_why in told["error"]
    assert cluster.writes == []


@pytest.mark.parametrize(
    "wish",
    [
        KEPT | {"keepBy": "ada"},
        {"keepUntil": "2026-01-31T11:00:00Z", "keepBy": "bob", "keepReason": "over"},
    ],
    ids=["their-own", "one-that-is-over"],
)
async def test_a_release_ends_a_keep_that_nobody_else_counts_on(cluster, post_to, wish):
    says(cluster, wish)
    assert (await post_to(f"{PATH}/release", WHY))[0] == 200
    assert {name for name in spec(cluster) if name.startswith("keep")} == set()


@pytest.mark.parametrize(
    ("route", "body"), [("keep", WHY | {"for": "4h"}), ("exempt", WHY)], ids=["keep", "exempt"]
)
async def test_the_later_word_takes_a_release_back(cluster, post_to, route, body):
    says(cluster, RELEASED)
    assert (await post_to(f"{PATH}/{route}", body))[0] == 200
    assert {name for name in spec(cluster) if name.startswith("release")} == set()


@pytest.mark.parametrize("what", ["keep", "exempt", "release"])
async def test_each_wish_can_be_taken_back_and_no_other_goes_with_it(cluster, post_to, what):
    wishes = {
        "keep": KEPT | {"keepBy": "bob"},
        "exempt": {"exempt": True, "exemptUntil": "2026-02-01T00:00:00Z", "exemptBy": "bob"},
        "release": RELEASED,
    }
    says(cluster, wishes["keep"] | wishes["exempt"] | wishes["release"])
    with capture_logs() as lines:
        status, told = await post_to(f"{PATH}/{what}", WHY | {"withdraw": True})
    assert (status, told) == (200, {"ref": SERVER.ref, "by": "ada", "withdrawn": what})
    left = {name for one in wishes if one != what for name in wishes[one]}
    assert set(spec(cluster)) == left
    [line] = lines
    assert (line["by"], line["reason"], line["what"]) == (
        "ada",
        "done for today",
        f"{what} withdrawn",
    )


async def test_taking_back_what_nobody_said_writes_nothing(cluster, post_to):
    assert (await post_to(f"{PATH}/keep", WHY | {"withdraw": True}))[0] == 200
    assert cluster.writes == []


@pytest.mark.parametrize("route", ["keep", "exempt", "release"])
@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "7",
        {},
        {"reason": ""},
        {"reason": "x" * 1025},
        {"reason": "x", "by": "bob"},
        {"reason": "x", "withdraw": False},
        {"reason": "x", "withdraw": "yes"},
        {"withdraw": True},
        {"reason": "x", "withdraw": True, "for": "4h"},
        {"reason": "x", "for": "-4h"},
        {"reason": "x", "for": 4},
    ],
    ids=str,
)
async def test_a_body_that_is_no_wish_is_400_with_an_example(cluster, post_to, route, body):
    status, told = await post_to(f"{PATH}/{route}", body)
    assert status == 400
    assert '"reason": ' in told["error"]
    assert cluster.writes == []


async def test_where_wishes_cannot_be_read_nothing_is_released(cluster, post_to):
    cluster.failures["list", "gpuworkloads"] = ClusterError("no answer")
    assert (await post_to(f"{PATH}/release", WHY))[0] == 503
    assert cluster.writes == []


@pytest.mark.parametrize("route", ["exempt", "release"])
async def test_a_stranger_may_wish_for_nothing(cluster, post_to, route):
    assert (await post_to(f"{PATH}/{route}", WHY, token="Bearer wrong"))[0] == 401
    cluster.may = False
    assert (await post_to(f"{PATH}/{route}", WHY))[0] == 403
    assert cluster.writes == []

"""Two replicas in a real cluster: one acts, whatever happens to it, and nothing is done twice."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from support.audit import Entry
from support.lab import Lab
from support.product import Product, a_world, phases, told
from support.replicas import LEASE_SECONDS, Replicas, replicas

from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.units import HOUR, parse_rfc3339, rfc3339
from gpu_pruner.sim.tree import JsonObject, elements, mapping, text
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(420)]

NOTICE = ("--ack-grace-period", "15")
WARNING, PAUSE = "GpuIdleWarning", "GpuIdlePaused"


@pytest.fixture
def product(lab: Lab, team: str, tmp_path: Path) -> Iterator[Product]:
    world = a_world(Workload(kind="Deployment", namespace=team, name="server", replicas=2))
    with Product(lab, world, tmp_path) as running:
        yield running


def gpuworkload(product: Product) -> JsonObject:
    """Return the only GPUWorkload of the product's namespace; empty where there is none yet."""
    path = GPUWORKLOADS.path(namespace=product.team)
    return next(iter(elements(product.get(path), "items")), {})


def keep(lab: Lab, product: Product) -> None:
    """Ask for the workload to be kept for an hour, as a person with kubectl does."""
    until = rfc3339(time.time() + HOUR)
    wish = {"spec": {"keepUntil": until, "keepBy": "ada", "keepReason": "a demonstration"}}
    name = text(gpuworkload(product), "metadata", "name")
    how = ("--type=merge", "-p", json.dumps(wish))
    lab.kubectl("patch", "gpw", name, "-n", product.team, *how)


def done(entries: Sequence[Entry]) -> list[Entry]:
    return [one for one in entries if one.response_status.code < 300]


def refusals(entries: Sequence[Entry]) -> list[str]:
    """Return the refused writes of books and levers, in order."""
    beside = {"leases", "events"}
    wrong = [one for one in entries if one.response_status.code >= 300]
    return [one.told for one in wrong if one.object_ref.resource not in beside]


def test_a_follower_is_ready_answers_and_has_written_nothing(product: Product) -> None:
    with replicas(product, *NOTICE) as both:
        follower = both.follower
        follower.until_told(product.ref, state="Warned")
        assert follower.get("/readyz")["leading"] is False
        assert both.leader.get("/readyz")["leading"] is True
        leading, looking = both.leader.told(product.ref), follower.told(product.ref)
        assert (leading["state"], leading["pauseAt"]) == (looking["state"], looking["pauseAt"])
        follower.until_told(product.ref, state="Paused")
        writes = product.writes()
    assert [one.told for one in writes if one.response_status.code == 409] == []
    assert phases(writes) == ["Nominated", "Warned", "Pausing", "Paused"]
    assert told(writes) == [WARNING, PAUSE]


def test_a_killed_leader_is_followed_without_a_second_warning_and_the_deadline_moves(
    product: Product,
) -> None:
    with replicas(product, *NOTICE) as both:
        both.follower.until_told(product.ref, state="Warned")
        due = parse_rfc3339(text(gpuworkload(product), "status", "pauseAt"))
        former = both.kill_leader()
        both.until_followed(former)
        both.leader.until_told(product.ref, state="Paused")
        writes = product.writes()
    assert told(done(writes)) == [WARNING, PAUSE]
    assert phases(done(writes)) == ["Nominated", "Warned", "Warned", "Pausing", "Paused"]
    moved = parse_rfc3339(deadlines(writes)[-1])
    assert moved >= due + LEASE_SECONDS
    [pause] = product.workload_writes()
    assert parse_rfc3339(pause.request_received_timestamp) >= moved


def deadlines(entries: Sequence[Entry]) -> list[str]:
    """Return the deadlines that were written, in order, without repetitions."""
    found = (text(one.request_object, "status", "pauseAt") for one in entries)
    return list(dict.fromkeys(one for one in found if one))


def test_a_leader_that_is_asked_to_stop_hands_over_before_the_lease_is_over(
    product: Product,
) -> None:
    with replicas(product, "--lease-duration", "3600", "--lease-renew-deadline", "60") as both:
        former = both.holder
        assert both.running.pop(former).stop(signal.SIGTERM) == 0
        both.until_followed(former)
        spec = mapping(both.lease(), "spec")
    assert spec["leaseTransitions"] == 1


def test_a_keep_through_a_frozen_leader_wins(lab: Lab, product: Product) -> None:
    with replicas(product, *NOTICE) as both:
        both.follower.until_told(product.ref, state="Warned")
        with both.frozen():
            keep(lab, product)
            both.leader.until_told(product.ref, reason="Kept")
        both.leader.until_told(product.ref, state="Watching", reason="Kept")
    assert product.workload_writes() == []
    assert product.size(product.ref) == 2


def test_a_keep_that_races_the_act_wins(lab: Lab, product: Product) -> None:
    with replicas(product) as both:
        both.until(lambda: text(gpuworkload(product), "status", "phase") == "Pausing")
        keep(lab, product)
        both.leader.until_told(product.ref, state="Watching", reason="Kept")
        both.until(lambda: product.size(product.ref) == 2)
        assert PAUSED not in product.annotations(product.ref)


@pytest.mark.parametrize(
    "seed",
    [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 7))],
)
def test_a_leader_that_freezes_three_times_does_nothing_twice(
    lab: Lab, tmp_path: Path, seed: int
) -> None:
    """Each time at another moment of eight workloads' way from nomination to pause."""
    draw = random.Random(seed)  # noqa: S311 - chance, not secrets
    teams = [lab.namespace() for _ in range(8)]
    world = a_world(*(Workload(kind="Deployment", namespace=one, name="server") for one in teams))
    with Product(lab, world, tmp_path) as product, replicas(product, *NOTICE) as both:
        for moment in draw.sample(["Nominated", "Warned", "Warned again", "Pausing"], 3):
            freeze_at(both, moment, draw)
        both.until(lambda: phases(done(product.writes())).count("Paused") == len(teams))
        writes, refused = done(product.writes()), refusals(product.writes())
        levers = Counter(one.object_ref.namespace for one in done(product.workload_writes()))
        warned = Counter(one.object_ref.namespace for one in writes if told([one]) == [WARNING])
        paused = Counter(one.object_ref.namespace for one in writes if told([one]) == [PAUSE])
    assert levers == warned == paused == dict.fromkeys(teams, 1)
    assert refused == [], "who was frozen does not try"


def freeze_at(both: Replicas, moment: str, draw: random.Random) -> None:
    """Freeze the leader when a phase is first seen since now, or already was; then wake it."""
    phase = moment.partition(" ")[0]
    with suppress(AssertionError):
        both.leader.until(lambda: phase in phases(both.product.writes()), seconds=60)
    with both.frozen() as stopped:
        if draw.random() < 0.5:  # let the other get on with it first
            number = both.leader.get("/api/v1/workloads")["cycle"]["number"]
            both.leader.until(
                lambda: both.leader.get("/api/v1/workloads")["cycle"]["number"] > number + 1
            )
    stopped.until(lambda: stopped.get("/readyz").get("leading") is False)

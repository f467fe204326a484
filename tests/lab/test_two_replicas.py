"""Two replicas in a real cluster: one acts, whatever happens to it, and nothing is done twice."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from support.audit import Entry
from support.between import Between
from support.controller import Controller
from support.lab import Lab
from support.product import Product, a_world, phases, told
from support.replicas import LEASE_SECONDS, WRITES, Replicas, Trap, replicas

from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.units import HOUR, parse_rfc3339, rfc3339
from gpu_pruner.sim.tree import JsonObject, elements, mapping, number, text
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
        former, before = both.holder, number(both.lease(), "spec", "leaseTransitions")
        assert both.running.pop(former).stop(signal.SIGTERM) == 0
        both.until_followed(former)
        assert number(both.lease(), "spec", "leaseTransitions") == before + 1


def test_a_follower_takes_a_keep(lab: Lab, product: Product) -> None:
    """From whoever the API server knows, if they may patch GPUWorkloads there."""
    ada, bob = token(lab, product.team, "ada"), token(lab, product.team, "bob")
    role = ("--verb=patch", "--resource=gpuworkloads.gpu-pruner.io")
    lab.kubectl("create", "role", "keeper", "-n", product.team, *role)
    who = f"--serviceaccount={product.team}:ada"
    lab.kubectl("create", "rolebinding", "keeper", "-n", product.team, "--role=keeper", who)
    with replicas(product, *NOTICE) as both:
        follower = both.follower
        follower.until_told(product.ref, state="Warned")
        assert ask_to_keep(follower, product.ref, "nobody's") == requests.codes.unauthorized
        assert ask_to_keep(follower, product.ref, bob) == requests.codes.forbidden
        assert ask_to_keep(follower, product.ref, ada) == requests.codes.ok
        both.leader.until_told(product.ref, state="Watching", reason="Kept")
        assert follower.get("/readyz")["leading"] is False
    spec = mapping(gpuworkload(product), "spec")
    assert spec["keepBy"] == f"system:serviceaccount:{product.team}:ada"
    assert product.workload_writes() == []
    assert product.size(product.ref) == 2


def token(lab: Lab, team: str, name: str) -> str:
    """Return a token of a new ServiceAccount."""
    lab.kubectl("create", "serviceaccount", name, "-n", team)
    return lab.kubectl("create", "token", name, "-n", team).strip()


def ask_to_keep(replica: Controller, ref: str, bearer: str) -> int:
    """Return the status of the answer."""
    return requests.post(
        f"http://127.0.0.1:{replica.port}/api/v1/workloads/{ref}/keep",
        json={"for": "4h", "reason": "a demonstration"},
        headers={"Authorization": f"Bearer {bearer}"},
        timeout=30,
    ).status_code


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


@dataclass
class Teams:
    """Workloads that all go the same way, each in a namespace of its own."""

    names: list[str]
    product: Product

    def until_paused(self, both: Replicas) -> None:
        """Wait until every book says so; one may say it twice, with another sentence."""

        def paused() -> set[str]:
            writes = done(self.product.writes())
            return {one.object_ref.namespace for one in writes if phases([one]) == ["Paused"]}

        both.until(lambda: paused() == set(self.names))

    def assert_nothing_happened_twice(self) -> None:
        """One pause of each, and one warning per nomination.

        A leader that froze between a book and its lever leaves a pause that never happened: the
        next one begins anew, with a new nomination, a warning of its own, and the whole notice.
        """
        writes = done(self.product.writes())
        levers = Counter(one.object_ref.namespace for one in done(self.product.workload_writes()))
        warned = Counter(one.object_ref.namespace for one in writes if told([one]) == [WARNING])
        paused = Counter(one.object_ref.namespace for one in writes if told([one]) == [PAUSE])
        nominated = {
            (one.object_ref.namespace, text(one.request_object, "status", "nominatedAt"))
            for one in writes
            if phases([one]) == ["Warned"]
        }
        assert levers == paused == dict.fromkeys(self.names, 1)
        assert warned == Counter(namespace for namespace, _ in nominated)


@pytest.fixture
def teams(lab: Lab, tmp_path: Path) -> Iterator[Teams]:
    names = [lab.namespace() for _ in range(3)]
    world = a_world(*(Workload(kind="Deployment", namespace=one, name="server") for one in names))
    with Product(lab, world, tmp_path) as product:
        yield Teams(names, product)


@contextmanager
def trapped(
    lab: Lab, teams: Teams, directory: Path, *, notice: int
) -> Iterator[tuple[Replicas, Trap]]:
    """Run two replicas, each behind a proxy of its own; nothing happens before a release."""
    with ExitStack() as stack:
        proxies = {name: stack.enter_context(Between(lab)) for name in ("a", "b")}
        kubeconfigs = {
            name: one.kubeconfig(shutil.copy(teams.product.kubeconfig, directory / name))
            for name, one in proxies.items()
        }
        product, how = teams.product, ("--ack-grace-period", str(notice))
        both = stack.enter_context(replicas(product, *how, kubeconfigs=kubeconfigs, held=True))
        yield both, Trap(both, proxies)


def test_a_leader_that_is_frozen_in_a_write_makes_no_other_and_nothing_happens_twice(
    lab: Lab, teams: Teams, tmp_path: Path
) -> None:
    """Three times: in a warning, in a book, and in a pause."""
    with trapped(lab, teams, tmp_path, notice=6) as (both, trap):
        trap.set("POST", "/events", late=True)
        both.release()
        assert trap.until_over() == 0
        trap.set("PATCH", "/status", late=True)
        assert trap.until_over() == 0
        trap.set("PATCH", "/server", late=False)
        assert trap.until_over() == 0
        teams.until_paused(both)
    teams.assert_nothing_happened_twice()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_a_leader_that_freezes_at_any_time_does_nothing_twice(
    lab: Lab, teams: Teams, tmp_path: Path, seed: int
) -> None:
    """Four times: in a write before the pause, in none, in a pause, and in the book of one."""
    draw = random.Random(seed)  # noqa: S311 - chance, not secrets
    with trapped(lab, teams, tmp_path, notice=20) as (both, trap):
        trap.set(*draw.choice(WRITES[:2]), late=draw.random() < 0.5)
        both.release()
        assert trap.until_over() == 0
        time.sleep(draw.uniform(0.0, 5.0))
        with both.frozen():
            time.sleep(draw.uniform(0.0, 5.0))
        trap.set("PATCH", "/server", late=False)
        assert trap.until_over() == 0
        trap.set("PATCH", "/status", late=draw.random() < 0.5)
        assert trap.until_over() == 0
        teams.until_paused(both)
    teams.assert_nothing_happened_twice()

"""Pauses of ours that no GPUWorkload knows of, in a real cluster: found again, and only ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.controller import Controller
from support.forgotten import books, forget
from support.lab import Lab
from support.product import Product, a_world, phases, told, until

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.sim.tree import JsonObject, number, text
from gpu_pruner.sim.world import Behaviour, Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]

BUSY = Behaviour(activity=((0.0, 0.6),))


@pytest.fixture
def product(lab: Lab, team: str, tmp_path: Path) -> Iterator[Product]:
    world = a_world(
        Workload(kind="Deployment", namespace=team, name="server", replicas=2),
        Workload(kind="StatefulSet", namespace=team, name="batch"),
        Workload(kind="Deployment", namespace=team, name="busy", behaviour=BUSY),
        Workload(kind="Deployment", namespace=team, name="asleep", replicas=0),
        Workload(kind="StatefulSet", namespace=team, name="copy", replicas=0),
    )
    with Product(lab, world, tmp_path) as running:
        yield running


def cycles(controller: Controller, count: int) -> None:
    """Let the controller end a number of cycles."""

    def number_now() -> int:
        return number(controller.get("/api/v1/workloads"), "cycle", "number")

    last = number_now() + count
    controller.until(lambda: number_now() >= last)


def test_what_we_paused_stays_paused_and_can_be_resumed_though_its_gpuworkload_is_deleted(
    lab: Lab, product: Product
) -> None:
    team = product.team
    server, batch = f"deployment/{team}/server", f"statefulset/{team}/batch"
    with product.controller() as controller:
        controller.until_told(server, state="Paused")
        controller.until_told(batch, state="Paused")
        forget(product, team)
        controller.until_told(server, state="Paused")
    lab.kubectl("delete", "gpuworkloads", "--all", "-n", team)

    with product.controller() as controller:
        controller.until_told(server, state="Paused")
        controller.until_told(batch, state="Paused")
        until(lambda: {text(one, "status", "phase") for one in books(product, team)} == {"Paused"})
        cycles(controller, 3)
        product.by_hand("resume", server)
        controller.until_told(server, state="Watching")
        until(lambda: product.size(server) == 2)
        assert controller.state(batch) == "Paused"

    assert PAUSED not in product.annotations(server)
    assert told(product.writes()).count("GpuIdleWarning") == 2
    written = [(one.object_ref.resource, one.object_ref.name) for one in product.workload_writes()]
    assert sorted(written) == [("deployments", "server"), ("statefulsets", "batch")]


def test_no_record_but_ours_is_believed(lab: Lab, product: Product) -> None:
    team = product.team
    server, busy = f"deployment/{team}/server", f"deployment/{team}/busy"
    asleep, copy = f"deployment/{team}/asleep", f"statefulset/{team}/copy"
    with product.controller() as controller:
        controller.until_told(server, state="Paused")
        ours = product.annotations(server)[PAUSED]
        own = {ref: text(product.object(ref), "metadata", "uid") for ref in (busy, asleep)}
        for ref, uid in own.items():
            note(lab, ref, json.dumps(json.loads(ours) | {"uid": uid}))
        note(lab, copy, ours)
        # Its owner starts it, and stops it again: our record stands there, the zero is theirs.
        lab.kubectl("scale", "deployment/server", "-n", team, "--replicas=1")
        controller.until_told(server, state="Watching")
        lab.kubectl("scale", "deployment/server", "-n", team, "--replicas=0")
        until(lambda: not [one for one in product.pods(team) if is_of(one, "server")])
        lab.audit.mark()
        cycles(controller, 3)
    lab.kubectl("delete", "gpuworkloads", "--all", "-n", team)

    with product.controller() as controller:
        controller.until_told(busy, reason="GpuActive")
        cycles(controller, 5)
        for ref in (server, asleep, copy):
            assert controller.told(ref) == {}
        assert controller.state(busy) == "Watching"

    assert "Restoring" not in phases(product.writes())
    assert [one for one in product.workload_writes() if one.object_ref.name != "batch"] == []
    assert product.size(busy) == 1
    assert product.size(server) == product.size(asleep) == product.size(copy) == 0


def note(lab: Lab, ref: str, record: str) -> None:
    """Write a record by hand."""
    kind, namespace, name = ref.split("/")
    lab.kubectl("annotate", f"{kind}/{name}", "-n", namespace, f"{PAUSED}={record}")


def is_of(pod: JsonObject, name: str) -> bool:
    return text(pod, "metadata", "labels", "app") == name

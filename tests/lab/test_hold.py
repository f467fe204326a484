"""The switch that stops everything, on the real API server with the rights that we ship."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab import Lab
from support.product import OUR_NAMESPACE, Product, a_world, phases

from gpu_pruner.observe.hold import NAME
from gpu_pruner.sim.tree import elements, number, text
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]


@pytest.fixture
def product(lab: Lab, team: str, tmp_path: Path) -> Iterator[Product]:
    world = a_world(Workload(kind="StatefulSet", namespace=team, name="batch"))
    with Product(lab, world, tmp_path) as running:
        yield running
        lab.kubectl("delete", "configmap", NAME, "-n", OUR_NAMESPACE, "--ignore-not-found")


def test_nothing_is_paused_while_the_configmap_stands(lab: Lab, product: Product) -> None:
    with product.controller("--ack-grace-period", "10") as controller:

        def cycle() -> int:
            return number(controller.get("/api/v1/workloads"), "cycle", "number")

        def held() -> list[str]:
            breakers = elements(controller.get("/readyz"), "breakers")
            return [text(one, "message") for one in breakers if text(one, "name") == "AllHeld"]

        controller.until_told(product.ref, state="Warned")
        reason = "--from-literal=reason=maintenance"
        lab.kubectl("create", "configmap", NAME, "-n", OUR_NAMESPACE, reason)
        controller.until(held)
        assert "maintenance" in held()[0]
        controller.until_told(product.ref, state="Warned", reason="ClockFrozen")
        told = text(controller.told(product.ref), "message")
        assert told.startswith("The deadline stands still (Held): ")
        assert told.endswith(": maintenance")
        last = cycle() + 8  # its notice would be over
        controller.until(lambda: cycle() >= last)
        assert "Pausing" not in phases(product.writes())

        lab.kubectl("delete", "configmap", NAME, "-n", OUR_NAMESPACE)
        controller.until_told(product.ref, state="Paused")
    [_] = product.workload_writes()

"""The product while its API server has a bad day: it acts on nothing, and goes on afterwards."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bad_proxy import BadProxy
from support.controller import Controller
from support.lab import Lab
from support.product import Product, a_world, install, told

from gpu_pruner.sim.tree import number
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(420)]

CYCLES_PAST_THE_DEADLINE = 8
"""Of two seconds each; the notice is six seconds."""
RECOVERED_SECONDS = 120.0
"""Two cycles of the length that people use."""


@pytest.fixture
def product(lab: Lab, team: str, tmp_path: Path) -> Iterator[Product]:
    world = a_world(Workload(kind="Deployment", namespace=team, name="server", replicas=2))
    with Product(lab, world, tmp_path) as running:
        yield running


@pytest.fixture
def proxy(lab: Lab) -> Iterator[BadProxy]:
    with BadProxy(lab) as running:
        yield running


@pytest.fixture
def controller(product: Product, proxy: BadProxy) -> Iterator[Controller]:
    """Has just warned of the pause of the one idle workload."""
    with product.controller(kubeconfig=proxy.kubeconfig(product.kubeconfig)) as running:
        running.until_told(product.ref, state="Warned")
        yield running


def let_the_deadline_pass(controller: Controller) -> None:
    def cycle() -> int:
        return number(controller.get("/api/v1/workloads"), "cycle", "number")

    last = cycle() + CYCLES_PAST_THE_DEADLINE
    controller.until(lambda: cycle() >= last)


def test_an_exemption_that_a_stale_view_does_not_show_holds(
    lab: Lab, product: Product, proxy: BadProxy, controller: Controller
) -> None:
    proxy.is_stale = True
    exempt = "gpu-pruner.io/exempt=true"
    lab.kubectl("annotate", "deployment/server", "-n", product.team, exempt)
    let_the_deadline_pass(controller)
    assert product.workload_writes() == []

    proxy.is_stale = False
    controller.until(lambda: controller.reason(product.ref) == "Exempt", seconds=RECOVERED_SECONDS)
    assert product.workload_writes() == []
    assert product.size(product.ref) == 2


def test_nothing_is_paused_that_may_not_be_seen(
    lab: Lab, product: Product, proxy: BadProxy, controller: Controller
) -> None:
    lab.kubectl("delete", "clusterrolebinding/gpu-pruner")
    try:
        proxy.break_watches()
        let_the_deadline_pass(controller)
        assert product.workload_writes() == []
    finally:
        install(lab)

    controller.until_told(product.ref, state="Paused")
    assert len(product.workload_writes()) == 1


def test_a_server_that_is_away_over_the_deadline(
    lab: Lab, product: Product, controller: Controller
) -> None:
    lab.stop("apiserver", signal.SIGKILL)
    try:
        let_the_deadline_pass(controller)
    finally:
        lab.start("apiserver")

    controller.until_told(product.ref, state="Paused")
    assert len(product.workload_writes()) == 1
    assert told(product.writes()).count("GpuIdlePaused") == 1

"""What people and other controllers do meanwhile, in a real cluster: theirs is what counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.between import Between
from support.lab import Lab
from support.product import Product, a_world, phases, until

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.sim.tree import elements, number, text
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]


@pytest.fixture
def product(lab: Lab, team: str, tmp_path: Path):
    world = a_world(Workload(kind="Deployment", namespace=team, name="server", replicas=2))
    with Product(lab, world, tmp_path) as running:
        yield running


def cycles(controller, count: int) -> None:
    """Let the controller end a number of cycles."""

    def number_now() -> int:
        return number(controller.get("/api/v1/workloads"), "cycle", "number")

    last = number_now() + count
    controller.until(lambda: number_now() >= last)


@pytest.mark.parametrize(
    ("method", "reason", "refused"),
    [
        pytest.param("GET", "ClockFrozen", [], id="before-the-last-look"),
        pytest.param("PATCH", "TooYoung", [("patch", 409)], id="after-the-last-look"),
    ],
)
def test_who_rescales_right_before_the_act_keeps_the_workload(
    lab: Lab, product: Product, method: str, reason: str, refused: list[tuple[str, int]]
) -> None:
    team, ref = product.team, product.ref
    place = f"/namespaces/{team}/deployments/server"

    def rescale() -> None:
        lab.kubectl("scale", "deployment/server", "-n", team, "--replicas=3")

    with Between(lab) as between:
        order = between.before(method, place, rescale)
        kubeconfig = between.kubeconfig(product.kubeconfig)
        with product.controller(kubeconfig=kubeconfig) as controller:
            controller.until(lambda: order.done)
            controller.until_told(ref, reason=reason)
            cycles(controller, 5)
            assert controller.reason(ref) == reason

    assert refused == [(one.verb, one.response_status.code) for one in product.lever_writes(ref)]
    assert product.size(ref) == 3
    assert PAUSED not in product.annotations(ref)


def test_who_deletes_the_owner_right_before_the_act_hears_no_more_of_it(
    lab: Lab, product: Product
) -> None:
    team, ref = product.team, product.ref

    def delete() -> None:
        lab.kubectl("delete", "deployment/server", "-n", team)

    with Between(lab) as between:
        order = between.before("GET", f"/namespaces/{team}/deployments/server", delete)
        kubeconfig = between.kubeconfig(product.kubeconfig)
        with product.controller(kubeconfig=kubeconfig) as controller:
            controller.until(lambda: order.done)
            controller.until(lambda: not controller.told(ref))
            cycles(controller, 3)

    assert product.workload_writes() == []
    assert "Pausing" not in phases(product.writes())


def test_what_a_person_restarts_gets_a_new_window_and_is_not_contested(
    lab: Lab, product: Product
) -> None:
    team, ref = product.team, product.ref

    with product.controller() as controller:
        controller.until_told(ref, state="Paused")
        lab.kubectl("scale", "deployment/server", "-n", team, "--replicas=2")
        controller.until_told(ref, state="Watching")
        until(lambda: product.ready(team) == 2)
        controller.until_told(ref, reason="TooYoung")
        cycles(controller, 5)
        assert controller.reason(ref) == "TooYoung"

    assert len(product.lever_writes(ref)) == 1
    assert contested(product, team) == ""


def test_what_a_gitops_controller_reverts_is_contested_after_once(
    lab: Lab, product: Product
) -> None:
    team, ref = product.team, product.ref

    size = ("--type=merge", "-p", '{"spec":{"replicas":2}}')
    with product.controller() as controller:
        controller.until_told(ref, state="Paused")
        who = "--field-manager=argocd-controller"
        lab.kubectl("patch", "deployment/server", "-n", team, who, *size)
        controller.until_told(ref, reason="Contested")
        cycles(controller, 5)
        assert controller.reason(ref) == "Contested"

    assert len(product.lever_writes(ref)) == 1
    assert contested(product, team) == "argocd-controller"
    assert product.size(ref) == 2


def contested(product: Product, team: str) -> str:
    """Return whom the only GPUWorkload of a namespace says that the workload is left to."""
    path = f"/apis/gpu-pruner.io/v1alpha1/namespaces/{team}/gpuworkloads"
    [found] = elements(product.get(path), "items")
    return text(found, "status", "contestedBy")

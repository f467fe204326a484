"""What KEDA scales, in a real cluster: held at zero, and let go where that is in vain."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.custom_kinds import install_kinds
from support.lab import Lab
from support.lever_objects import SCALED_OBJECT
from support.product import Product, a_world

from gpu_pruner.model.annotations import KEDA_PAUSED_REPLICAS, PAUSED
from gpu_pruner.sim.tree import elements, mapping, number, text, with_value
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]


def test_what_keda_scales_up_although_it_holds_it_is_contested_and_let_go(
    lab: Lab, team: str, tmp_path: Path
) -> None:
    install_kinds(lab)
    world = a_world(Workload(kind="Deployment", namespace=team, name="server", replicas=2))
    governor = f"scaledobject/{team}/server"
    meta = {"name": "server", "namespace": team, "annotations": {"team": "vision"}}
    with Product(lab, world, tmp_path) as product:
        product.apply(with_value(SCALED_OBJECT, ("metadata",), to=meta))
        with product.controller() as controller:
            controller.until(lambda: product.annotations(governor).get(KEDA_PAUSED_REPLICAS) == "0")
            scale(lab, team, 0)
            controller.until_told(product.ref, state="Paused")

            scale(lab, team, 2)  # kedacore/keda#5165
            controller.until(lambda: KEDA_PAUSED_REPLICAS not in product.annotations(governor))
            controller.until_told(product.ref, reason="Contested")
            last = number(controller.get("/api/v1/workloads"), "cycle", "number") + 3
            controller.until(
                lambda: number(controller.get("/api/v1/workloads"), "cycle", "number") >= last
            )

        assert PAUSED not in product.annotations(governor)
        assert product.size(product.ref) == 2
        assert [one.told for one in product.workload_writes()] == [
            f"patch scaledobjects {team}/server -> 200"
        ] * 2
        books = f"/apis/gpu-pruner.io/v1alpha1/namespaces/{team}/gpuworkloads"
        [book] = elements(product.get(books), "items")
        assert text(mapping(book, "status"), "contestedBy") == "keda-operator"


def scale(lab: Lab, team: str, size: int) -> None:
    """Set the size as KEDA does."""
    what = ("--type=merge", "-p", f'{{"spec":{{"replicas":{size}}}}}')
    who = "--field-manager=keda-operator"
    lab.kubectl("patch", "deployment/server", "-n", team, who, *what)

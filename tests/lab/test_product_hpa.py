"""What a HorizontalPodAutoscaler sizes, in a real cluster: Kubernetes' own one runs here.

It has no metrics, so that its bounds alone move it: a new ``minReplicas`` is how these tests let it
scale. A target at zero is one that it leaves alone (``ScalingDisabled``), unless it may scale to
zero itself, which Kubernetes 1.36 has as an alpha (kubernetes/kubernetes, `horizontal.go`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.between import Between
from support.forgotten import books
from support.lab import Lab
from support.product import Product, Thing, a_world, phases, record, until

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.sim.tree import JsonObject, elements, number, text
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]


def a_product(lab: Lab, team: str, directory: Path, *, also: Sequence[Workload] = ()) -> Product:
    """Return a workload of one pod that its autoscaler makes two of, and others."""
    server = Workload(kind="Deployment", namespace=team, name="server")
    scalers = [Thing(an_autoscaler(team, "server"), pods=1)]
    scalers += [Thing(an_autoscaler(team, one.name)) for one in also]
    return Product(lab, a_world(server, *also), directory, things=scalers)


def test_its_size_is_paused_and_given_back_and_it_scales_on(
    lab: Lab, team: str, tmp_path: Path
) -> None:
    with a_product(lab, team, tmp_path) as product:
        ref = product.ref
        assert product.size(ref) == 2
        with product.controller() as controller:
            controller.until_told(ref, state="Paused")
            until(lambda: "ScalingDisabled" in scaling(product, team))
            assert product.size(ref) == 0
            [pause] = product.lever_writes(ref)
            assert record(pause)["replicas"] == 2

            product.by_hand("resume", ref)
            controller.until_told(ref, state="Watching")
            assert product.ready(team) == product.size(ref) == 2
            until(lambda: "ScalingDisabled" not in scaling(product, team))
            ask_for(product, team, 3)
            until(lambda: product.ready(team) == 3)
            seen = cycle(controller)
            controller.until(lambda: cycle(controller) >= seen + 3)

        assert product.size(ref) == 3
        assert PAUSED not in product.annotations(ref)
        [book] = books(product, team)
        assert text(book, "status", "contestedBy") == ""
        assert [one.told for one in product.workload_writes()] == [pause.told]


@pytest.mark.parametrize(
    ("method", "reason", "refused"),
    [
        pytest.param("GET", "ClockFrozen", [], id="before-the-last-look"),
        pytest.param("PATCH", "TooYoung", [("patch", 409)], id="after-the-last-look"),
    ],
)
def test_what_it_scales_right_before_the_act_is_decided_anew(
    lab: Lab,
    team: str,
    tmp_path: Path,
    method: str,
    reason: str,
    refused: list[tuple[str, int]],
) -> None:
    with a_product(lab, team, tmp_path) as product, Between(lab) as between:
        ref = product.ref

        def scale() -> None:
            ask_for(product, team, 3)
            until(lambda: product.size(ref) == 3)

        order = between.before(method, f"/namespaces/{team}/deployments/server", scale)
        kubeconfig = between.kubeconfig(product.kubeconfig)
        with product.controller(kubeconfig=kubeconfig) as controller:
            controller.until(lambda: order.done)
            controller.until_told(ref, reason=reason)
            seen = cycle(controller)
            controller.until(lambda: cycle(controller) >= seen + 3)
            assert controller.reason(ref) == reason

        writes = product.lever_writes(ref)
        assert [(one.verb, one.response_status.code) for one in writes] == refused
        assert product.ready(team) == product.size(ref) == 3
        assert PAUSED not in product.annotations(ref)


def test_what_somebody_has_at_zero_already_is_never_called_paused(
    lab: Lab, team: str, tmp_path: Path
) -> None:
    asleep = Workload(kind="Deployment", namespace=team, name="asleep", replicas=0)
    with a_product(lab, team, tmp_path, also=[asleep]) as product:
        sleeper, ref = f"deployment/{team}/asleep", product.ref
        until(lambda: "ScalingDisabled" in scaling(product, team, "asleep"))
        with product.controller("--ack-grace-period", "20") as controller:
            controller.until_told(ref, state="Warned")
            switch_off = ("--replicas=0", "-n", team)
            lab.kubectl("scale", "deployment/server", *switch_off)
            controller.until_told(ref, state="Watching", reason="AlreadyZero")
            until(lambda: product.pods(team) == [])
            until(lambda: "ScalingDisabled" in scaling(product, team))
            seen = cycle(controller)
            controller.until(lambda: cycle(controller) >= seen + 12)  # beyond its deadline

            for one in (sleeper, ref):
                assert "already at zero replicas, and not by us" in refusal(product, "pause", one)
                assert "no record of its former size" in refusal(product, "resume", one)

        assert controller_never_paused(product)
        assert product.workload_writes() == []
        assert PAUSED not in product.annotations(ref) | product.annotations(sleeper)


def controller_never_paused(product: Product) -> bool:
    """Whether no book ever said Pausing or Paused."""
    return not {"Pausing", "Paused"} & set(phases(product.writes()))


def refusal(product: Product, command: str, ref: str) -> str:
    """Return what a person's order is refused with."""
    done = subprocess.run(
        [sys.executable, "-m", "gpu_pruner.cli", command, ref],
        env=os.environ | {"KUBECONFIG": str(product.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr + done.stdout


def cycle(controller) -> int:
    """Return the number of the last cycle."""
    return number(controller.get("/api/v1/workloads"), "cycle", "number")


def ask_for(product: Product, team: str, least: int) -> None:
    """Let the autoscaler scale up."""
    body = json.dumps({"spec": {"minReplicas": least}})
    product.lab.kubectl("patch", "hpa/server", "-n", team, "--type=merge", "-p", body)


def an_autoscaler(team: str, name: str) -> JsonObject:
    """Return an autoscaler of two to four pods for the Deployment of its name."""
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": team},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 2,
            "maxReplicas": 4,
            "metrics": [{"type": "Resource", "resource": resource}],
        },
    }


def scaling(product: Product, team: str, name: str = "server") -> set[str]:
    """Return the reasons of an autoscaler's conditions."""
    path = f"/apis/autoscaling/v2/namespaces/{team}/horizontalpodautoscalers/{name}"
    return {text(one, "reason") for one in elements(product.get(path), "status", "conditions")}

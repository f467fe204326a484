"""A pause that somebody calls wrong, in a real cluster, across a restart of the controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.controller import Controller
from support.lab import Lab
from support.product import Product, a_world, record

from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.units import DAY, parse_rfc3339
from gpu_pruner.sim.tree import JsonObject, elements, mapping, number, text
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]

WHY = "it was training"
METRIC = "gpu_pruner_false_positives_total"


def book(product: Product) -> JsonObject:
    """Return the only GPUWorkload."""
    [found] = elements(product.get(GPUWORKLOADS.path(namespace=product.team)), "items")
    return found


def counted(controller: Controller) -> float:
    [line] = [one for one in controller.metrics().splitlines() if one.startswith(f"{METRIC} ")]
    return float(line.split()[1])


def until_cycles(controller: Controller, more: int) -> None:
    def cycle() -> int:
        return number(controller.get("/api/v1/workloads"), "cycle", "number")

    last = cycle() + more
    controller.until(lambda: cycle() >= last)


def test_a_wrong_pause_is_given_back_exempted_and_counted_once_with_its_evidence(
    lab: Lab, team: str, tmp_path: Path
) -> None:
    world = a_world(Workload(kind="Deployment", namespace=team, name="server", replicas=2))
    config = tmp_path / "settings.yaml"
    config.write_text(f"ledger:\n  directory: {tmp_path}\n", encoding="utf-8")
    given = ("--config", str(config))
    with Product(lab, world, tmp_path) as product:
        ref = product.ref
        with product.controller(*given) as controller:
            controller.until_told(ref, state="Paused")
            [pause] = product.workload_writes()
            assert counted(controller) == 0
            told = product.by_hand("resume", ref, "--wrong", WHY)
            assert f"{ref}: being restored; it had 2 replicas" in told
            assert "its pause counts as a false positive" in told
            controller.until_told(ref, state="Watching", reason="Exempt")
            controller.until(lambda: counted(controller) == 1)
            until_cycles(controller, 3)
            assert counted(controller) == 1
            [called] = elements(controller.get("/api/v1/history"), "falsePositives")

        spec = mapping(book(product), "spec")
        assert product.size(ref) == 2
        assert PAUSED not in product.annotations(ref)
        assert spec["wrongPause"] == record(pause)["decision"] == called["decisionId"]
        assert called["evidence"] == record(pause)["why"]
        assert (called["reason"], called["by"]) == (WHY, spec["wrongBy"])
        span = parse_rfc3339(text(spec, "exemptUntil")) - parse_rfc3339(text(spec, "wrongAt"))
        assert span == pytest.approx(DAY, abs=1)
        assert text(book(product), "status", "countedWrong") == spec["wrongPause"]

        with product.controller(*given) as controller:
            controller.until_told(ref, reason="Exempt")
            until_cycles(controller, 3)
            assert counted(controller) == 0, "the process before has counted it"
            history = controller.get("/api/v1/history")
            assert elements(history, "falsePositives") == [called]
            [act] = [one for one in elements(history, "acts") if one["action"] == "pause"]
            assert (act["result"], act["calledWrongBy"]) == ("done", called["by"])
            total = mapping(controller.get("/api/v1/leaderboard"), "total")
            assert total["falsePositives"] == 1

        report = product.by_hand("report", *given, "--output", "markdown")
        assert "false positives" in report
        assert product.workload_writes() == [pause]


def test_what_is_said_while_no_controller_runs_is_heard_by_the_next_one(
    lab: Lab, team: str, tmp_path: Path
) -> None:
    world = a_world(Workload(kind="Deployment", namespace=team, name="server"))
    with Product(lab, world, tmp_path) as product:
        with product.controller() as controller:
            controller.until_told(product.ref, state="Paused")
        product.by_hand("resume", product.ref, "--wrong", WHY)
        with product.controller() as controller:
            controller.until_told(product.ref, reason="Exempt")
            controller.until(lambda: counted(controller) == 1)
        assert product.size(product.ref) == 1

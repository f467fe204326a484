"""A Job that Kueue admitted, in a real cluster: its Workload stops it and lets it go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.custom_kinds import install_kinds
from support.forgotten import forget
from support.kueue import QUEUE, workload_name
from support.lab import Lab
from support.lever_objects import JOB
from support.product import Product, Thing, a_world, phases, record, told, until

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.sim.tree import JsonObject, child, mapping

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]

OPTED_IN = "warn_only_kinds: [JobSet, PyTorchJob, RayCluster, TrainJob]\n"
"""Settings of somebody whose Jobs write checkpoints."""


def a_job(team: str) -> JsonObject:
    """Return a Job as somebody submits it to a queue."""
    meta = {"name": "train", "namespace": team, "labels": {QUEUE: "gpus"}}
    return JOB | {"metadata": meta, "spec": mapping(JOB, "spec") | {"suspend": True}}


def test_an_admitted_job_is_only_warned_and_once_allowed_paused_and_admitted_anew(
    lab: Lab, team: str, tmp_path: Path
) -> None:
    install_kinds(lab)
    settings = tmp_path / "settings.yaml"
    settings.write_text(OPTED_IN)
    ref, lever = f"job/{team}/train", f"workload/{team}/{workload_name('train')}"
    with Product(lab, a_world(), tmp_path, things=[Thing(a_job(team), pods=1)]) as product:
        before = product.uids(team)
        with product.controller() as controller:
            controller.until_told(ref, state="WouldPause", reason="WarnOnly")
        assert product.workload_writes() == []
        assert product.uids(team) == before

        with product.controller("--config", str(settings)) as controller:
            controller.until_told(ref, state="Warned")
            assert product.workload_writes() == []
            assert product.uids(team) == before

            controller.until_told(ref, state="Paused")
            assert product.pods(team) == []
            assert child(product.object(ref), "spec", "suspend") is True  # by Kueue
            assert child(product.object(lever), "spec", "active") is False
            [pause] = product.workload_writes()
            assert pause.told == f"patch workloads {team}/{workload_name('train')} -> 200"
            assert mapping(pause.request_object, "spec") == {"active": False}
            assert record(pause)["lever"] == "Workload"
            assert record(pause)["name"] == workload_name("train")

            forget(product, team)
            controller.until_told(ref, state="Paused")
            product.by_hand("resume", ref)
            controller.until_told(ref, state="Watching")
            until(lambda: product.ready(team) == 1)

        writes = product.writes()
        assert [one.told for one in writes if one.is_refused] == []
        assert phases(writes)[-4:] == ["Pausing", "Paused", "Paused", "Watching"]
        assert told(writes)[-2:] == ["GpuIdlePaused", "GpuIdleRestored"]
        assert [one.told for one in product.workload_writes()] == [pause.told]
        assert child(product.object(ref), "spec", "suspend") is False
        assert child(product.object(lever), "spec", "active") is True
        assert PAUSED not in product.annotations(lever)
        assert PAUSED not in product.annotations(ref)

"""The whole line in a real cluster: what is idle is paused, and comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lab import Lab
from support.product import BOOKKEEPING, Product, a_world, phases, record, told

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.sim.tree import mapping
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_an_idle_workload_is_warned_paused_gone_and_resumed_to_its_size(
    lab: Lab, team: str, tmp_path: Path, kind: str
) -> None:
    world = a_world(Workload(kind=kind, namespace=team, name="batch", replicas=2))
    ref = f"{kind.lower()}/{team}/batch"
    with Product(lab, world, tmp_path) as product, product.controller() as controller:
        before = product.uids(team)
        controller.until_told(ref, state="Warned")
        # What we have written until now are objects of ours.
        assert product.uids(team) == before
        assert phases(product.writes())[-1] == "Warned"
        assert product.workload_writes() == []

        controller.until_told(ref, state="Paused")
        assert product.pods(team) == []
        [pause] = product.workload_writes()
        assert (pause.verb, pause.object_ref.subresource) == ("patch", "")
        assert mapping(pause.request_object, "spec") == {"replicas": 0}
        assert record(pause)["replicas"] == 2

        product.by_hand("resume", ref)
        controller.until_told(ref, state="Watching")
        assert product.ready(team) == product.size(ref) == 2
        assert PAUSED not in product.annotations(ref)

        writes = product.writes()
        assert [one.told for one in writes if one.is_refused] == []
        assert phases(writes) == ["Nominated", "Warned", "Pausing", "Paused", "Watching"]
        assert told(writes) == ["GpuIdleWarning", "GpuIdlePaused", "GpuIdleRestored"]
        assert [one.told for one in product.workload_writes()] == [pause.told]


def test_a_dry_run_writes_nothing_to_a_workload(lab: Lab, team: str, tmp_path: Path) -> None:
    world = a_world(
        Workload(kind="Deployment", namespace=team, name="server", replicas=2),
        Workload(kind="StatefulSet", namespace=team, name="batch"),
    )
    with (
        Product(lab, world, tmp_path) as product,
        product.controller(mode="dry-run") as controller,
    ):
        before = product.uids(team)
        controller.until_told(f"deployment/{team}/server", state="WouldPause")
        controller.until_told(f"statefulset/{team}/batch", state="WouldPause")

        assert {one.object_ref.resource for one in product.writes()} <= BOOKKEEPING
        assert "WouldPause" in phases(product.writes())
        assert product.uids(team) == before

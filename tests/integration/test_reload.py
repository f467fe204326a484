"""A running daemon takes over its changed settings file, and survives a wrong one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.controller import Controller

from gpu_pruner.kube.crd import crd
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.world import Node, Workload, World

WORLD = World(
    nodes=(Node(name="node-a"),),
    workloads=(Workload(kind="Deployment", namespace="team-a", name="train"),),
)
SETTINGS = "cycle_seconds: 1\nscrape: {exporters: ['http://127.0.0.1:1/metrics']}\n"

pytestmark = pytest.mark.timeout(120)


def story(controller: Controller, file: Path) -> None:
    def successful(value: int) -> bool:
        name = "gpu_pruner_config_last_reload_successful"
        try:
            return f"{name} {value}.0\n" in controller.metrics()
        except OSError:  # it does not listen yet
            return False

    def logged(event: str) -> list[dict[str, object]]:
        lines = [json.loads(one) for one in controller.log.read_text().splitlines() if one]
        return [one for one in lines if one["event"].startswith(event)]

    with controller:
        controller.until(lambda: successful(1))
        file.write_text(f"{SETTINGS}widow_seconds: 1h\n")
        controller.until(lambda: successful(0))
        file.write_text(f"{SETTINGS}settle_seconds: 1m\nlisten_port: 1\n")
        controller.until(lambda: successful(1))
    (wrong,) = logged("settings file is wrong")
    assert "did you mean window_seconds?" in str(wrong["error"])
    (reloaded,) = logged("settings reloaded")
    assert reloaded["changed"] == ["settle_seconds: 5m → 1m"]
    assert reloaded["needs_restart"] == []  # the port was given by a flag, which wins


async def test_a_running_daemon_takes_over_a_changed_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(SETTINGS)
    async with SimulatedCluster(WORLD, SystemClock(), crds=(crd(),)) as cluster:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig())
        controller = Controller(kubeconfig, tmp_path / "log", ("--config", str(file)))
        await asyncio.to_thread(story, controller, file)

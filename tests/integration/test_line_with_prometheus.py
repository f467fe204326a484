"""The whole line in real time against a real Prometheus: history back-filled, then scraped live."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.prometheus import PrometheusServer, backfill, require_prometheus

from gpu_pruner.kube.crd import crd
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.history import TARGET_LABELS, Scraping
from gpu_pruner.sim.world import Behaviour, Node, Override, Workload, World

IDLE = {"Deployment/team-a/train", "StatefulSet/team-b/batch", "Notebook/team-c/notebook-1"}
KEPT = {"Deployment/team-a/finetune", "StatefulSet/team-c/workers", "Deployment/team-c/evaluate"}
BUSY = Behaviour(activity=((0.0, 0.6),))
WORLD = World(
    nodes=(Node(name="node-a"), Node(name="node-b", gpus=4, model="NVIDIA L40S")),
    workloads=(
        Workload(kind="Deployment", namespace="team-a", name="train", replicas=2),
        Workload(kind="StatefulSet", namespace="team-b", name="batch", gpus=2),
        Workload(kind="Notebook", namespace="team-c", name="notebook-1"),
        Workload(
            kind="Deployment",
            namespace="team-a",
            name="finetune",
            gpus=2,
            overrides=(Override(gpu=1, behaviour=BUSY),),
        ),
        Workload(
            kind="StatefulSet",
            namespace="team-c",
            name="workers",
            replicas=2,
            overrides=(Override(pod=1, behaviour=BUSY),),
        ),
        Workload(
            kind="Deployment",
            namespace="team-c",
            name="evaluate",
            behaviour=Behaviour(gaps=((-25.0, -12.0),)),
        ),
    ),
)
ALLOWED_IN_DRY_RUN = {"gpuworkloads", "events", "leases"}

pytestmark = [pytest.mark.timeout(240), pytest.mark.prometheus]


@dataclass
class Line:
    cluster: SimulatedCluster
    prometheus: str
    kubeconfig: Path
    log: Path

    async def run(self, *arguments: str) -> asyncio.subprocess.Process:
        with self.log.open("ab") as sink:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gpu_pruner.cli", *arguments),
                *("--kubeconfig", str(self.kubeconfig)),
                stdout=sink,
                stderr=sink,
            )

    async def until(self, condition: Callable[[], bool], *, seconds: float = 120) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.1)

    def phases(self) -> dict[str, str]:
        found = {}
        for one in self.cluster.all("GPUWorkload"):
            root = one["spec"]["rootRef"]
            ref = f"{root['kind']}/{one['metadata']['namespace']}/{root['name']}"
            found[ref] = one.get("status", {}).get("phase", "")
        return found

    def writes(self) -> list[tuple[str, str]]:
        ours = (one for one in self.cluster.requests if one.user == "gpu-pruner" and one.is_write)
        return [(one.resource, f"{one.namespace}/{one.name}") for one in ours]


@asynccontextmanager
async def line(tmp_path: Path, *, honor_labels: bool):
    require_prometheus()
    clock = SystemClock()
    async with SimulatedCluster(WORLD, clock, crds=(crd(),)) as cluster:
        now = clock.now()
        scraping = Scraping(start=now - 3600, end=now - 1, honor_labels=honor_labels)
        data = await asyncio.to_thread(backfill, cluster.history(scraping), tmp_path)
        host = cluster.url.removeprefix("http://")
        targets = [
            {
                "targets": [host],
                "labels": {
                    "__metrics_path__": f"/exporters/{node.name}/metrics",
                    **{key: value.format(node=node.name) for key, value in TARGET_LABELS.items()},
                },
            }
            for node in WORLD.nodes
        ]
        server = PrometheusServer(
            tmp_path / "prometheus",
            data=data,
            static_configs=tuple(targets),
            honor_labels=honor_labels,
            scrape_interval="5s",
        )
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig())
        entered = await asyncio.to_thread(server.__enter__)
        try:
            yield Line(cluster, entered.url, kubeconfig, tmp_path / "controller.log")
        finally:
            await asyncio.to_thread(server.__exit__, None, None, None)


@asynccontextmanager
async def controller(line: Line, mode: str):
    process = await line.run(
        *("run", "-r", mode, "--prometheus-url", line.prometheus, "-l", "json"),
        *("-t", "35", "-g", "0", "-c", "2", "--ack-grace-period", "6"),
        *("--listen-address", "127.0.0.1", "--listen-port", "0"),
    )
    try:
        yield process
    finally:
        process.terminate()
        assert await process.wait() == 0, line.log.read_text()[-3000:]


@pytest.mark.parametrize("honor_labels", [False, True])
async def test_scale_down_pauses_what_is_idle_and_resume_gives_it_back(tmp_path, honor_labels):
    async with line(tmp_path, honor_labels=honor_labels) as it:
        sizes = {"Deployment/team-a/train": 2, "StatefulSet/team-b/batch": 1}
        async with controller(it, "scale-down"):
            await it.until(lambda: {k for k, v in it.phases().items() if v == "Paused"} >= IDLE)
            resumed = await it.run("resume", "deployment/team-a/train")
            assert await resumed.wait() == 0, it.log.read_text()[-3000:]
            await it.until(lambda: it.phases()["Deployment/team-a/train"] == "Watching")
        train = it.cluster.get("Deployment", namespace="team-a", name="train")
        assert train["spec"]["replicas"] == sizes["Deployment/team-a/train"]
        assert PAUSED not in train["metadata"].get("annotations", {})
        assert (
            it.cluster.get("StatefulSet", namespace="team-b", name="batch")["spec"]["replicas"] == 0
        )
        touched = {name for resource, name in it.writes() if resource not in ALLOWED_IN_DRY_RUN}
        assert touched == {"team-a/train", "team-b/batch", "team-c/notebook-1"}
        assert not KEPT & it.phases().keys()


@pytest.mark.parametrize("honor_labels", [False, True])
async def test_a_dry_run_writes_nothing_to_any_workload(tmp_path, honor_labels):
    async with line(tmp_path, honor_labels=honor_labels) as it:
        async with controller(it, "dry-run"):
            await it.until(lambda: {k for k, v in it.phases().items() if v == "WouldPause"} >= IDLE)
        assert {resource for resource, _ in it.writes()} <= ALLOWED_IN_DRY_RUN
        assert it.phases().keys() == IDLE


async def test_one_pass_in_dry_run_writes_nothing_at_all_and_tells_every_workload(tmp_path):
    async with line(tmp_path, honor_labels=False) as it:
        done = await asyncio.to_thread(
            subprocess.run,
            [
                *(sys.executable, "-m", "gpu_pruner.cli", "--prometheus-url", it.prometheus),
                *("--kubeconfig", str(it.kubeconfig), "-g", "0"),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, "COLUMNS": "400"},
        )
        assert done.returncode == 0, done.stderr
        assert "deployment/team-a/train" in done.stdout
        assert "No GPU work on 2 of 2 GPUs" in done.stdout
        assert "19 of 35 minutes" in done.stdout or "LowCoverage" in done.stdout
        assert it.writes() == []

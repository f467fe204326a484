"""A simulated cluster whose telemetry is in a real Prometheus, and the controller as a process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.prometheus import PrometheusServer, backfill, require_prometheus

from gpu_pruner.kube.crd import crd
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


@dataclass
class Line:
    cluster: SimulatedCluster
    prometheus: str
    kubeconfig: Path
    log: Path

    async def run(
        self, *arguments: str, environ: Mapping[str, str] | None = None
    ) -> asyncio.subprocess.Process:
        with self.log.open("ab") as sink:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gpu_pruner.cli", *arguments),
                stdout=sink,
                stderr=sink,
                env={**os.environ, "KUBECONFIG": str(self.kubeconfig), **(environ or {})},
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
async def line(tmp_path: Path, *, honor_labels: bool) -> AsyncIterator[Line]:
    """Back-fill an hour, go on scraping every 5 seconds."""
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

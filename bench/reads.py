"""What a steady cycle asks the API server: nothing per idle pod, counted in its own request log.

A simulated cluster with 60 idle pods and the whole controller in dry run. Once every workload has
come to its latched end, further cycles are run and every request in the log is counted.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import structlog

from bench.figures import Figure
from gpu_pruner.cli.wiring import Controller, connected
from gpu_pruner.kube.crd import crd
from gpu_pruner.model.book import Phase
from gpu_pruner.model.units import MINUTE
from gpu_pruner.observe.hold import NAME as HOLD
from gpu_pruner.record.board import Board
from gpu_pruner.settings.clock import ScaledClock
from gpu_pruner.settings.schema import (
    BudgetSettings,
    KubernetesSettings,
    ScrapeSettings,
    Settings,
)
from gpu_pruner.sim.cluster import CONTROLLER, SimulatedCluster
from gpu_pruner.sim.world import Node, Workload, World

WORKLOADS, REPLICAS, NODES = 6, 10, 8
STEADY_CYCLES = 6
SPEED = 60.0
_LONGEST = 60
"""Cycles in which every workload must have come to its end."""
_READS = frozenset({"get", "list"})


def measure() -> list[Figure]:
    """Run the controller to a steady state and count."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    return asyncio.run(_measure())


async def _measure() -> list[Figure]:
    now = time.time()
    clock = ScaledClock(now, now, SPEED)
    async with SimulatedCluster(_world(), clock, crds=(crd(),)) as cluster:
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            kubeconfig.write_text(cluster.kubeconfig(), encoding="utf-8")
            settings = _settings(cluster, kubeconfig)
            async with connected(settings, clock, Board(), one_pass=False) as controller:
                await _settle(controller, cluster, clock)
                return await _count(controller, cluster, clock)


async def _settle(controller: Controller, cluster: SimulatedCluster, clock: ScaledClock) -> None:
    phases: list[str] = []
    for _ in range(_LONGEST):
        await controller.cycle.run()
        phases = [str(_status(one).get("phase")) for one in cluster.all("GPUWorkload")]
        if phases.count(Phase.WOULD_PAUSE) == WORKLOADS:
            await controller.cycle.run()
            return
        await clock.sleep(MINUTE)
    raise AssertionError(f"no steady state within {_LONGEST} cycles: {phases}")


async def _count(
    controller: Controller, cluster: SimulatedCluster, clock: ScaledClock
) -> list[Figure]:
    before = len(cluster.requests)
    for _ in range(STEADY_CYCLES):
        await clock.sleep(MINUTE)
        await controller.cycle.run()
    asked = [one for one in cluster.requests[before:] if one.user == CONTROLLER]
    if not any(one.verb in _READS for one in cluster.requests[:before]):
        raise AssertionError("the request log shows no reads at all, not even the first lists")
    # The kill switch is one read a cycle, whatever the size of the cluster.
    reads = sum(one.verb in _READS and one.name != HOLD for one in asked)
    pods = WORKLOADS * REPLICAS
    return [
        Figure(
            what="Kubernetes reads per idle pod and steady cycle",
            measured=reads / pods / STEADY_CYCLES,
            at_most=0,
            note=f"gets and lists in the simulated API server's request log, but for one of the "
            f"kill switch in each cycle; {pods} idle pods, {STEADY_CYCLES} cycles, dry run",
        ),
        Figure(
            what=f"all Kubernetes requests in {STEADY_CYCLES} steady cycles",
            measured=len(asked),
            note="the kill switch, the Lease, watches that are opened anew",
        ),
    ]


def _status(stored: dict[str, object]) -> dict[str, object]:
    found = stored.get("status")
    return found if isinstance(found, dict) else {}


def _settings(cluster: SimulatedCluster, kubeconfig: Path) -> Settings:
    return Settings(
        scrape=ScrapeSettings(exporters=cluster.exporter_urls, interval_seconds=MINUTE / 2),
        kubernetes=KubernetesSettings(kubeconfig=kubeconfig),
        window_seconds=5 * MINUTE,
        settle_seconds=0,
        notice_seconds=MINUTE,
        budget=BudgetSettings(workloads_per_cycle=WORKLOADS, gpu_ratio_per_cycle=1),
    )


def _world() -> World:
    return World(
        nodes=tuple(Node(name=f"node-{number}") for number in range(NODES)),
        workloads=tuple(
            Workload(
                kind="Deployment",
                namespace=f"team-{number}",
                name=f"serve-{number}",
                replicas=REPLICAS,
            )
            for number in range(WORKLOADS)
        ),
    )

"""What a whole check takes: time, the server's CPU and ours, and memory, at 5,000 GPUs.

The command as a person runs it, in a process of its own, against a real Prometheus with back-filled
history and a simulated API server that has every pod which the history names.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from support.prometheus import PrometheusServer

from bench.figures import Figure, middle
from bench.fleet import END, Fleet, node
from gpu_pruner.kube.crd import crd
from gpu_pruner.model.units import HOUR, MINUTE, Seconds
from gpu_pruner.settings.clock import ScaledClock
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.world import Node, Workload, World

GPUS, PER_NODE = 5_000, 8
REPEATS = 3
_HISTORY: Seconds = 80 * MINUTE
"""Twice the default window and more, so that what is not asked for is there."""
_SOUND = (0, 3)
"""Exit codes of a check that has told everything."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one check took."""

    seconds: Seconds
    server: Seconds
    """CPU of Prometheus."""
    ours: Seconds
    """CPU of the command, with the start of Python."""
    bytes: int
    """The most memory that the command held."""


def measure() -> list[Figure]:
    """Back-fill a fleet, and check it a few times."""
    with tempfile.TemporaryDirectory() as folder:
        data = Fleet(gpus=GPUS, seconds=_HISTORY).stored(Path(folder) / "fleet")
        with PrometheusServer(Path(folder) / "prometheus", data=data) as server:
            costs = asyncio.run(_checked(server, Path(folder)))
    load = os.getloadavg()[0]
    note = f"medians of {REPEATS}; load {load:.1f} at the end, 3 metrics of each GPU"
    return [
        Figure(
            what=f"a check of {GPUS:,} GPUs",
            measured=middle(one.seconds for one in costs),
            unit="s",
            at_most=10,
            note=note,
        ),
        Figure(what="  Prometheus' CPU", measured=middle(one.server for one in costs), unit="s"),
        Figure(what="  our CPU", measured=middle(one.ours for one in costs), unit="s"),
        Figure(what="  most memory", measured=max(one.bytes for one in costs) / 1e6, unit="MB"),
    ]


async def _checked(server: PrometheusServer, folder: Path) -> list[Cost]:
    now = time.time()
    # It stands still for an hour: the history ends at one moment for every repeat.
    clock = ScaledClock(now, END, 1 / HOUR)
    async with SimulatedCluster(_world(), clock, crds=(crd(),)) as cluster:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig(), encoding="utf-8")
        words = [sys.executable, "-m", "gpu_pruner.cli", "check", "--prometheus-url", server.url]
        words += ["--kubeconfig", str(kubeconfig)]
        environment = {**os.environ, **clock.environment()}
        return [
            await asyncio.to_thread(_cost, words, environment, server.process_id)
            for _ in range(REPEATS)
        ]


def _cost(words: list[str], environment: dict[str, str], server: int) -> Cost:
    prometheus = psutil.Process(server)
    before, begin = _cpu(prometheus), time.perf_counter()
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(words, stdout=told, stderr=told, env=environment)  # noqa: S603 - our own program
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        said = told.read().decode()
    if process.returncode not in _SOUND or "each found in telemetry" not in said:
        raise RuntimeError(f"the check ended with {process.returncode}: {said[-2000:]}")
    return Cost(
        seconds=seconds,
        server=_cpu(prometheus) - before,
        ours=used.ru_utime + used.ru_stime,
        bytes=used.ru_maxrss * 1024,
    )


def _cpu(process: psutil.Process) -> Seconds:
    times = process.cpu_times()
    return float(times.user + times.system)


def _world() -> World:
    """Return a cluster with the nodes and pods that the history names."""
    return World(
        nodes=tuple(Node(name=node(n), gpus=PER_NODE) for n in range(0, GPUS, PER_NODE)),
        workloads=tuple(
            Workload(kind="Pod", namespace=f"team-{n % 200}", name=f"train-{n:05}", node=node(n))
            for n in range(GPUS)
            if n % 10
        ),
    )

"""The whole line in real time against a real Prometheus: history back-filled, then scraped live."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from support.prometheus_line import IDLE, KEPT, Line, line

from gpu_pruner.model.annotations import PAUSED

ALLOWED_IN_DRY_RUN = {"gpuworkloads", "events", "leases"}

pytestmark = [pytest.mark.timeout(240), pytest.mark.prometheus]


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

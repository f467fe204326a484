"""A running controller posts its weekly report, and answers who asks for one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.controller import Controller
from support.decisions import SERVER
from support.ledgers import a_keeper, cycles, holding
from support.slack_webhook import SECRET, SlackWebhook

from gpu_pruner.kube.crd import crd
from gpu_pruner.settings.clock import ScaledClock
from gpu_pruner.settings.ledger import LedgerSettings
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.world import Node, Workload, World

WORLD = World(
    nodes=(Node(name="node-a"),),
    workloads=(Workload(kind="Deployment", namespace="team-a", name="train"),),
)
SPEED = 20.0
CRON_JOB = Path(__file__).parents[2] / "deploy/kustomize/components/weekly-report/cronjob.yaml"
SERVICE = "http://gpu-pruner-dashboard:8080"
IDLE = "*8.0* of "
SUM = f"{IDLE}8.0 held GPU hours were idle"

pytestmark = pytest.mark.timeout(120)


def settings(folder: Path, webhook: SlackWebhook, *, due: float) -> Path:
    """Write a settings file with a report that was due a moment ago, and history before that."""
    file, secret = folder / "settings.yaml", folder / "webhook-url"
    secret.write_text(webhook.url, encoding="utf-8")
    moment = datetime.fromtimestamp(due, UTC)
    keeper = a_keeper(LedgerSettings(directory=folder / "ledger"))
    for told in cycles(holding(SERVER, 4), begin=due - 3 * 3600, count=7, every=1200):
        keeper.take(told)
    file.write_text(
        "cycle_seconds: 20\nscrape: {exporters: ['http://127.0.0.1:1/metrics']}\n"
        f"ledger:\n  directory: {folder / 'ledger'}\n"
        f"report:\n  schedule: {moment:%A %H:%M} UTC\n  webhook_file: {secret}\n",
        encoding="utf-8",
    )
    return file


def as_the_cron_job(controller: Controller, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run what the CronJob runs, with its variables; only the two places differ."""
    spec = yaml.safe_load(CRON_JOB.read_text())["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = spec["containers"]
    [mount] = container["volumeMounts"]
    address = f"http://127.0.0.1:{controller.port}"
    arguments = [one.replace(SERVICE, address) for one in container["args"]]
    assert f"--controller={address}" in arguments
    variables = {
        one["name"]: one["value"].replace(mount["mountPath"], str(folder))
        for one in container["env"]
    }
    return subprocess.run(
        [sys.executable, "-m", "gpu_pruner.cli", *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def asked(
    controller: Controller, folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run `report` with no ledger of its own."""
    file = folder / "only-webhook.yaml"
    file.write_text(f"report:\n  webhook_file: {folder / 'webhook-url'}\n", encoding="utf-8")
    address = f"http://127.0.0.1:{controller.port}"
    command = ("report", "--config", str(file), "--controller", address, *arguments)
    return subprocess.run(
        [sys.executable, "-m", "gpu_pruner.cli", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def story(controller: Controller, folder: Path, webhook: SlackWebhook) -> None:
    with controller:
        controller.until(lambda: webhook.taken)
        assert SUM in webhook.taken[0]["text"]
        report: Any = controller.get("/api/v1/report?since=7d")
        assert report["total"]["idleGpuHours"] == 8.0
        posted = as_the_cron_job(controller, folder)
        assert (posted.returncode, posted.stdout) == (0, "The report was posted.\n"), posted.stderr
        printed = asked(controller, folder, "--output", "json")
        assert json.loads(printed.stdout)["total"]["idleGpuHours"] == 8.0
        webhook.answers = [(410, "channel_is_archived")]
        refused = asked(controller, folder, "--post")
        assert refused.returncode == 1
        assert "410 channel_is_archived" in refused.stderr
        for since, status in (("1m", "at least 1h"), ("never", "is not a length of time")):
            assert status in str(controller.get(f"/api/v1/report?since={since}")["error"])
    assert len(webhook.taken) == 2
    assert IDLE in webhook.taken[1]["text"]
    assert SECRET not in controller.log.read_text()
    gone = asked(controller, folder, "--post")
    assert gone.returncode == 1
    assert "does not answer" in gone.stderr
    assert SECRET not in posted.stderr + printed.stderr + refused.stderr + gone.stderr


async def test_a_running_controller_posts_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    clock = ScaledClock(now, now, SPEED)
    for name, text in clock.environment().items():
        monkeypatch.setenv(name, text)
    (tmp_path / "ledger").mkdir()
    with SlackWebhook() as webhook:
        file = settings(tmp_path, webhook, due=now // 60 * 60 - 60)
        async with SimulatedCluster(WORLD, clock, crds=(crd(),)) as cluster:
            kubeconfig = tmp_path / "kubeconfig"
            kubeconfig.write_text(cluster.kubeconfig())
            controller = Controller(kubeconfig, tmp_path / "log", ("--config", str(file)))
            await asyncio.to_thread(story, controller, tmp_path, webhook)

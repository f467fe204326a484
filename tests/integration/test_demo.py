from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tornado.httpclient import AsyncHTTPClient

from gpu_pruner.cli.demo import summarise
from gpu_pruner.kube.crd import crd
from gpu_pruner.model.units import MINUTE
from gpu_pruner.sim.faults import Fault, Trouble
from gpu_pruner.sim.stage import Stage
from gpu_pruner.sim.story import FIRST_STORY

SABOTAGE = Path(__file__).parents[1] / "support" / "sabotage.py"
SPEED = 90.0

pytestmark = pytest.mark.timeout(600)


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpu_pruner.cli", "demo", "--speed", str(SPEED), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def test_without_a_terminal_the_demo_ends_with_a_summary_and_exit_0():
    ended = demo()
    assert ended.returncode == 0, ended.stderr[-4000:]
    summary = json.loads(ended.stdout)
    assert summary["ok"] is True
    states = {row["ref"]: (row["state"], row["verdict"]) for row in summary["workloads"]}
    assert states["statefulset/team-b/batch"] == ("paused", "idle")
    assert states["notebook/team-c/notebook-1"] == ("paused", "idle")
    assert states["deployment/team-a/finetune"] == ("kept", "active")
    assert states["deployment/team-c/evaluate"] == ("kept", "unknown")
    assert states["deployment/team-a/train"][0] == "resumed"
    assert all(row["message"] and row["reason"] for row in summary["workloads"])
    assert "minute" in ended.stderr, "the chronicle goes to standard error"


@pytest.mark.parametrize(
    ("sabotage", "fault"),
    [
        ("pauses-at-once", "minutes after its warning"),
        ("never-pauses", "did not end"),
        ("forgets-the-size", "its record says 1 replicas, it had 3"),
    ],
)
def test_a_sabotaged_controller_makes_the_demo_exit_1(sabotage, fault):
    ended = demo("--controller", f"{sys.executable} {SABOTAGE} {sabotage}", "--patience", "75")
    assert ended.returncode == 1, ended.stdout
    summary = json.loads(ended.stdout)
    assert any(fault in one for one in summary["faults"]), summary["faults"]


@pytest.mark.parametrize("write", [1, 3, 6, 9, 11, 13, 15, 17, 20, 24])
async def test_killed_while_a_write_is_under_way_the_story_still_ends_as_told(write, tmp_path):
    """SIGKILL during the controller's n-th write, whatever that is; then a plain restart."""
    log = tmp_path / "controller.log"
    story = replace(FIRST_STORY, patience=240 * MINUTE)
    async with Stage(story=story, speed=SPEED, crds=(crd(),), log=log) as stage:
        slow = stage.cluster.faults.add(
            Fault(
                method="POST|PATCH",
                path="^(?!.*/leases)",
                user="gpu-pruner",
                trouble=Trouble.LATE,
                latency_seconds=0.1,
            )
        )

        async def kill() -> None:
            while slow.struck < write:
                await asyncio.sleep(0.005)
            await stage.stop_controller(signal.SIGKILL)
            stage.cluster.faults.remove(slow)
            await stage.start_controller()

        killer = asyncio.create_task(kill())
        ending = await stage.play(lambda _moment: None)
        assert killer.done(), "the write that was waited for never came"
        await killer
    summary = summarise(ending)
    assert summary.ok, (summary.faults, log.read_text()[-3000:])


def test_the_demo_leaves_no_process_behind(tmp_path):
    pid_file = tmp_path / "pid"
    script = tmp_path / "controller.py"
    script.write_text(
        f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    ended = demo("--controller", f"{sys.executable} {script}", "--patience", "3")
    assert ended.returncode == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


async def a_demo(folder: Path, **variables: str) -> tuple[asyncio.subprocess.Process, str]:
    """Start a demo that keeps its files in a folder; return it with its controller's address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gpu_pruner.cli", "demo", "--speed", str(SPEED)),
        env={**os.environ, "TMPDIR": str(folder), **variables},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    told = (await process.stderr.readline()).decode()
    found = re.search(r"--controller (http://[^`]*)`", told)
    assert found, told
    return process, found[1]


async def answers(demo: asyncio.subprocess.Process, url: str) -> None:
    """Wait until the demo's controller answers; a demo that ended has none."""
    client = AsyncHTTPClient(force_instance=True)
    async with asyncio.timeout(60):
        while demo.returncode is None:
            try:
                await client.fetch(f"{url}/readyz", raise_error=False)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                return
    raise AssertionError("the demo ended before its controller answered")


@pytest.mark.parametrize(
    ("how", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)],
)
async def test_however_the_demo_is_ended_its_controller_ends_with_it(tmp_path, how, code):
    process, url = await a_demo(tmp_path)
    await answers(process, url)
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(how)
    assert await process.wait() == code
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, timeout=60)
    for one in alive:
        one.kill()
    assert not alive
    if how is not signal.SIGKILL:
        assert list(tmp_path.iterdir()) == [], "kubeconfigs with tokens were left behind"


async def test_the_settings_of_whoever_starts_the_demo_are_not_its_controllers(tmp_path):
    mine = {"GPU_PRUNER_CONFIG": "/nowhere", "GPU_PRUNER_MODE": "dry-run", "POD_NAME": "mine\n"}
    process, url = await a_demo(tmp_path, **mine)
    try:
        await answers(process, url)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()

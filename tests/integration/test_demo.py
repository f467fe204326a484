from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

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

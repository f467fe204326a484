from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from msgspec import structs
from tornado.httpclient import AsyncHTTPClient

from gpu_pruner.cli.demo_summary import summarise
from gpu_pruner.kube.crd import crd
from gpu_pruner.sim.faults import Fault, Trouble
from gpu_pruner.sim.stage import Stage
from gpu_pruner.sim.story_file import first_story, load_story

SABOTAGE = Path(__file__).parents[1] / "support" / "sabotage.py"
SPEED = 90.0
VERDICTS = {
    "statefulset/team-b/batch": "idle",
    "replicaset/team-c/embed": "idle",
    "notebook/team-c/notebook-1": "idle",
    "inferenceservice/team-d/chat": "idle",
    "leaderworkerset/team-d/llama": "idle",
    "deployment/team-e/slice": "idle",
    "deployment/team-b/standby": "idle",
    "pod/team-f/debug": "idle",
    "deployment/team-a/finetune": "active",
    "statefulset/team-c/workers": "active",
    "deployment/team-e/slice-busy": "active",
    "deployment/team-d/transcode": "active",
    "deployment/team-d/pretrain": "unknown",
    "deployment/team-c/evaluate": "unknown",
    "deployment/team-f/share": "unknown",
}
"""Of those whose verdict at the end is part of the story."""

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
    parts = {part.ref: part for part in first_story().workloads}
    rows = {row["ref"]: row for row in summary["workloads"]}
    assert {ref: row["state"] for ref, row in rows.items()} == {
        ref: part.ending.value for ref, part in parts.items()
    }
    assert {ref: row["verdict"] for ref, row in rows.items()} | VERDICTS == {
        ref: row["verdict"] for ref, row in rows.items()
    }
    for ref, row in rows.items():
        assert row["reason"] in parts[ref].reasons
        assert row["message"]
        assert row["why"]
        (line,) = [one for one in ended.stderr.splitlines() if f" {ref} (" in one]
        assert parts[ref].told in line
        assert row["why"] in line
    assert summary["breakers"] == []
    assert set(summary["cycle"]) == {"number", "at"}
    assert "minute" in ended.stderr, "the chronicle goes to standard error"
    assert "operator keeps team-f/" in ended.stderr


@pytest.mark.parametrize(
    ("sabotage", "fault"),
    [
        ("pauses-at-once", "minutes after its warning"),
        ("never-pauses", "did not end"),
        ("forgets-the-size", "its record says 1 replicas, it had 3"),
        ("hears-no-keep", "deployment/team-f/paper was written to by the controller"),
        ("sees-no-encoder", "deployment/team-d/transcode was written to by the controller"),
    ],
)
def test_a_sabotaged_controller_makes_the_demo_exit_1(sabotage, fault):
    patience = "75" if sabotage == "never-pauses" else "150"
    instead = f"{sys.executable} {SABOTAGE} {sabotage}"
    ended = demo("--controller", instead, "--patience", patience)
    assert ended.returncode == 1, ended.stdout
    summary = json.loads(ended.stdout)
    assert any(fault in one for one in summary["faults"]), summary["faults"]


@pytest.mark.parametrize("write", [1, 3, 6, 9, 11, 13, 15, 17, 20, 24])
async def test_killed_while_a_write_is_under_way_the_story_still_ends_as_told(write, tmp_path):
    """SIGKILL during the controller's n-th write, whatever that is; then a plain restart."""
    log = tmp_path / "controller.log"
    story = structs.replace(first_story(), minutes=240.0)
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


SMALL = """
minutes: 3
nodes: [{name: node-1, gpus: 2, model: NVIDIA L4}]
workloads:
  - {kind: Deployment, namespace: team-a, name: train, told: idle}
  - {kind: StatefulSet, namespace: team-a, name: batch, behaviour: {activity: [[0, 0.5]]}}
"""


def test_a_world_of_the_users_own_is_played_and_told(tmp_path):
    world = tmp_path / "world.yaml"
    world.write_text(SMALL)
    ended = demo("--world", str(world), "--seed", "7")
    assert ended.returncode == 1, "three minutes are too short for anything"
    summary = json.loads(ended.stdout)
    assert [row["ref"] for row in summary["workloads"]] == [
        "deployment/team-a/train",
        "statefulset/team-a/batch",
    ]
    assert "deployment/team-a/train did not end open" in summary["faults"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--world", "absent.yaml"), "absent.yaml: cannot be read: No such file or directory"),
        (("--world", "wrong.yaml"), "wrong.yaml:3:3: nodes.0.gpu: is not known; did you mean gpus"),
        (
            ("--world", "refused.yaml"),
            "API server refuses this world: Deployment.apps",
        ),
        (("--speed", "0.5"), "--speed: must be from 1 to 120"),
        (("--speed", "nan"), "--speed: must be from 1 to 120"),
        (("--seed", "-1"), "'--seed'"),
    ],
)
def test_what_cannot_be_played_ends_with_2_before_anything_starts(tmp_path, arguments, message):
    (tmp_path / "wrong.yaml").write_text("nodes:\n- name: node-1\n  gpu: 8\n")
    train = '{kind: Deployment, namespace: team-a, name: train, labels: {"a b": "c"}}'
    (tmp_path / "refused.yaml").write_text(f"workloads:\n- {train}\n")
    ended = subprocess.run(
        [sys.executable, "-m", "gpu_pruner.cli", "demo", *arguments],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_the_world_that_is_printed_is_the_one_that_is_played(tmp_path):
    printed = demo("--print-world")
    assert printed.returncode == 0
    world = tmp_path / "world.yaml"
    world.write_text(printed.stdout)
    assert load_story(world) == first_story()


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

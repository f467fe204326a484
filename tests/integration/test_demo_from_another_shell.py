"""While the demo plays, another shell can look at its cluster, and ask its controller."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys

import pytest

pytestmark = pytest.mark.timeout(300)

BUSY = "deployment/team-a/finetune"


async def shell(command: str) -> tuple[int | None, str, str]:
    done = await asyncio.create_subprocess_exec(
        *("sh", "-c", command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await done.communicate()
    return done.returncode, out.decode(), err.decode()


async def test_another_shell_sees_the_cluster_and_is_told_why():
    program = f"{sys.executable} -m gpu_pruner.cli"
    demo = await asyncio.create_subprocess_exec(
        *(*program.split(), "demo", "--speed", "60"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert demo.stderr is not None
    try:
        told = (await demo.stderr.readline()).decode()
        found = re.search(r"`\. (\S+)`.*--controller (http://\S+)`", told)
        assert found, told
        environment, controller = found[1], found[2]
        explain = f"{program} explain {BUSY} --controller {controller} --output json"
        code, out, err = 1, "", ""
        async with asyncio.timeout(200):
            while code or "GpuActive" not in out:  # the controller has to have looked first
                code, out, err = await shell(explain)
        (one,) = json.loads(out)["workloads"]
        assert (one["ref"], one["verdict"]) == (BUSY, "active"), err
        assert "active" in {row["verdict"] for row in one["devices"]}
        code, out, err = await shell(f". {environment}; {program} once --output json")
        assert code == 0, err
        rows = json.loads(out)["workloads"]
        assert BUSY in {row["ref"] for row in rows}
    finally:
        demo.send_signal(signal.SIGINT)
        reading = asyncio.ensure_future(demo.stderr.read())
        await demo.wait()
        await reading

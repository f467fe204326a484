"""A result that has nowhere to go ends its command quietly: nobody is there to read a trace."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys

import pytest

from gpu_pruner.kube.crd import crd
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.world import Node, Workload, World

WORLD = World(
    nodes=(Node(name="node-a"),),
    workloads=(Workload(kind="Deployment", namespace="team-a", name="train"),),
)
NOWHERE = ["--prometheus-url", "http://127.0.0.1:9"]
CLOSED, UNREAD = "exec >&-", "exec > >(:); wait $!"

pytestmark = pytest.mark.timeout(120)


def command(*arguments: str, after: str) -> subprocess.CompletedProcess[str]:
    """Run a command by a shell that does something to its standard output before."""
    line = shlex.join([sys.executable, "-m", "gpu_pruner.cli", *arguments])
    return subprocess.run(
        ["bash", "-c", f"{after}; exec {line}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.mark.parametrize("after", [CLOSED, UNREAD])
@pytest.mark.parametrize(
    "arguments",
    [
        ["schema"],
        ["run", "--print-settings", *NOWHERE],
        ["run", "--print-settings", "--output", "json", *NOWHERE],
        ["--version"],
    ],
)
def test_what_is_printed_into_nothing_ends_quietly(arguments, after):
    ended = command(*arguments, after=after)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize("arguments", [["once"], ["once", "--output", "json"], ["check"]])
async def test_so_does_what_was_asked_of_a_cluster(tmp_path, arguments):
    async with SimulatedCluster(WORLD, SystemClock(), crds=(crd(),)) as it:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(it.kubeconfig())
        ended = await asyncio.to_thread(
            command, *arguments, *NOWHERE, "--kubeconfig", str(kubeconfig), after=CLOSED
        )
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "cannot write" not in ended.stderr


def test_a_small_result_that_does_not_fit_is_told_as_a_large_one_is():
    ended = command("--version", after="exec > /dev/full")
    assert ended.returncode == 1
    assert ended.stderr == "gpu-pruner: cannot write the result: No space left on device\n"


def test_a_wrong_command_line_is_bad_input_wherever_it_would_be_told():
    ended = command("pause", "train", after="exec <&- >&- 2>&-")
    assert (ended.returncode, ended.stderr) == (2, "")

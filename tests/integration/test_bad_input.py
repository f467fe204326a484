"""What a user reads when something is wrong: one sentence with the thing and the fix, no trace."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.scripted import Answer, ScriptedServer
from tornado.httpclient import AsyncHTTPClient

from gpu_pruner.kube.crd import crd
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.faults import Fault, Trouble
from gpu_pruner.sim.world import Node, Workload, World

WORLD = World(
    nodes=(Node(name="node-a"),),
    workloads=(Workload(kind="Deployment", namespace="team-a", name="train"),),
)
SECRET = "canary-5b1d"
GOOD_PROMETHEUS = Answer(
    body=json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}),
    headers={"Content-Type": "application/json"},
)

pytestmark = pytest.mark.timeout(120)


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpu_pruner.cli", *arguments],
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@asynccontextmanager
async def cluster(tmp_path: Path, *, with_crd: bool = True):
    crds = (crd(),) if with_crd else ()
    async with SimulatedCluster(WORLD, SystemClock(), crds=crds) as it:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(it.kubeconfig())
        yield it, str(kubeconfig)


def refused(ended: subprocess.CompletedProcess[str], *words: str, code: int) -> None:
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    for word in words:
        assert word in ended.stderr, ended.stderr
    assert SECRET not in ended.stderr + ended.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--no-such-flag"], ["--no-such-flag"]),
        (["frobnicate"], ["frobnicate"]),
        (["-e", "dxq", "--prometheus-url", "http://127.0.0.1:1"], ["'q'", "d = Deployment"]),
        (["-e", "", "--prometheus-url", "http://127.0.0.1:1"], ["letter"]),
        (["-t", "soon", "--prometheus-url", "http://127.0.0.1:1"], ["'soon'", "35m"]),
        (["-t", "-5", "--prometheus-url", "http://127.0.0.1:1"], ["-t", "366 days"]),
        (["-r", "kill", "--prometheus-url", "http://127.0.0.1:1"], ["kill", "dry-run"]),
        (["--idle-threshold", "7", "--prometheus-url", "http://h"], ["idle_threshold"]),
        (["--prometheus-url", "prometheus:9090"], ["prometheus.url", "http://"]),
        (["-d"], ["--prometheus-url", "--exporter"]),
        (["run", "--listen-port", "99999", "--prometheus-url", "http://h"], ["listen_port"]),
        (["once"], ["--prometheus-url", "--exporter"]),
        (["explain", "train", "--prometheus-url", "http://h"], ["kind/namespace/name"]),
        (["pause", "cronjob/team-a/train"], ["cronjob", "deployment"]),
        (["once", "--kubeconfig", "/nowhere", "--prometheus-url", "http://h"], ["/nowhere"]),
        (["demo", "--speed", "0"], ["--speed"]),
        (["-r", "scale-down", "demo"], ["--run-mode", "behind"]),
    ],
)
def test_a_wrong_command_line_exits_2_with_the_place(arguments, words):
    refused(command(*arguments), *words, code=2)


WHY = ("--reason", "a demonstration")


@pytest.mark.parametrize(
    ("arguments", "reference"),
    [
        (("keep", "--for", "4h", *WHY), "deployment/../train"),
        (("pause",), "deployment/team-a/.."),
        (("resume",), "deployment/team-a/."),
        (("exempt", *WHY), "notebook/../team-c"),
        (("release", *WHY), "deployment/\udcff\udcfe/x"),
        (("explain", "--controller", "http://127.0.0.1:1"), "deployment/\udcff\udcfe/x"),
        (("pause",), "deployment/team-a/\x1b[31mred"),
        (("resume",), "deployment/team-a/" + "x" * 5000),
    ],
)
def test_a_reference_with_a_part_that_is_no_name_exits_2(arguments, reference):
    ended = command(*arguments, reference)
    refused(ended, "REF '", "is not a name", code=2)
    assert "\x1b" not in ended.stderr
    assert len(ended.stderr) < 400


@pytest.mark.parametrize("order", ["pause", "resume"])
async def test_an_order_about_what_never_existed_exits_2_with_the_likest_names(tmp_path, order):
    async with cluster(tmp_path) as (_, kubeconfig):
        ended = await asyncio.to_thread(
            command, order, "deployment/team-a/trains", "--kubeconfig", kubeconfig
        )
    refused(ended, "there is no deployment/team-a/trains", code=2)
    refused(ended, "did you mean deployment/team-a/train?", code=2)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--prometheus-url", f"admin:{SECRET}@prom:9090"],
        ["--prometheus-url", f"http://admin:{SECRET}@[bad"],
        ["--prometheus-url", f"http://admin:{SECRET}@127.0.0.1:99999"],
        ["--exporter", f"ftp://admin:{SECRET}@h/metrics"],
        ["--exporter", f"http://admin:{SECRET}@h:99999/m"],
        ["--prometheus-url", "http://127.0.0.1:9", "--prometheus-token", f"{SECRET}\n{SECRET}"],
        ["--prometheus-url", "http://127.0.0.1:9", "--prometheus-token", f"{SECRET}\u20ac"],
        ["--prometheus-url", "http://127.0.0.1:9", "--prometheus-header", f"X-A={SECRET}\u20ac"],
        ["--prometheus-url", "http://127.0.0.1:9", "--prometheus-header", f"X-A: {SECRET}=a"],
    ],
)
def test_a_wrong_secret_or_address_exits_2_with_its_flag_and_is_not_repeated(arguments):
    ended = command("once", *arguments)
    refused(ended, arguments[-2], code=2)
    assert SECRET not in ended.stderr + ended.stdout


PROMETHEUS_TROUBLES = {
    "unauthorised": (Answer(status=401, body="no"), ["401"]),
    "forbidden": (Answer(status=403, body="no"), ["403"]),
    "wrong path": (Answer(status=404, body="not here"), ["404"]),
    "html": (
        Answer(body="<html>sign in</html>", headers={"Content-Type": "text/html"}),
        ["HTML"],
    ),
    "not json": (
        Answer(body="{", headers={"Content-Type": "application/json"}),
        ["not a Prometheus answer"],
    ),
    "empty": (GOOD_PROMETHEUS, ["no ", "DCGM"]),
    "unavailable": (Answer(status=503, body="starting"), ["503"]),
}


@pytest.mark.parametrize("trouble", PROMETHEUS_TROUBLES)
async def test_a_prometheus_in_trouble_is_named_and_nothing_is_done(tmp_path, trouble):
    answer, words = PROMETHEUS_TROUBLES[trouble]
    async with cluster(tmp_path) as (it, kubeconfig):
        with ScriptedServer(default=answer) as prometheus:
            ended = await asyncio.to_thread(
                command,
                *("once", "--prometheus-url", prometheus.url, "--kubeconfig", kubeconfig),
                *("--prometheus-token", SECRET, "-r", "scale-down", "--output", "json"),
            )
        assert ended.returncode == 1, ended.stderr
        assert "Traceback" not in ended.stderr
        told = json.loads(ended.stdout)
        assert [one["name"] for one in told["breakers"]] == ["ScreenFailed"]
        for word in words:
            assert word in told["breakers"][0]["message"]
        assert SECRET not in ended.stdout + ended.stderr
        assert [one["reason"] for one in told["workloads"]] == ["TelemetryBreaker"]
        assert not [one for one in it.requests if one.is_write]


async def test_a_prometheus_that_is_down_is_named(tmp_path):
    async with cluster(tmp_path) as (_, kubeconfig):
        ended = await asyncio.to_thread(
            command,
            *("once", "--prometheus-url", "http://127.0.0.1:9", "--kubeconfig", kubeconfig),
        )
    assert ended.returncode == 1
    assert "127.0.0.1:9" in ended.stdout
    assert "Traceback" not in ended.stderr


async def test_scale_down_without_the_crd_refuses_to_start_with_the_fix(tmp_path):
    async with cluster(tmp_path, with_crd=False) as (_, kubeconfig):
        ended = await asyncio.to_thread(
            command,
            *("run", "-r", "scale-down", "--prometheus-url", "http://127.0.0.1:9"),
            *("--kubeconfig", kubeconfig, "--listen-port", "0"),
        )
    refused(ended, "kubectl apply -k deploy/crds", code=2)


@pytest.mark.parametrize(
    ("fault", "words", "more"),
    [
        (
            Fault(status=403, reason="Forbidden", path="/leases"),
            ["grant get, create and patch on leases.coordination.k8s.io"],
            [],
        ),
        (None, ["kubectl create namespace nowhere"], ["--lease-namespace", "nowhere"]),
    ],
)
async def test_without_a_lease_it_refuses_to_start_with_the_fix(tmp_path, fault, words, more):
    async with cluster(tmp_path) as (it, kubeconfig):
        if fault is not None:
            it.faults.add(fault)
        ended = await asyncio.to_thread(
            command,
            *("run", "-r", "scale-down", "--prometheus-url", "http://127.0.0.1:9", *more),
            *("--kubeconfig", kubeconfig, "--listen-port", "0"),
        )
    refused(ended, *words, code=2)


@pytest.mark.parametrize(
    ("ledger", "words"),
    [
        ({"directory": "/dev/null"}, ["ledger.directory: /dev/null cannot be written in"]),
        ({"dsn": "postgresql://h/pruner"}, ["ledger.dsn", "pip install 'gpu-pruner[postgres]'"]),
    ],
)
async def test_a_ledger_that_cannot_be_kept_is_told_before_the_lease_is_taken(
    tmp_path, ledger, words
):
    (tmp_path / "psycopg.py").write_text("raise ImportError('not installed')\n")
    config = tmp_path / "settings.yaml"
    config.write_text(json.dumps({"ledger": ledger}))
    async with cluster(tmp_path) as (it, kubeconfig):
        ended = await asyncio.to_thread(
            command,
            *("run", "-r", "scale-down", "--prometheus-url", "http://127.0.0.1:9"),
            *("--kubeconfig", kubeconfig, "--listen-port", "0", "--config", str(config)),
            PYTHONPATH=str(tmp_path),
        )
        assert not [one for one in it.requests if one.is_write]
    refused(ended, *words, code=2)
    assert len([one for one in ended.stderr.splitlines() if one.startswith("gpu-pruner: ")]) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(status=401, reason="Unauthorized"), ["401"]),
        (Fault(status=403, reason="Forbidden", path="/pods"), ["403", "pods"]),
        (Fault(status=500), ["500"]),
        (Fault(trouble=Trouble.HTML), ["web page"]),
        (Fault(trouble=Trouble.REFUSED), ["127.0.0.1"]),
    ],
)
async def test_an_api_server_in_trouble_is_named(tmp_path, fault, words):
    async with cluster(tmp_path) as (it, kubeconfig):
        it.faults.add(fault)
        ended = await asyncio.to_thread(
            command,
            *("once", "--prometheus-url", "http://127.0.0.1:9", "--kubeconfig", kubeconfig),
        )
    refused(ended, *words, code=1)
    assert it.token() not in ended.stderr


async def test_the_daemon_lives_through_an_api_server_and_a_prometheus_in_trouble(tmp_path):
    """Down at start, back later: it waits, says so, works, and says what is still wrong."""
    async with cluster(tmp_path) as (it, kubeconfig):
        down = it.faults.add(Fault(status=500))
        port = _free_port()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gpu_pruner.cli", "run", "-c", "1", "-l", "json"),
            *("--prometheus-url", "http://127.0.0.1:9", "--kubeconfig", kubeconfig),
            *("--listen-address", "127.0.0.1", "--listen-port", str(port), "-r", "scale-down"),
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            ready = await _until(port, lambda one: one["waitingFor"] and "500" in one["waitingFor"])
            assert ready["ready"] is False
            it.faults.remove(down)
            ready = await _until(port, lambda one: one["breakers"])
            assert ready["ready"] is True
            assert "127.0.0.1:9" in ready["breakers"][0]["message"]
            assert process.returncode is None
        finally:
            process.terminate()
            _, told = await process.communicate()
        assert process.returncode == 0
        assert b"Traceback" not in told
        assert {one.resource for one in it.requests if one.is_write} <= {"leases"}


async def _until(port: int, condition):
    client = AsyncHTTPClient(force_instance=True)
    async with asyncio.timeout(60):
        while True:
            try:
                answer = await client.fetch(f"http://127.0.0.1:{port}/readyz", raise_error=False)
                told = json.loads(answer.body)
            except (OSError, ValueError):
                told = None
            if told is not None and condition(told):
                client.close()
                return told
            await asyncio.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

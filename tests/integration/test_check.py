"""`gpu-pruner check` against real Prometheus servers, each set up, or wrong, in its own way."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pty
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.prometheus import PrometheusServer, backfill, prometheus_binaries
from support.scripted import Answer, ScriptedServer

from gpu_pruner.check.examination import Examination
from gpu_pruner.check.finding import Area, Finding, Level
from gpu_pruner.cli.wiring import telemetry_source
from gpu_pruner.kube.crd import crd
from gpu_pruner.settings.clock import ScaledClock, SystemClock
from gpu_pruner.settings.schema import Settings
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.faults import Fault
from gpu_pruner.sim.history import Scraping
from gpu_pruner.sim.world import Behaviour, Node, Workload, World

pytestmark = [pytest.mark.prometheus, pytest.mark.timeout(120)]

WORLD = World(
    nodes=tuple(Node(name=f"node-{letter}", gpus=2) for letter in "abcd"),
    workloads=(
        Workload(kind="Deployment", namespace="team-a", name="train", replicas=2),
        Workload(kind="Notebook", namespace="team-c", name="notebook-1"),
    ),
)
RENAMED = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
    "DCGM_FI_DEV_GPU_UTIL": "DCGM_FI_DEV_GPU_UTIL_RATIO",
    "DCGM_FI_DEV_POWER_USAGE": "DCGM_FI_DEV_BOARD_POWER_WATTS",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL",
}
SECRET = "canary-5b1d"
Text = Callable[[str], str]


def as_it_is(history: str) -> str:
    return history


def without(pattern: str) -> Text:
    """Return what leaves out every line that matches."""
    return lambda history: re.sub(rf"(?m)^.*(?:{pattern}).*\n", "", history)


def renamed(history: str) -> str:
    """Return the history in the names of exporter 4.9, without the names that have none here."""
    for old, new in RENAMED.items():
        history = re.sub(rf"\b{old}\b", new, history)
    kept = "|".join(RENAMED.values())
    return "".join(
        line for line in history.splitlines(keepends=True) if re.search(f"{kept}|# EOF", line)
    )


@dataclass
class Place:
    """A cluster, a Prometheus, and what a check says of them."""

    cluster: SimulatedCluster
    prometheus: str
    kubeconfig: Path
    found: tuple[Finding, ...] = field(default=())

    def settings(self, **more: object) -> Settings:
        prometheus = {"url": self.prometheus} | dict(more.pop("prometheus", {}))  # type: ignore[call-overload]
        kubernetes = {"kubeconfig": str(self.kubeconfig)}
        return Settings.model_validate({"prometheus": prometheus, "kubernetes": kubernetes} | more)

    async def check(self, **more: object) -> Place:
        """Check with these settings, and remember what was found."""
        clock, settings = SystemClock(), self.settings(**more)
        source = telemetry_source(settings, clock, brief=True)
        try:
            self.found = await Examination(settings, clock, source).findings()
        finally:
            await source.close()
        return self

    def of(self, level: Level, area: Area | None = None) -> str:
        """Return all findings of a level and an area, with their fixes."""
        chosen = [
            f"{one.sentence}\n{one.fix}"
            for one in self.found
            if one.level is level and area in {None, one.area}
        ]
        return "\n".join(chosen)


@asynccontextmanager
async def place(
    tmp_path: Path,
    *,
    edit: Text = as_it_is,
    world: World = WORLD,
    crds: Iterable[object] = (crd(),),
    binary: str = "prometheus",
    **scraping: object,
) -> AsyncIterator[Place]:
    """Set up a world with an hour of history, edited, in a real Prometheus."""
    async with SimulatedCluster(world, SystemClock(), crds=tuple(crds)) as cluster:
        now = time.time()
        past = Scraping(start=now - 3900, end=now - 1, **scraping)
        text = edit("".join(cluster.history(past)))
        data = await asyncio.to_thread(backfill, text, tmp_path)
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig())
        server = PrometheusServer(tmp_path / "prometheus", data=data, binary=binary)
        entered = await asyncio.to_thread(server.__enter__)
        try:
            yield Place(cluster, entered.url, kubeconfig)
        finally:
            await asyncio.to_thread(server.__exit__, None, None, None)


BINARIES = prometheus_binaries()


@pytest.mark.parametrize("binary", BINARIES.values(), ids=BINARIES.keys())
async def test_a_sound_setup_has_no_failure_and_names_what_answers(tmp_path, binary):
    async with place(tmp_path, binary=binary) as it:
        await it.check()
        writes = {one.resource for one in it.cluster.requests if one.is_write}
    assert it.of(Level.FAIL) == ""
    fine = it.of(Level.OK)
    assert re.search(r"Prometheus at http://127.0.0.1:\d+ answers .* it is Prometheus [23]\.", fine)
    assert "dcgm-exporter 2.x to 4.8" in fine
    assert "pods are in exported_pod (honorLabels false)" in fine
    assert "A sample every 30 s; the window of 35 min is 35 steps" in fine
    assert "4 GPU nodes with fresh telemetry" in fine
    assert "3 pods with 3 GPUs: each found in telemetry" in fine
    assert "No breaker is open" in fine
    assert writes <= {"selfsubjectaccessreviews", "selfsubjectreviews"}
    assert {one.area for one in it.found} == set(Area) - {Area.HUBS}  # none is set


async def test_honored_labels_are_told_and_a_setting_against_them_is_a_failure(tmp_path):
    async with place(tmp_path, honor_labels=True) as it:
        await it.check()
        assert "pods are in pod (honorLabels true)" in it.of(Level.OK, Area.LABELS)
        assert it.of(Level.FAIL) == ""

        await it.check(prometheus={"honor_labels": False})
        wrong = it.of(Level.FAIL, Area.LABELS)
        assert "honor_labels is set to false: nobody is found to hold a GPU" in wrong
        assert "set it to true" in wrong
        assert "3 pods hold GPUs without series" in it.of(Level.FAIL, Area.DEVICES)


async def test_exported_labels_with_a_setting_against_them_are_a_failure(tmp_path):
    async with place(tmp_path) as it:
        await it.check(prometheus={"honor_labels": True})
    assert "honor_labels is set to true: nobody is found" in it.of(Level.FAIL, Area.LABELS)


async def test_the_names_of_the_newest_exporter_are_recognised(tmp_path):
    async with place(tmp_path, edit=renamed) as it:
        await it.check()
    assert "dcgm-exporter 4.9 or newer" in it.of(Level.OK, Area.TELEMETRY)
    assert "2.x" not in it.of(Level.OK, Area.TELEMETRY)
    missing = it.of(Level.WARN, Area.FIELDS)
    assert "NVIDIA H100 80GB HBM3 (8 devices): engine, utilisation, power, energy." in missing
    assert "Not exported: DRAM, encoder" in missing


async def test_without_profiling_fields_the_model_is_named_with_the_line_to_add(tmp_path):
    async with place(tmp_path, edit=without("DCGM_FI_PROF_")) as it:
        await it.check()
    told = it.of(Level.WARN, Area.FIELDS)
    assert "NVIDIA H100 80GB HBM3 (8 devices): utilisation and no profiling field" in told
    assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge" in told
    assert "SYS_ADMIN" in told


async def test_slices_without_profiling_are_counted(tmp_path):
    sliced = World(
        nodes=(
            Node(name="node-a", gpus=2, mig=("1g.10gb", "1g.10gb")),
            Node(name="node-b", gpus=1),
        ),
        workloads=(
            Workload(
                kind="Deployment",
                namespace="team-a",
                name="serve",
                resource="nvidia.com/mig-1g.10gb",
            ),
        ),
    )
    async with place(tmp_path, world=sliced, edit=without("DCGM_FI_PROF_")) as it:
        await it.check()
    assert "without a profiling field" in it.of(Level.WARN, Area.DEVICES)


async def test_nothing_but_temperature_proves_nothing(tmp_path):
    with_only = without("(?:DCGM_FI_PROF_|UTIL|POWER|ENERGY|FB_)")
    async with place(tmp_path, edit=with_only) as it:
        await it.check()
    told = it.of(Level.FAIL, Area.FIELDS)
    assert "no field that could prove idleness, so it is never judged" in told


async def test_power_and_energy_alone_are_named_as_what_is_there(tmp_path):
    with_only = without("(?:DCGM_FI_PROF_|UTIL|TEMP|FB_|XID)")
    async with place(tmp_path, edit=with_only) as it:
        await it.check()
    told = it.of(Level.FAIL, Area.TELEMETRY)
    assert (
        "has DCGM_FI_DEV_POWER_USAGE, DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION of 8 devices, and "
        "neither engine activity nor utilisation" in told
    )
    assert "add DCGM_FI_PROF_GR_ENGINE_ACTIVE or DCGM_FI_DEV_GPU_UTIL" in told
    assert "under a name that we know" not in told


GAP = ((-9.0, -2.0),)


def over_two_windows(screen):
    """Return a screen of two windows whatever it is asked for, as a controller begins with."""

    async def screened(*, now, back_to):
        return await screen(now=now, back_to=min(back_to, now - 2 * 35 * 60 - 180))

    return screened


@pytest.mark.parametrize(
    ("edit", "world"),
    [
        pytest.param(as_it_is, WORLD, id="sound"),
        pytest.param(without("DCGM_FI_PROF_"), WORLD, id="utilisation only"),
        pytest.param(without('PROF_.*Hostname="node-d"'), WORLD, id="one by utilisation"),
        pytest.param(without('Hostname="node-[cd]"'), WORLD, id="half silent"),
        pytest.param(
            as_it_is,
            World(
                nodes=(*WORLD.nodes[:3], Node(name="node-d", gpus=2, exporter_gaps=GAP)),
                workloads=WORLD.workloads,
            ),
            id="a gap",
        ),
    ],
)
async def test_a_brief_look_finds_what_a_whole_screen_finds(tmp_path, edit, world):
    async with place(tmp_path, edit=edit, world=world) as it:
        clock = SystemClock()
        # One moment for both: a step later they may differ.
        stands = ScaledClock(clock.now(), clock.now(), 1e-9)
        found = []
        for brief in (False, True):
            source = telemetry_source(it.settings(), stands, brief=brief)
            if not brief:
                source.screen = over_two_windows(source.screen)
            found.append(set(await Examination(it.settings(), stands, source).findings()))
            await source.close()
        whole, short = found
    assert {one for one in short if one.area is not Area.CLOCKS} == {
        one for one in whole if one.area is not Area.CLOCKS
    }


async def test_of_models_that_are_believed_nothing_is_asked_of_the_last_week(tmp_path):
    strange = World(nodes=(Node(name="node-a", gpus=2, model="NVIDIA GB10"),))
    asked = []
    for world in (WORLD, strange):
        folder = tmp_path / f"{len(asked)}"
        folder.mkdir()
        async with place(folder, world=world) as it:
            with ScriptedServer(forward_to=it.prometheus) as proxy:
                await it.check(prometheus={"url": proxy.url})
                asked.append([one for one in proxy.seen if "group by (modelName" in str(one)])
    believed, doubted = asked
    assert believed == []
    assert len(doubted) >= 7


async def test_scrapes_too_slow_for_the_window_are_a_failure_with_the_arithmetic(tmp_path):
    async with place(tmp_path, interval_seconds=240.0) as it:
        await it.check(window_seconds="15m")
        told = it.of(Level.FAIL, Area.TELEMETRY)
        assert "A sample every 240 s; the window of 15 min is 3 steps of 240 s, and needs 4" in told
        assert "-t 16" in told
        assert "WindowTooShort" in it.of(Level.FAIL, Area.BREAKERS)

        await it.check(window_seconds="40m")
        assert it.of(Level.FAIL, Area.TELEMETRY) == ""
        assert "short work between two samples is not seen" in it.of(Level.WARN, Area.TELEMETRY)


async def test_half_of_the_nodes_silent_is_a_failure_that_names_them(tmp_path):
    async with place(tmp_path, edit=without('Hostname="node-[cd]"')) as it:
        await it.check()
    told = it.of(Level.FAIL, Area.COVERAGE)
    assert (
        "2 of 4 GPU nodes without fresh telemetry: node-c (no series), node-d (no series)" in told
    )
    assert "spec.nodeName=node-c" in told


async def test_a_node_that_fell_silent_is_told_with_the_time(tmp_path):
    gap = Node(name="node-d", gpus=2, exporter_gaps=((-9.0, 60.0),))
    world = World(nodes=(*WORLD.nodes[:3], gap), workloads=WORLD.workloads)
    async with place(tmp_path, world=world) as it:
        await it.check()
    told = it.of(Level.FAIL, Area.COVERAGE)
    assert re.search(
        r"1 of 4 GPU nodes without fresh telemetry: node-d \(silent since \d\d:\d\d", told
    )


async def test_a_bearer_token_is_asked_for_and_accepted(tmp_path):
    async with place(tmp_path) as it:
        with ScriptedServer(forward_to=it.prometheus, bearer=SECRET) as proxy:
            await it.check(prometheus={"url": proxy.url})
            assert "asks for credentials" in it.of(Level.FAIL, Area.TELEMETRY)
            assert "set prometheus.token_file or prometheus.token" in it.of(Level.FAIL)
            assert "ScreenFailed" in it.of(Level.FAIL, Area.BREAKERS)
            await it.check(prometheus={"url": proxy.url, "token": "another-one"})
            assert "another-one" not in repr(it.found)
            await it.check(prometheus={"url": proxy.url, "token": SECRET})
            assert it.of(Level.FAIL) == ""
            assert SECRET not in repr(it.found)


async def test_basic_authentication_is_refused_and_accepted(tmp_path):
    login = base64.b64encode(f"alice:{SECRET}".encode()).decode()
    async with place(tmp_path) as it:
        wanted = {"Authorization": f"Basic {login}"}
        with ScriptedServer(forward_to=it.prometheus, wanted=wanted) as proxy:
            host = proxy.url.removeprefix("http://")
            await it.check(prometheus={"url": f"http://alice:wrong-word@{host}"})
            assert "asks for credentials" in it.of(Level.FAIL, Area.TELEMETRY)
            assert "wrong-word" not in repr(it.found)
            await it.check(prometheus={"url": f"http://alice:{SECRET}@{host}"})
            assert it.of(Level.FAIL) == ""
            assert SECRET not in repr(it.found)


async def test_a_tenant_header_that_is_missing_is_named(tmp_path):
    async with place(tmp_path) as it:
        refusal = Answer("no org id\n", 401)
        wanted = {"X-Scope-OrgID": "team-a"}
        with ScriptedServer(forward_to=it.prometheus, wanted=wanted, refusal=refusal) as proxy:
            await it.check(prometheus={"url": proxy.url})
            told = it.of(Level.FAIL, Area.TELEMETRY)
            assert "wants to know which tenant asks" in told
            assert "--prometheus-header X-Scope-OrgID=TENANT" in told
            await it.check(prometheus={"url": proxy.url, "headers": wanted})
            assert it.of(Level.FAIL) == ""


async def test_a_private_authority_is_asked_for_and_accepted(tmp_path):
    authority, chain = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(chain)
    async with place(tmp_path) as it:
        with ScriptedServer(forward_to=it.prometheus, tls=tls) as proxy:
            await it.check(prometheus={"url": proxy.url})
            told = it.of(Level.FAIL, Area.TELEMETRY)
            assert "certificate that cannot be verified" in told
            assert "set prometheus.ca_file" in told
            await it.check(prometheus={"url": proxy.url, "ca_file": str(authority)})
            assert it.of(Level.FAIL) == ""


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return a self-signed certificate for 127.0.0.1, and a file with that and its key."""
    key, authority, chain = (folder / name for name in ("tls.key", "tls.crt", "tls.pem"))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=prometheus", "-keyout", str(key)]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(authority)]
    subprocess.run(command, check=True, capture_output=True)
    chain.write_text(key.read_text() + authority.read_text())
    return authority, chain


async def test_an_exporter_that_maps_no_pods_is_told_with_what_to_set(tmp_path):
    def unmapped(history: str) -> str:
        return re.sub(r'exported_(?:pod|namespace|container)="[^"]*",?', "", history)

    async with place(tmp_path, edit=unmapped) as it:
        await it.check()
    assert "none of 16 series names a pod" in it.of(Level.WARN, Area.LABELS)
    told = it.of(Level.FAIL, Area.DEVICES)
    assert "3 pods hold GPUs without series, although their nodes have GPUs" in told
    assert "KUBERNETES_GPU_ID_TYPE=device-name" in told


async def test_light_work_below_the_threshold_is_told_with_the_threshold_to_set(tmp_path):
    light = Behaviour(activity=((0.0, 0.1),), engine=((0.0, 0.004),), util=((0.0, 0.0),))
    world = World(
        nodes=WORLD.nodes,
        workloads=(Workload(kind="Deployment", namespace="team-a", name="serve", behaviour=light),),
    )
    async with place(tmp_path, world=world) as it:
        await it.check()
        told = it.of(Level.WARN, Area.THRESHOLD)
        assert "1 device peaked between 0.001 and the threshold of 0.01" in told
        assert "--idle-threshold 0.001" in told
        await it.check(idle_threshold=0.001)
        assert it.of(Level.WARN, Area.THRESHOLD) == ""


async def test_a_model_whose_zero_is_not_believed_is_told(tmp_path):
    strange = World(nodes=(Node(name="node-a", gpus=2, model="NVIDIA GB10"),))
    async with place(tmp_path, world=strange) as it:
        await it.check()
        told = it.of(Level.WARN, Area.FIELDS)
        assert "NVIDIA GB10 (2 devices): a zero of its engine is not believed" in told
        assert 'measurable_models: ["NVIDIA GB10"]' in told
        await it.check(measurable_models=["NVIDIA GB10"])
        assert "not believed" not in it.of(Level.WARN, Area.FIELDS)


async def test_an_api_server_in_trouble_hides_nothing_of_the_telemetry(tmp_path):
    async with place(tmp_path) as it:
        it.cluster.faults.add(Fault(status=500))
        await it.check()
    assert "500" in it.of(Level.FAIL, Area.CLUSTER)
    assert "answers and lets us ask" in it.of(Level.OK, Area.TELEMETRY)
    assert it.of(Level.OK, Area.RIGHTS) == ""


async def test_pods_that_may_not_be_seen_are_a_failure(tmp_path):
    async with place(tmp_path) as it:
        it.cluster.faults.add(Fault(status=403, reason="Forbidden", path="/api/v1/pods"))
        await it.check()
    assert "forbidden (403)" in it.of(Level.FAIL, Area.CLUSTER)
    assert "A cycle cannot begin" in it.of(Level.FAIL, Area.BREAKERS)


async def test_without_our_kind_scale_down_fails_and_a_dry_run_is_warned(tmp_path):
    async with place(tmp_path, crds=()) as it:
        await it.check()
        assert "kubectl apply -k deploy/crds" in it.of(Level.WARN, Area.CLUSTER)
        await it.check(mode="scale-down")
        assert "scale-down refuses to start" in it.of(Level.FAIL, Area.CLUSTER)
        assert "BooksUnavailable" in it.of(Level.FAIL, Area.BREAKERS)


async def test_exporters_that_are_scraped_directly_are_each_told(tmp_path):
    async with SimulatedCluster(WORLD, SystemClock(), crds=(crd(),)) as cluster:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig())
        addresses = [f"{cluster.url}/exporters/{node.name}/metrics" for node in WORLD.nodes]
        settings = Settings.model_validate(
            {
                "scrape": {"exporters": [*addresses, "http://127.0.0.1:9/metrics"]},
                "kubernetes": {"kubeconfig": str(kubeconfig)},
            }
        )
        it = Place(cluster, "", kubeconfig)
        source = telemetry_source(settings, SystemClock())
        try:
            it.found = await Examination(settings, SystemClock(), source).findings()
        finally:
            await source.close()
    assert "exporter 127.0.0.1:9: refuses connections" in it.of(Level.FAIL, Area.TELEMETRY)
    assert "dcgm-exporter 2.x to 4.8" in it.of(Level.OK, Area.TELEMETRY)
    assert "whether they cover the window shows after it" in it.of(Level.OK, Area.COVERAGE)
    assert "NVIDIA H100 80GB HBM3 (8 devices)" in it.of(Level.WARN, Area.FIELDS)


# As a command.


def command(it: Place, *arguments: str) -> list[str]:
    where = ["--prometheus-url", it.prometheus, "--kubeconfig", str(it.kubeconfig)]
    return [sys.executable, "-m", "gpu_pruner.cli", "check", *where, *arguments]


async def ended(*words: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run, words, capture_output=True, text=True, check=False, timeout=90
    )


async def test_the_command_ends_with_0_without_and_with_3_with_a_failure(tmp_path):
    async with place(tmp_path) as it:
        fine = await ended(*command(it, "--output", "json"))
        broken = await ended(
            *command(it, "--no-honor-labels", "-r", "scale-down", "--honor-labels")
        )
    assert fine.returncode == 0, fine.stderr + fine.stdout
    told = json.loads(fine.stdout)
    assert told["level"] == "WARN"
    assert {"level", "area", "sentence"} <= told["findings"][0].keys()
    assert fine.stderr == ""
    assert broken.returncode == 3
    assert broken.stdout.startswith("OK    telemetry  Prometheus at")
    assert re.search(r"\n\d FAIL, \d+ WARN, \d+ OK\n\Z", broken.stdout)


async def test_a_reader_who_has_seen_enough_is_no_error_of_ours(tmp_path):
    async with place(tmp_path) as it:
        for output in ("table", "json"):
            quoted = " ".join(command(it, "--output", output))
            done = await ended("sh", "-c", f"{quoted} | true")
            assert "Traceback" not in done.stderr
            assert "Exception ignored" not in done.stderr


async def test_somebody_at_a_terminal_is_told_what_is_waited_for(tmp_path):
    async with place(tmp_path) as it:
        with ScriptedServer(default=Answer(hang=True)) as silent:
            it.prometheus = silent.url
            ours, theirs = pty.openpty()
            process = await asyncio.create_subprocess_exec(
                *command(it), stdout=asyncio.subprocess.DEVNULL, stderr=theirs
            )
            os.close(theirs)
            told = await asyncio.to_thread(os.read, ours, 1000)
            process.kill()
            await process.wait()
            os.close(ours)
    assert told == b"gpu-pruner: waiting for the telemetry source\r\n"


async def test_somebody_who_interrupts_it_need_not_wait(tmp_path):
    async with place(tmp_path) as it:
        with ScriptedServer(default=Answer(hang=True)) as silent:
            # Longer than this test may take: it would wait for the answer, or for ever.
            config = tmp_path / "config.yaml"
            config.write_text("prometheus: {timeout_seconds: 600}")
            it.prometheus = silent.url
            process = await asyncio.create_subprocess_exec(
                *command(it, "--config", str(config)),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            await asyncio.to_thread(silent.wait_for_requests, 1)
            os.kill(process.pid, signal.SIGINT)
            _, told = await process.communicate()
    assert process.returncode == 130
    assert b"interrupted" in told
    assert b"Traceback" not in told

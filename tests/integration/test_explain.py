"""`gpu-pruner explain` over a real Prometheus with a past that is known to the last sample.

The past is generated, changed, written down, and then back-filled; what `explain` tells of it is
compared with what was written, read by nothing of the product. The history reaches a few minutes
into the future, so that it stays fresh while many questions are asked.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from support.prometheus import PrometheusServer, backfill, require_prometheus
from support.written_history import Sample, Truth, parsed, truth, without

from gpu_pruner.kube.crd import crd
from gpu_pruner.model.units import parse_rfc3339
from gpu_pruner.record.explanation_rows import DeviceExplanation, Explanation, SignalRow
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.history import Scraping
from gpu_pruner.sim.world import Behaviour, Node, Override, Workload, World

pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("explain"),
]

ENGINE, UTIL = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
BURST = Behaviour(activity=((-200.0, 0.0), (-21.0, 0.62), (-18.5, 0.0)))
WORLD = World(
    nodes=(
        Node(name="node-a"),
        Node(name="node-m", gpus=1, mig=("1g.10gb", "1g.10gb")),
        Node(name="node-u", gpus=2, model="NVIDIA L40S"),
        Node(name="node-x", gpus=1),
    ),
    workloads=(
        Workload(kind="Notebook", namespace="team-a", name="notebook-1", node="node-a"),
        Workload(
            kind="Deployment",
            namespace="team-a",
            name="finetune",
            node="node-a",
            gpus=3,
            overrides=(Override(gpu=1, behaviour=BURST),),
        ),
        Workload(
            kind="StatefulSet",
            namespace="team-b",
            name="kept",
            node="node-a",
            annotations={
                "gpu-pruner.io/ack-until": "2099-01-01T00:00:00Z",
                "gpu-pruner.io/ack-by": "alice",
            },
        ),
        Workload(
            kind="Deployment",
            namespace="team-b",
            name="evaluate",
            node="node-a",
            behaviour=Behaviour(gaps=((-31.0, -13.0),)),
        ),
        Workload(
            kind="Deployment",
            namespace="team-c",
            name="slice",
            node="node-m",
            resource="nvidia.com/mig-1g.10gb",
        ),
        Workload(kind="Deployment", namespace="team-c", name="util", node="node-u"),
        Workload(kind="Deployment", namespace="team-c", name="blind", node="node-x"),
        Workload(kind="Deployment", namespace="team-c", name="web", gpus=0),
    ),
)


def hidden(sample: Sample) -> bool:
    """Whether an exporter does not tell this: node-u has no profiling, node-x tells no work."""
    unseen = {
        "node-u": ("DCGM_FI_PROF_",),
        "node-x": ("DCGM_FI_PROF_", UTIL),
    }.get(sample.labels.get("Hostname", ""), ())
    return sample.metric.startswith(tuple(unseen))


@dataclass
class Place:
    """The cluster, its past, and the commands that were run there."""

    prometheus: str
    kubeconfig: Path
    cluster: SimulatedCluster
    samples: tuple[Sample, ...]
    told: dict[str, Explanation] = field(default_factory=dict)

    async def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(
            subprocess.run,
            [
                *(sys.executable, "-m", "gpu_pruner.cli", "explain", *arguments),
                *("--prometheus-url", self.prometheus, "--kubeconfig", str(self.kubeconfig)),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    async def ask(self, ref: str) -> Explanation:
        """Return the explanation; each question is asked once."""
        if ref not in self.told:
            done = await self.run(ref, "--output", "json")
            assert done.returncode == 0, done.stderr
            self.told[ref] = msgspec.json.decode(done.stdout, type=Explanation)
        return self.told[ref]

    def written(self, device: DeviceExplanation, metric: str) -> Truth:
        uuid, _, part = device.device.partition("/")
        return truth(
            self.samples,
            metric,
            uuid,
            begin=parse_rfc3339(device.begin),
            end=parse_rfc3339(device.end),
            mig_instance=part,
        )


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Place]:
    require_prometheus()
    clock = SystemClock()
    async with SimulatedCluster(WORLD, clock, crds=(crd(),)) as cluster:
        now = clock.now()
        scraping = Scraping(start=now - 2.5 * 3600, end=now + 300)
        text = without(cluster.history(scraping), hidden)
        data = await asyncio.to_thread(backfill, text, folder)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig())
        server = PrometheusServer(folder / "prometheus", data=data)
        entered = await asyncio.to_thread(server.__enter__)
        try:
            samples = tuple(one for line in text.splitlines() if (one := parsed(line)))
            yield Place(entered.url, kubeconfig, cluster, samples)
        finally:
            await asyncio.to_thread(server.__exit__, None, None, None)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with opened(tmp_path_factory.mktemp("explain")) as place:
        yield place


def by_signal(device: DeviceExplanation) -> Mapping[str, SignalRow]:
    return {one.signal: one for one in device.signals}


@pytest.mark.parametrize(
    ("ref", "verdict", "reason"),
    [
        ("notebook/team-a/notebook-1", "idle", "Confirming"),
        ("deployment/team-a/finetune", "active", "GpuActive"),
        ("statefulset/team-b/kept", "idle", "Kept"),
        ("deployment/team-b/evaluate", "unknown", "LowCoverage"),
        ("deployment/team-c/slice", "idle", "Confirming"),
        ("deployment/team-c/util", "idle", "Confirming"),
        ("deployment/team-c/blind", "unknown", "NoPrimarySignal"),
    ],
)
async def test_what_is_told_is_what_was_written(
    place: Place, ref: str, verdict: str, reason: str
) -> None:
    (one,) = (await place.ask(ref)).workloads
    assert (one.ref, one.verdict, one.reason) == (ref, verdict, reason)
    for device in one.devices:
        rows = by_signal(device)
        for signal, metric in (("engine", ENGINE), ("util", UTIL)):
            if signal in rows:
                told, known = rows[signal], place.written(device, metric)
                assert told.peak == pytest.approx(known.peak)
                if known.peak:
                    assert parse_rfc3339(told.peak_at or "") == known.peak_at
                assert (told.seen_steps, told.steps) == (known.seen, device.steps)
                assert told.metrics == (metric,)
                assert told.jobs == ("dcgm-exporter",)
        energy = place.written(device, ENERGY)
        assert rows["energy"].changes == energy.moved
        assert rows["energy"].peak == pytest.approx(energy.peak / 1000)
        assert device.movement is not None
        assert (device.movement.signal, device.movement.changes) == ("energy", energy.moved)


async def test_one_busy_gpu_of_three_is_told_with_its_peak_and_its_minute(place: Place) -> None:
    (one,) = (await place.ask("deployment/team-a/finetune")).workloads
    assert sorted(device.verdict for device in one.devices) == ["active", "idle", "idle"]
    (busy,) = (device for device in one.devices if device.verdict == "active")
    engine = by_signal(busy)["engine"]
    assert engine.peak is not None
    assert engine.peak > 0.5
    assert engine.active_steps in {3, 4}  # two minutes and a half, wherever the minutes begin
    assert busy.device in one.message
    assert one.next.at is not None
    assert parse_rfc3339(one.next.at) == parse_rfc3339(engine.last_active_at or "") + 35 * 60


async def test_a_kept_one_says_who_keeps_it_and_until_when(place: Place) -> None:
    (one,) = (await place.ask("statefulset/team-b/kept")).workloads
    (wish,) = one.wishes
    assert wish.reason == "Kept"
    assert "alice" in wish.detail
    assert wish.until is not None
    assert one.next.at == wish.until
    assert "alice" in one.message


async def test_an_unknown_one_says_what_is_missing_and_how_to_get_it(place: Place) -> None:
    (blind,) = (await place.ask("deployment/team-c/blind")).workloads
    missing = {one.signal for one in blind.devices[0].missing}
    assert {"engine", "util", "sm"} <= missing
    assert any(ENGINE in one and "counters" in one for one in blind.changes)
    (half,) = (await place.ask("deployment/team-b/evaluate")).workloads
    engine = by_signal(half.devices[0])["engine"]
    assert 15 <= engine.seen_steps <= 20
    assert f"{engine.seen_steps} of 35 minutes seen by {ENGINE}" in half.message


async def test_a_slice_shows_neither_utilisation_nor_what_its_board_draws(place: Place) -> None:
    (one,) = (await place.ask("deployment/team-c/slice")).workloads
    (device,) = one.devices
    assert "/" in device.device
    assert "util" not in by_signal(device)
    assert device.draw is None


async def test_a_device_with_only_utilisation_is_measured_over_seventy_minutes(
    place: Place,
) -> None:
    (one,) = (await place.ask("deployment/team-c/util")).workloads
    (device,) = one.devices
    assert (device.steps, device.needed_seconds) == (70, 70 * 60)
    assert "engine" in {missing.signal for missing in device.missing}


async def test_a_pod_a_gpu_and_a_node_lead_to_their_workloads(place: Place) -> None:
    (pod,) = place.cluster.pods_of("Notebook", name="notebook-1", namespace="team-a")
    told = await place.ask(f"pod/team-a/{pod['metadata']['name']}")
    assert [one.ref for one in told.workloads] == ["notebook/team-a/notebook-1"]
    uuid = told.workloads[0].devices[0].device
    assert [one.ref for one in (await place.ask(f"gpu/{uuid}")).workloads] == [
        "notebook/team-a/notebook-1"
    ]
    assert {one.ref for one in (await place.ask("node/node-a")).workloads} == {
        "notebook/team-a/notebook-1",
        "deployment/team-a/finetune",
        "statefulset/team-b/kept",
        "deployment/team-b/evaluate",
    }


async def test_it_writes_nothing_and_draws_a_picture(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "window.svg"
    done = await place.run("deployment/team-a/finetune", "--plot", str(file))
    assert done.returncode == 0, done.stderr
    assert "engine peak 0.6" in done.stdout
    assert "engine" in file.read_text()
    assert [one for one in place.cluster.requests if one.is_write] == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["deployment/team-a/finetun"], 2, ["finetun; did you mean deployment/team-a/finetune"]),
        (["deployment/team-a/notebook-1"], 2, ["did you mean notebook/team-a/notebook-1"]),
        (["node/node-b"], 2, ["node/node-a"]),
        (["gpu/GPU-none"], 2, ["nothing that holds a GPU"]),
        (["deployment/other/thing-entirely"], 2, ["`once` lists"]),
        (["deployment/team-c/web"], 1, ["holds no GPU"]),
        (["notebook-1"], 2, ["kind/namespace/name", "node/NAME", "gpu/UUID"]),
        (["notebook/team-a/notebook-1", "--plot", "window.pdf"], 2, ["--plot", ".png or .svg"]),
    ],
)
async def test_who_asks_about_something_else_is_told_what_there_is(
    place: Place, arguments: list[str], code: int, words: list[str]
) -> None:
    done = await place.run(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


async def test_of_a_running_controller_it_tells_the_clock_and_means_its_mode(
    tmp_path: Path,
) -> None:
    """Whoever asks does so in dry run, and the controller's warning counts all the same."""
    ref = "notebook/team-a/notebook-1"
    async with opened(tmp_path) as place:
        controller = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gpu_pruner.cli", "run", "-r", "scale-down", "-c", "2"),
            *("--ack-grace-period", "900", "--prometheus-url", place.prometheus),
            *("--kubeconfig", str(place.kubeconfig), "--listen-port", "0"),
            *("--listen-address", "127.0.0.1"),
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(120):
                while (status := book_of(place.cluster, "notebook-1")).get("phase") != "Warned":
                    await asyncio.sleep(0.1)
            (one,) = (await place.ask(ref)).workloads
        finally:
            controller.terminate()
            await controller.wait()
    assert (one.verdict, one.reason, one.clock.state) == ("idle", "Warned", "Warned")
    assert one.clock.warned_mode == "scale-down"
    told = (one.clock.warned_at, one.clock.pause_at, one.clock.idle_since)
    assert told == (status["warnedAt"], status["pauseAt"], status["idleSince"])
    assert one.next.at == status["pauseAt"]
    assert "paused if that agrees" in one.next.sentence
    assert "ehearsal" not in one.message


def book_of(cluster: SimulatedCluster, name: str) -> Mapping[str, str]:
    """Return the status of a root's GPUWorkload; empty where there is none yet."""
    for one in cluster.all("GPUWorkload"):
        if one["spec"]["rootRef"]["name"] == name:
            return one.get("status", {})
    return {}

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse
from support.caller import NO_ANSWER
from support.manual_clock import NOON
from support.simulated import DEPLOYMENTS, UNTIL_GONE, UNTIL_READY, Simulation

from gpu_pruner.model.units import HOUR, MINUTE
from gpu_pruner.sim.cluster import SimulatedCluster
from gpu_pruner.sim.history import Scraping
from gpu_pruner.sim.tree import child
from gpu_pruner.sim.world import Behaviour, Node, Override, Workload, World

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
POWER = "DCGM_FI_DEV_POWER_USAGE"

BUSY_UNTIL_MINUTE_10 = Behaviour(activity=((-60.0, 0.6), (10.0, 0.0)))
STUCK = Behaviour(activity=((-60.0, 0.9),), engine=((0.0, 0.0),), util=((0.0, 99.0),))
GONE = Behaviour(gaps=((5.0, 7.0),))
FROZEN = Behaviour(energy_frozen=((3.0, 6.0),))

WORLD = World(
    nodes=(
        Node(name="node-1", gpus=6),
        Node(name="node-2", gpus=2, mig=("1g.10gb", "2g.20gb"), exporter_gaps=((2.0, 4.0),)),
    ),
    workloads=(
        Workload(
            kind="Deployment",
            namespace="team-a",
            name="serve",
            gpus=2,
            behaviour=BUSY_UNTIL_MINUTE_10,
            overrides=(Override(gpu=1, behaviour=Behaviour(encoder=((0.0, 40.0),))),),
        ),
        Workload(kind="Pod", namespace="team-a", name="stuck", behaviour=STUCK),
        Workload(kind="Pod", namespace="team-a", name="gone", behaviour=GONE),
        Workload(kind="Pod", namespace="team-a", name="frozen", behaviour=FROZEN),
        Workload(
            kind="Pod",
            namespace="team-a",
            name="slice",
            resource="nvidia.com/mig-1g.10gb",
            behaviour=BUSY_UNTIL_MINUTE_10,
        ),
    ),
)


@pytest.fixture
async def simulation() -> AsyncIterator[Simulation]:
    async for one in Simulation.of(WORLD):
        yield one


def values(text: str, metric: str) -> dict[str, float]:
    """Values by ``pod`` (or UUID where nobody holds the device), several devices by their order."""
    found: dict[str, float] = {}
    for family in parse(text):
        for sample in family.samples:
            if sample.name.removesuffix("_total") == metric.removesuffix("_total"):
                holder = sample.labels.get("pod", sample.labels["UUID"])
                key = holder if holder not in found else f"{holder}/{sample.labels['gpu']}"
                found[key] = sample.value
    return found


def of(simulation: Simulation, metric: str, pod: str, *, node: str = "node-1") -> float:
    return values(simulation.cluster.exposition(node), metric)[pod]


def serving_pod(simulation: Simulation) -> str:
    return simulation.pod_names("Deployment", "serve")[0]


async def test_a_scrape_is_the_text_of_a_dcgm_exporter(simulation: Simulation) -> None:
    path = simulation.cluster.exporter_urls[0].removeprefix(simulation.cluster.url)
    answer = await simulation.caller.get(path)
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.raw.decode().splitlines()
    assert f"# TYPE {UTIL} gauge" in lines
    assert f"# TYPE {ENERGY} counter" in lines
    name = serving_pod(simulation)
    engine = [line for line in lines if line.startswith(ENGINE) and name in line]
    labels, value = engine[0].removeprefix(ENGINE).split("} ")
    assert value == "0.600000"
    assert [one.split("=")[0] for one in labels.strip("{").split(",")] == [
        "gpu",
        "UUID",
        "pci_bus_id",
        "device",
        "modelName",
        "Hostname",
        "DCGM_FI_DRIVER_VERSION",
        "container",
        "namespace",
        "pod",
    ]
    util = [line for line in lines if line.startswith(UTIL) and name in line]
    assert util[0].endswith("} 60")


async def test_every_device_of_the_node_is_there(simulation: Simulation) -> None:
    families = {family.name: family for family in parse(simulation.cluster.exposition("node-1"))}
    assert len(families) > 10
    for family in families.values():
        assert len({sample.labels["UUID"] for sample in family.samples}) == 6


async def test_pod_labels_last_as_long_as_the_pod(simulation: Simulation) -> None:
    name = serving_pod(simulation)
    await simulation.caller.patch(f"{DEPLOYMENTS}/serve", {"spec": {"replicas": 0}})
    await simulation.clock.advance(UNTIL_GONE / 2)
    assert name in simulation.cluster.exposition("node-1")
    await simulation.clock.advance(UNTIL_GONE)
    assert name not in simulation.cluster.exposition("node-1")
    await simulation.caller.patch(f"{DEPLOYMENTS}/serve", {"spec": {"replicas": 1}})
    await simulation.clock.advance(UNTIL_READY)
    text = simulation.cluster.exposition("node-1")
    assert serving_pod(simulation) in text
    assert name not in text


async def test_values_change_when_the_exporter_collects_not_when_it_is_scraped(
    simulation: Simulation,
) -> None:
    name = serving_pod(simulation)
    energies = []
    for _ in range(60):
        energies.append(of(simulation, ENERGY, name))
        await simulation.clock.advance(5.0)
    runs = [energies.count(one) for one in dict.fromkeys(energies)]
    assert set(runs[1:-1]) == {6}
    assert energies == sorted(energies)


async def test_work_shows_in_every_signal_and_its_end_too(simulation: Simulation) -> None:
    name = serving_pod(simulation)
    busy = {metric: of(simulation, metric, name) for metric in (ENGINE, UTIL, POWER)}
    await simulation.clock.advance(11 * MINUTE)
    idle = {metric: of(simulation, metric, name) for metric in (ENGINE, UTIL, POWER)}
    assert (busy[ENGINE], busy[UTIL]) == (0.6, 60)
    assert (idle[ENGINE], idle[UTIL]) == (0.0, 0)
    assert busy[POWER] > 3 * idle[POWER] > 0


@pytest.mark.parametrize("pod", ["stuck", "gone", "free"])
async def test_energy_is_power_over_time(simulation: Simulation, pod: str) -> None:
    if pod == "free":
        pods = values(simulation.cluster.exposition("node-1"), POWER)
        pod = next(one for one in pods if one.startswith("GPU-"))
    before = of(simulation, ENERGY, pod)
    await simulation.clock.advance(3 * MINUTE)
    millijoules = of(simulation, ENERGY, pod) - before
    assert millijoules / 180_000 == pytest.approx(of(simulation, POWER, pod), abs=1.6)


async def test_engine_activity_is_an_average_over_the_interval(simulation: Simulation) -> None:
    name = serving_pod(simulation)
    seen = set()
    for _ in range(140):
        seen.add(of(simulation, ENGINE, name))
        await simulation.clock.advance(5.0)
    assert {0.6, 0.0} < seen
    assert len(seen) == 3
    assert 0.0 < sorted(seen)[1] < 0.6


async def test_each_gpu_of_a_pod_does_its_own(simulation: Simulation) -> None:
    name = serving_pod(simulation)
    encoders = values(simulation.cluster.exposition("node-1"), "DCGM_FI_DEV_ENC_UTIL")
    engines = values(simulation.cluster.exposition("node-1"), ENGINE)
    assert [v for k, v in encoders.items() if k.startswith(name)] == [0, 40]
    assert [v for k, v in engines.items() if k.startswith(name)] == [0.6, 0.0]


async def test_a_stuck_engine_metric_contradicts_utilisation_and_power(
    simulation: Simulation,
) -> None:
    assert of(simulation, ENGINE, "stuck") == 0.0
    assert of(simulation, UTIL, "stuck") == 99
    assert of(simulation, POWER, "stuck") > 500


async def test_a_gap_takes_the_series_of_one_device_away(simulation: Simulation) -> None:
    await simulation.clock.advance(4.9 * MINUTE)
    assert 'pod="gone"' in simulation.cluster.exposition("node-1")
    await simulation.clock.advance(0.2 * MINUTE)
    text = simulation.cluster.exposition("node-1")
    assert 'pod="gone"' not in text
    assert 'pod="frozen"' in text
    await simulation.clock.advance(2 * MINUTE)
    assert 'pod="gone"' in simulation.cluster.exposition("node-1")


async def test_a_frozen_counter_stands_still_and_then_catches_up(simulation: Simulation) -> None:
    await simulation.clock.advance(4 * MINUTE)
    first = of(simulation, ENERGY, "frozen")
    await simulation.clock.advance(90.0)
    assert of(simulation, ENERGY, "frozen") == first
    await simulation.clock.advance(90.0)
    idle_millijoules = 60 * 60 * 1000
    assert of(simulation, ENERGY, "frozen") - first > idle_millijoules


async def test_slices_have_engine_activity_of_their_own_and_no_utilisation(
    simulation: Simulation,
) -> None:
    text = simulation.cluster.exposition("node-2")
    assert UTIL not in text
    samples = [
        sample for family in parse(text) for sample in family.samples if sample.name == ENGINE
    ]
    slices = {(sample.labels["UUID"], sample.labels["GPU_I_ID"]) for sample in samples}
    assert len(slices) == 4
    busy = [sample for sample in samples if sample.value > 0]
    assert [sample.labels["GPU_I_PROFILE"] for sample in busy] == ["1g.10gb"]
    energies = values(text, ENERGY)
    assert energies["slice"] in [v for k, v in energies.items() if k != "slice"]
    node = simulation.cluster.get("Node", name="node-2")
    assert child(node, "status", "allocatable", "nvidia.com/mig-2g.20gb") == "2"


async def test_an_exporter_that_is_away_does_not_answer(simulation: Simulation) -> None:
    path = simulation.cluster.exporter_urls[1].removeprefix(simulation.cluster.url)
    assert (await simulation.caller.get(path)).status == 200
    await simulation.clock.advance(3 * MINUTE)
    assert (await simulation.caller.get(path)).status == NO_ANSWER
    await simulation.clock.advance(2 * MINUTE)
    assert (await simulation.caller.get(path)).status == 200


async def test_an_exporter_can_be_killed_and_come_back(simulation: Simulation) -> None:
    path = simulation.cluster.exporter_urls[0].removeprefix(simulation.cluster.url)
    fault = simulation.cluster.kill_exporter("node-1")
    assert (await simulation.caller.get(path)).status == NO_ANSWER
    simulation.cluster.faults.remove(fault)
    assert (await simulation.caller.get(path)).status == 200


def stored(
    cluster: SimulatedCluster,
    start: float,
    end: float,
    *,
    interval: float = 30.0,
    honor_labels: bool = False,
) -> list[tuple[str, dict[str, str], float, float]]:
    text = cluster.history(
        Scraping(start=start, end=end, interval_seconds=interval, honor_labels=honor_labels)
    )
    return [
        (sample.name, sample.labels, float(sample.timestamp), sample.value)
        for family in parse_openmetrics(text)
        for sample in family.samples
    ]


async def test_history_ends_where_live_telemetry_begins(simulation: Simulation) -> None:
    await simulation.clock.advance(20.0)
    now = simulation.clock.now()
    past = {
        labels["UUID"]: value
        for name, labels, _, value in stored(simulation.cluster, now, now)
        if name == ENERGY and "GPU_I_ID" not in labels
    }
    live = {
        sample.labels["UUID"]: sample.value
        for family in parse(simulation.cluster.exposition("node-1"))
        for sample in family.samples
        if sample.name.startswith(ENERGY)
    }
    assert past == live


async def test_energy_always_grows_in_history(simulation: Simulation) -> None:
    samples = stored(simulation.cluster, NOON - 2.2 * HOUR, NOON, interval=150.0)
    by_device: dict[tuple[str, ...], list[float]] = {}
    for name, labels, _, value in samples:
        if name == ENERGY:
            key = (labels["UUID"], labels.get("GPU_I_ID", ""))
            # Before a pod held the device its series carried other labels.
            by_device.setdefault((*key, labels.get("exported_pod", "")), []).append(value)
    assert len(by_device) > 10
    for series in by_device.values():
        assert all(before < after for before, after in pairwise(series))


async def test_history_stays_the_same_when_the_world_goes_on(simulation: Simulation) -> None:
    scraping = Scraping(start=NOON - HOUR, end=NOON)
    before = simulation.cluster.history(scraping)
    await simulation.caller.patch(f"{DEPLOYMENTS}/serve", {"spec": {"replicas": 0}})
    await simulation.clock.advance(UNTIL_GONE)
    assert simulation.cluster.history(scraping) == before


@pytest.mark.parametrize("honor_labels", [False, True])
async def test_stored_labels_depend_on_honor_labels(
    simulation: Simulation, *, honor_labels: bool
) -> None:
    samples = stored(simulation.cluster, NOON, NOON, honor_labels=honor_labels)
    pod, namespace = (
        ("pod", "namespace") if honor_labels else ("exported_pod", "exported_namespace")
    )
    held = [one for _, one, _, _ in samples if one.get(pod) == "stuck"]
    free = [one for _, one, _, _ in samples if "exported_pod" not in one]
    assert {one[namespace] for one in held} == {"team-a"}
    assert {one["job"] for one in held} == {"dcgm-exporter"}
    if honor_labels:
        assert {one["pod"] for one in free} >= {"dcgm-exporter-node-1", "dcgm-exporter-node-2"}
    else:
        assert {one["pod"] for one in held} == {"dcgm-exporter-node-1"}
        assert {one["namespace"] for one in held} == {"gpu-operator"}


async def test_history_has_the_gaps_of_the_world(simulation: Simulation) -> None:
    await simulation.clock.advance(10 * MINUTE)
    samples = stored(simulation.cluster, NOON, NOON + 10 * MINUTE)
    minutes = {
        (stamp - NOON) / MINUTE
        for name, labels, stamp, _ in samples
        if name == ENGINE and labels.get("exported_pod") == "gone"
    }
    assert minutes == {m / 2 for m in range(21)} - {5.0, 5.5, 6.0, 6.5}
    nodes = {
        (stamp - NOON) / MINUTE for _, labels, stamp, _ in samples if labels["Hostname"] == "node-2"
    }
    assert nodes == {m / 2 for m in range(21)} - {2.0, 2.5, 3.0, 3.5}


async def test_a_pod_that_was_restarted_is_another_holder(simulation: Simulation) -> None:
    first = serving_pod(simulation)
    await simulation.caller.patch(f"{DEPLOYMENTS}/serve", {"spec": {"replicas": 0}})
    await simulation.clock.advance(UNTIL_GONE)
    await simulation.caller.patch(f"{DEPLOYMENTS}/serve", {"spec": {"replicas": 1}})
    await simulation.clock.advance(2 * MINUTE)
    second = serving_pod(simulation)
    samples = stored(simulation.cluster, NOON - MINUTE, simulation.clock.now())
    holders = {one.get("exported_pod") for _, one, _, _ in samples}
    assert {first, second} < holders


async def test_sharers_of_a_gpu_spread_and_show_the_whole_board() -> None:
    half = Behaviour(activity=((0.0, 0.5),))
    share = "nvidia.com/gpu.shared"
    world = World(
        nodes=(Node(name="node-1", gpus=2, model="NVIDIA L4", shares=2),),
        workloads=(
            Workload(kind="StatefulSet", namespace="a", name="one", resource=share, behaviour=half),
            Workload(kind="StatefulSet", namespace="a", name="two", resource=share, replicas=2),
        ),
    )
    async for simulation in Simulation.of(world):
        text = simulation.cluster.exposition("node-1")
        (node,) = simulation.cluster.all("Node")
        offered = child(node, "status", "allocatable", share)
        labels = child(node, "metadata", "labels")
        samples = [
            sample for family in parse(text) if family.name == ENGINE for sample in family.samples
        ]
        shown = {one.labels["pod"]: (one.labels["gpu"], one.value) for one in samples}
        assert shown == {"one-0": ("0", 0.5), "two-0": ("1", 0.0), "two-1": ("0", 0.5)}
        assert {one.labels["pod"]: one.labels["vgpu"] for one in samples} == {
            "one-0": "0",
            "two-0": "0",
            "two-1": "1",
        }
        assert offered == "4"
        assert isinstance(labels, dict)
        assert labels["nvidia.com/gpu.sharing-strategy"] == "time-slicing"


async def test_a_shared_gpu_that_nobody_holds_is_shown_once() -> None:
    world = World(nodes=(Node(name="node-1", gpus=2, shares=3),))
    async for simulation in Simulation.of(world):
        text = simulation.cluster.exposition("node-1")
        (family,) = [one for one in parse(text) if one.name == ENGINE]
        assert [one.labels["gpu"] for one in family.samples] == ["0", "1"]

"""Published lines of exporter pages, scraped live by a real Prometheus, and histories with renames.

What is told must be right in device, owner, scale and field. None of the static pages may ever be
called idle: their energy does not move.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support import samples
from support.manual_clock import ManualClock
from support.prometheus import (
    EXPORTER_NAMESPACE,
    EXPORTER_POD,
    History,
    PrometheusServer,
    as_stored,
    backfill,
    every,
    openmetrics,
    prometheus_binaries,
)
from support.screens import peaks_of
from support.scripted import ScriptedServer
from support.story import told_rules

from gpu_pruner.decide.device import Yardstick, judge_device
from gpu_pruner.decide.evidence import fold
from gpu_pruner.errors import IncompleteData
from gpu_pruner.model.plan import DeviceFinding
from gpu_pruner.model.signals import DeviceId, Period, PodName, Signal, Track
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.settings.schema import PrometheusSettings

pytestmark = pytest.mark.prometheus

STEP = 60.0
BINARIES = prometheus_binaries()
each_binary = pytest.mark.parametrize("binary", BINARIES.values(), ids=BINARIES.keys())


async def asked(
    url: str, now: float, devices: tuple[str, ...] = (), **settings: object
) -> tuple[Screen, tuple[Track, ...]]:
    """Return a screen of everything, and what a verify of some devices says of its last hour."""
    told = PrometheusSettings.model_validate({"url": url, **settings})
    source = PrometheusSource(told, clock=ManualClock(now))
    try:
        screen = await source.screen(now=now, back_to=now - 3600)
        hour = Period.ending(now, length=3600.0, step_seconds=STEP)
        found = await source.verify([DeviceId(one) for one in devices], hour) if devices else ()
        return screen, found
    finally:
        await source.close()


@pytest.fixture(scope="module", params=[False, True], ids=["exported", "honored"])
def honor_labels(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def live(
    honor_labels: bool,  # noqa: FBT001 - a fixture
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PrometheusServer]:
    with (
        ScriptedServer({"/metrics": samples.EVERYTHING}) as exporter,
        PrometheusServer(
            tmp_path_factory.mktemp("live"),
            targets=(exporter.address,),
            honor_labels=honor_labels,
            scrape_interval="1s",
        ) as server,
    ):
        exporter.wait_for_requests(3)
        yield server


def now_after_this_minute() -> float:
    """The minute of the samples is not over yet, so the clock is set past its end."""
    return math.ceil(time.time() / STEP) * STEP + STEP


async def tracks_of(live: PrometheusServer, device: DeviceId) -> dict[Signal, list[Track]]:
    told = PrometheusSettings(url=live.url)
    now = now_after_this_minute()
    source = PrometheusSource(told, clock=ManualClock(now))
    try:
        tracks = await source.verify([device], Period.ending(now, length=600.0, step_seconds=STEP))
    finally:
        await source.close()
    found: dict[Signal, list[Track]] = {}
    for one in tracks:
        assert one.device in {device, device.board}
        found.setdefault(one.signal, []).append(one)
    return found


def verdict(device: DeviceId, tracks: dict[Signal, list[Track]]) -> DeviceFinding:
    """Judge a device by the minute of its newest sample alone: coverage then hides nothing."""
    every_track = [one for group in tracks.values() for one in group]
    last = max((step for one in every_track for step, _ in one.steps), default=0)
    rules = replace(told_rules(), window_seconds=STEP / 2)
    period = Period(last, last, STEP)
    evidence = fold(device, every_track, period=period, rules=rules)
    yardstick = Yardstick(rules=rules, at=period.end, scrape_interval_seconds=1.0)
    return judge_device(evidence, yardstick, born_at=0.0, node="node-1")


@dataclass(frozen=True)
class Sample:
    """What one published line must be read as."""

    device: DeviceId
    signal: Signal
    value: float
    owner: str | None
    node: str
    reason: Reason = Reason.NOT_LIVE


H100 = "GPU-aaaa"
SAMPLES = [
    Sample(DeviceId(H100, "7"), Signal.ENGINE, 0.0, "ns-a/predictor-a", "node-a"),
    Sample(DeviceId(H100, "8"), Signal.ENGINE, 0.0, None, "node-a"),
    Sample(DeviceId(H100, "9"), Signal.ENGINE, 0.0, "ns-a/predictor-b", "node-a"),
    Sample(DeviceId("GPU-bbbb0"), Signal.ENGINE, 0.0, "ns-b/tensorflow-0", "node-b"),
    Sample(DeviceId("GPU-bbbb1"), Signal.ENGINE, 0.0, "ns-b/tensorflow-0", "node-b"),
    Sample(DeviceId("GPU-bbbb2"), Signal.ENGINE, 0.0, None, "node-b"),
    Sample(DeviceId("GPU-cccd"), Signal.ENGINE, 0.0, None, ""),
    Sample(DeviceId("GPU-dddd"), Signal.UTIL, 0.0, "default/pod1", "node-d"),
    Sample(DeviceId("GPU-eeee"), Signal.PCIE, 23792.0, "gpu-test3/pod1", "node-e",
           Reason.NO_PRIMARY_SIGNAL),
    Sample(DeviceId("GPU-4444"), Signal.TEMPERATURE, 9223372036854775794.0, None, "",
           Reason.OUT_OF_RANGE),
    Sample(DeviceId("GPU-6666"), Signal.UTIL, 218322032.0, "ns-j/job-worker-2", "node-j",
           Reason.OUT_OF_RANGE),
    Sample(DeviceId("GPU-6666"), Signal.POWER, 76.4, "ns-j/job-worker-2", "node-j",
           Reason.OUT_OF_RANGE),
]  # fmt: skip


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: f"{one.device}-{one.signal}")
async def test_a_published_sample_is_read_right_and_never_called_idle(
    live: PrometheusServer,
    honor_labels: bool,  # noqa: FBT001 - a fixture
    sample: Sample,
) -> None:
    found = await tracks_of(live, sample.device)
    (track,) = found[sample.signal]
    assert {exported for _, exported in track.steps} == {sample.value}
    assert track.labels.node == sample.node
    exporter = f"{EXPORTER_NAMESPACE}/{EXPORTER_POD}"
    if honor_labels:
        # Exporter 2.x prints empty labels, which hide even the exporter's own.
        absent = None if sample.device.uuid == "GPU-4444" else exporter
        assert track.labels.exported is None
        assert str(track.labels.native) == str(sample.owner or absent)
    else:
        assert (track.labels.exported and str(track.labels.exported)) == sample.owner
        assert str(track.labels.native) == exporter
    judged = verdict(sample.device, found)
    assert (judged.verdict, judged.reason) == (Verdict.UNKNOWN, sample.reason)


async def test_light_real_work_under_old_names_counts_from_the_threshold(
    live: PrometheusServer,
) -> None:
    found = await tracks_of(live, DeviceId("GPU-cccc"))
    (track,) = found[Signal.ENGINE]
    assert track.metric == "dcgm_fi_prof_gr_engine_active"
    assert {value for _, value in track.steps} == {0.008246}
    assert track.labels.exported == PodName("ns-c", "p")
    judged = verdict(DeviceId("GPU-cccc"), found)
    assert (judged.verdict, judged.reason) == (Verdict.UNKNOWN, Reason.NOT_LIVE)


async def test_replicas_of_a_shared_device_are_told_apart(live: PrometheusServer) -> None:
    found = await tracks_of(live, DeviceId("GPU-ffff"))
    assert {one.labels.replica for one in found[Signal.MEMORY]} == {"1", "3"}
    judged = verdict(DeviceId("GPU-ffff"), found)
    assert (judged.verdict, judged.reason) == (Verdict.UNKNOWN, Reason.NO_PRIMARY_SIGNAL)


async def test_a_page_of_everything_is_screened_and_its_gaps_are_told(
    live: PrometheusServer,
) -> None:
    now = now_after_this_minute()
    screen, _ = await asked(live.url, now)
    assert "3 series name no device (no UUID label) and are left out" in screen.notes
    assert {one.device.uuid for one in peaks_of(screen)} >= {"GPU-aaaa", "GPU-cccc", "GPU-dddd"}
    assert not any("not known to this version" in note for note in screen.notes)


async def test_informational_notes_do_not_trip_and_warnings_do(live: PrometheusServer) -> None:
    now = now_after_this_minute()
    told = 'PromQL info: metric might not be a counter, name does not end in _total: "x"'
    with ScriptedServer(forward_to=live.url, warning=told) as proxy:
        screen, tracks = await asked(proxy.url, now, ("GPU-dddd",))
        assert any(note.startswith("PromQL info:") for note in screen.notes)
        assert tracks
        proxy.warning = "PromQL warning: encountered a mix of histograms and floats"
        with pytest.raises(IncompleteData, match="mix of histograms"):
            await asked(proxy.url, now)


# Histories

NOW = math.floor(time.time() / STEP) * STEP - 600.0
START = NOW - 3000.0
LAST = int(NOW / STEP) - 1
CLASSIC = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
RENAMED = "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"
TIMES = every(30, START + 30, NOW)
OWNED = {"namespace": "team-a", "pod": "notebook-1"}


def stored(uuid: str, **labels: str) -> dict[str, str]:
    return as_stored({"UUID": uuid, "Hostname": "node-a", **OWNED, **labels}, honor_labels=False)


def zeros(times: list[float] = TIMES) -> list[tuple[float, float]]:
    return [(at, 0.0) for at in times]


HALF = START + 1500
XID = "DCGM_FI_DEV_XID_ERRORS"
PAST = [
    # The exporter was upgraded half-way: other names, other units, hostname in small letters.
    History(CLASSIC, stored("GPU-0up"), [(at, 0.9 if at == START + 600 else 0.0) for at in TIMES
                                         if at <= HALF]),
    History(RENAMED, stored("GPU-0up", Hostname="", hostname="node-a"),
            zeros([at for at in TIMES if at > HALF])),
    History("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", stored("GPU-0up"),
            [(at, (at - START) * 70_000) for at in TIMES if at <= HALF]),
    History("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL",
            stored("GPU-0up", Hostname="", hostname="node-a"),
            [(at, (at - START) * 70) for at in TIMES if at > HALF]),
    History("DCGM_FI_DEV_GPU_UTIL_RATIO", stored("GPU-1scale"),
            [(at, 37.0 if at == NOW - 60 else 0.0) for at in TIMES]),
    # An HA pair whose members saw different things, and two Slurm jobs on one device.
    History(CLASSIC, stored("GPU-2ha", prometheus_replica="a"), zeros()),
    History(CLASSIC, stored("GPU-2ha", prometheus_replica="b"),
            [(at, 0.5 if at == NOW - 300 else 0.0) for at in TIMES]),
    History(CLASSIC, stored("GPU-3slurm", hpc_job="17"), zeros()),
    History(CLASSIC, stored("GPU-3slurm", hpc_job="18"), [(at, 0.25) for at in TIMES]),
    # A new error is a new series, here of a smaller code than the one before.
    History(XID, stored("GPU-4xid", err_code="79"), [(at, 79.0) for at in TIMES]),
    History(XID, stored("GPU-4xid", err_code="31"),
            [(at, 31.0) for at in TIMES if at > NOW - 600]),
    History(CLASSIC, stored("GPU-4xid"), zeros()),
    # NVLink's own spelling; traffic counts in both directions together.
    History("DCGM_FI_PROF_NVLINK_RX_BYTES", stored("", gpu_uuid="GPU-5link", UUID=""),
            [(at, 6e6) for at in TIMES]),
    History("DCGM_FI_PROF_NVLINK_TX_BYTES", stored("", gpu_uuid="GPU-5link", UUID=""),
            [(at, 6e6) for at in TIMES]),
    History(CLASSIC, stored("GPU-5link"), zeros()),
    History("DCGM_FI_DEV_NEW_UTIL_RATIO", stored("GPU-5link"), zeros()),
]  # fmt: skip


@pytest.fixture(scope="module", params=BINARIES.values(), ids=BINARIES.keys())
def past(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrometheusServer]:
    directory = tmp_path_factory.mktemp("past")
    data = backfill(openmetrics(PAST), directory)
    with PrometheusServer(directory, data=data, binary=str(request.param)) as server:
        yield server


def only(tracks: tuple[Track, ...], signal: Signal, metric: str = "") -> dict[int, float]:
    (found,) = (one for one in tracks if one.signal is signal and metric in one.metric)
    return dict(found.steps)


async def test_work_under_an_exporters_former_names_is_seen(past: PrometheusServer) -> None:
    _, tracks = await asked(past.url, NOW, ("GPU-0up",))
    assert max(only(tracks, Signal.ENGINE, CLASSIC).values()) == 0.9
    assert set(only(tracks, Signal.ENGINE, RENAMED).values()) == {0.0}
    assert only(tracks, Signal.ENERGY, "JOULES")[LAST] == pytest.approx(3000 * 70)
    at_half = int(HALF / STEP) - 1
    assert only(tracks, Signal.ENERGY, "CONSUMPTION")[at_half] == pytest.approx(1500 * 70)
    assert {one.labels.node for one in tracks} == {"node-a"}


async def test_a_percentage_under_a_ratios_name_is_work_and_doubted(past: PrometheusServer) -> None:
    screen, tracks = await asked(past.url, NOW, ("GPU-1scale",))
    flawed, healthy = sorted((dict(one.steps) for one in tracks), key=len)
    assert max(healthy.values()) == 37.0
    assert all(math.isnan(value) for value in flawed.values())
    assert not any("another scale" in note for note in screen.notes), "it is over by now"


async def test_the_busier_of_an_ha_pair_and_of_two_jobs_counts(past: PrometheusServer) -> None:
    screen, tracks = await asked(past.url, NOW, ("GPU-2ha", "GPU-3slurm"))
    peaks = {one.device.uuid: max(value for _, value in one.steps) for one in tracks}
    assert peaks == {"GPU-2ha": 0.5, "GPU-3slurm": 0.25}
    assert any("up to 2 series say the same" in note for note in screen.notes)


async def test_a_new_xid_is_a_change_even_of_a_smaller_code(past: PrometheusServer) -> None:
    _, tracks = await asked(past.url, NOW, ("GPU-4xid",))
    codes = only(tracks, Signal.XID)
    assert set(codes.values()) == {79.0, 110.0}
    assert codes[LAST] == 110.0


async def test_nvlinks_own_spelling_is_the_same_device(past: PrometheusServer) -> None:
    screen, tracks = await asked(past.url, NOW, ("GPU-5link",))
    assert set(only(tracks, Signal.NVLINK).values()) == {12e6}
    assert only(tracks, Signal.ENGINE)
    screened = [one for one in peaks_of(screen) if one.device.uuid == "GPU-5link"]
    assert {one.signal for one in screened} == {Signal.ENGINE, Signal.NVLINK}


async def test_a_metric_that_we_do_not_know_is_told(past: PrometheusServer) -> None:
    screen, _ = await asked(past.url, NOW)
    (told,) = (note for note in screen.notes if "not known to this version" in note)
    assert "DCGM_FI_DEV_NEW_UTIL_RATIO" in told


async def test_a_screen_holds_no_silence_that_proves_nothing(past: PrometheusServer) -> None:
    screen, _ = await asked(past.url, NOW)
    quiet = {one.signal for one in peaks_of(screen) if all(value == 0.0 for _, value in one.steps)}
    assert quiet == {Signal.ENGINE}


@each_binary
async def test_two_clusters_in_one_server_are_refused_until_one_is_named(
    binary: str, tmp_path: Path
) -> None:
    both = [
        History(CLASSIC, stored("GPU-0east", cluster="east"), zeros()),
        History(CLASSIC, stored("GPU-1west", cluster="west"), zeros()),
    ]
    data = backfill(openmetrics(both), tmp_path)
    with PrometheusServer(tmp_path, data=data, binary=binary) as server:
        with pytest.raises(IncompleteData, match=r"holds 2 clusters \(label cluster\).*set prom"):
            await asked(server.url, NOW)
        screen, tracks = await asked(server.url, NOW, ("GPU-0east", "GPU-1west"), cluster="west")
    assert {one.device.uuid for one in (*peaks_of(screen), *tracks)} == {"GPU-1west"}

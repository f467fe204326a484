"""The Prometheus source against a real Prometheus: back-filled history and live scraping."""

from __future__ import annotations

import math
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
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
from support.scripted import Answer, ScriptedServer

from gpu_pruner.errors import IncompleteData, PrometheusError
from gpu_pruner.model.signals import DeviceId, Period, PodName, Signal, Track
from gpu_pruner.observe.profiles import BY_METRIC
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.observe.prometheus_replies import QueryTooLarge
from gpu_pruner.observe.promql import Scope, Slice, peaks
from gpu_pruner.settings.schema import PrometheusSettings

pytestmark = pytest.mark.prometheus

STEP = 60.0
NOW = math.floor(time.time() / STEP) * STEP - 600.0
"""A whole minute, so that expected step numbers are plain."""
START = NOW - 35 * STEP
LAST = int(NOW / STEP) - 1

BUSY = {"UUID": "GPU-0busy", "gpu": "0", "Hostname": "node-a", "modelName": "NVIDIA H100"}
OWNED = {"namespace": "team-a", "pod": "notebook-1", "container": "main"}
FREE = {"UUID": "GPU-1free", "gpu": "1", "Hostname": "node-a"}
SLICE = {"UUID": "GPU-2mig", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.10gb", "hostname": "node-b"}
GAPPED = {"UUID": "GPU-3gap", "Hostname": "node-a"}
BROKEN = {"UUID": "GPU-4nan", "Hostname": "node-a"}

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
ENGINE_FIELD = BY_METRIC[ENGINE]
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


@dataclass(frozen=True)
class FixedClock:
    """Says the same time for ever."""

    moment: float

    def now(self) -> float:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def past(*, honor_labels: bool) -> list[History]:
    """Return 35 minutes of five devices, one sample every 30 s."""

    def stored(labels: dict[str, str], **more: str) -> dict[str, str]:
        return as_stored(labels, honor_labels=honor_labels) | more

    times = every(30, START + 30, NOW)
    early = every(30, START + 30, START + 570)
    late = every(30, NOW - 570, NOW)
    busy_at = START + 630
    return [
        History(
            ENGINE, stored(BUSY | OWNED), [(at, 0.9 if at == busy_at else 0.0) for at in times]
        ),
        History(
            ENGINE,
            stored(BUSY | OWNED, instance="10.0.0.2:9400"),
            [(at, 0.001) for at in times],
        ),
        History(UTIL, stored(BUSY | OWNED), [(at, 0.0) for at in times]),
        History(ENERGY, stored(BUSY | OWNED), [(at, (at - START) * 70_000) for at in times]),
        History(ENGINE, stored(FREE), [(at, 0.0) for at in times]),
        History(
            ENGINE, stored(SLICE | OWNED | {"pod": "predictor-0"}), [(at, 0.0) for at in times]
        ),
        History(ENERGY, stored({**SLICE, "GPU_I_ID": ""}), [(at, at * 1000) for at in times]),
        History(ENGINE, stored(GAPPED), [(at, 0.0) for at in (*early, *late)]),
        History(
            ENGINE,
            stored(BROKEN),
            [(at, math.nan if at == busy_at else 0.0) for at in times],
        ),
        History(UTIL, stored(BROKEN), [(at, -1.0 if at == busy_at else 3.0) for at in times]),
    ]


@contextmanager
def prometheus_with_past(
    directory: Path,
    *,
    honor_labels: bool,
    arguments: tuple[str, ...] = (),
    binary: str = "prometheus",
) -> Iterator[PrometheusServer]:
    data = backfill(openmetrics(past(honor_labels=honor_labels)), directory)
    with PrometheusServer(directory, data=data, arguments=arguments, binary=binary) as server:
        yield server


BINARIES = prometheus_binaries()


@pytest.fixture(scope="module", params=BINARIES.values(), ids=BINARIES.keys())
def binary(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[False, True], ids=["exported", "honored"])
def honor_labels(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def server(
    honor_labels: bool,  # noqa: FBT001 - a fixture
    binary: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PrometheusServer]:
    directory = tmp_path_factory.mktemp("prometheus")
    with prometheus_with_past(directory, honor_labels=honor_labels, binary=binary) as running:
        yield running


@asynccontextmanager
async def source_of(url: str, now: float = NOW, **more: object) -> AsyncIterator[PrometheusSource]:
    settings = PrometheusSettings.model_validate({"url": url, **more})
    source = PrometheusSource(settings, clock=FixedClock(now))
    try:
        yield source
    finally:
        await source.close()


def of(tracks: tuple[Track, ...], uuid: str, signal: Signal) -> list[Track]:
    return [one for one in tracks if one.device.uuid == uuid and one.signal is signal]


WINDOW = Period.ending(NOW, length=35 * STEP, step_seconds=STEP)


async def test_verify_gives_the_peak_of_each_step_over_all_duplicates(
    server: PrometheusServer,
) -> None:
    async with source_of(server.url) as source:
        tracks = await source.verify([DeviceId("GPU-0busy")], WINDOW)
    (engine,) = of(tracks, "GPU-0busy", Signal.ENGINE)
    assert [step for step, _ in engine.steps] == list(range(WINDOW.first, WINDOW.last + 1))
    peaks = dict(engine.steps)
    burst = math.ceil((START + 630) / STEP) - 1
    assert peaks.pop(burst) == 0.9
    assert set(peaks.values()) == {0.001}
    assert engine.metric == ENGINE


async def test_energy_is_handed_over_in_joules(server: PrometheusServer) -> None:
    async with source_of(server.url) as source:
        tracks = await source.verify([DeviceId("GPU-0busy")], WINDOW)
    (energy,) = of(tracks, "GPU-0busy", Signal.ENERGY)
    assert energy.steps[-1] == (LAST, pytest.approx(35 * STEP * 70))


async def test_both_label_triples_are_handed_over(
    server: PrometheusServer,
    honor_labels: bool,  # noqa: FBT001 - a fixture
) -> None:
    async with source_of(server.url) as source:
        tracks = await source.verify([DeviceId("GPU-0busy"), DeviceId("GPU-1free")], WINDOW)
    workload, exporter = PodName("team-a", "notebook-1"), PodName(EXPORTER_NAMESPACE, EXPORTER_POD)
    (busy,) = of(tracks, "GPU-0busy", Signal.ENGINE)
    (free,) = of(tracks, "GPU-1free", Signal.ENGINE)
    assert busy.labels.exported == (None if honor_labels else workload)
    assert busy.labels.native == (workload if honor_labels else exporter)
    assert (free.labels.exported, free.labels.native) == (None, exporter)
    assert (busy.labels.node, busy.labels.model) == ("node-a", "NVIDIA H100")
    assert busy.labels.job == "dcgm-exporter"


async def test_a_slice_comes_with_its_boards_tracks_and_without_its_siblings(
    server: PrometheusServer,
) -> None:
    async with source_of(server.url) as source:
        own = await source.verify([DeviceId("GPU-2mig", "7")], WINDOW)
        sibling = await source.verify([DeviceId("GPU-2mig", "8")], WINDOW)
    assert {(one.device, one.signal) for one in own} == {
        (DeviceId("GPU-2mig", "7"), Signal.ENGINE),
        (DeviceId("GPU-2mig"), Signal.ENERGY),
    }
    assert {one.signal for one in sibling} == {Signal.ENERGY}
    (engine,) = of(own, "GPU-2mig", Signal.ENGINE)
    assert (engine.labels.mig_profile, engine.labels.node) == ("1g.10gb", "node-b")


async def test_a_gap_is_absent_steps(server: PrometheusServer) -> None:
    async with source_of(server.url) as source:
        tracks = await source.verify([DeviceId("GPU-3gap")], WINDOW)
    (engine,) = of(tracks, "GPU-3gap", Signal.ENGINE)
    steps = [step for step, _ in engine.steps]
    first_after_gap = math.ceil((NOW - 570) / STEP) - 1
    assert steps == [*range(WINDOW.first, WINDOW.first + 10), *range(first_after_gap, LAST + 1)]


async def test_not_a_number_and_negative_values_are_visible_beside_healthy_ones(
    server: PrometheusServer,
) -> None:
    async with source_of(server.url) as source:
        tracks = await source.verify([DeviceId("GPU-4nan")], WINDOW)
    bad_step = math.ceil((START + 630) / STEP) - 1
    healthy, flawed = sorted(
        of(tracks, "GPU-4nan", Signal.ENGINE), key=lambda one: len(one.steps), reverse=True
    )
    assert len(healthy.steps) == 35
    ((step, value),) = flawed.steps
    assert step == bad_step
    assert math.isnan(value)
    negative = min(of(tracks, "GPU-4nan", Signal.UTIL), key=lambda one: len(one.steps))
    assert negative.steps == ((bad_step, -1.0),)


async def test_screen_covers_all_devices_and_says_what_it_found(
    server: PrometheusServer,
    honor_labels: bool,  # noqa: FBT001 - a fixture
) -> None:
    async with source_of(server.url) as source:
        screen = await source.screen(now=NOW + 5, back_to=NOW - 60)
    assert screen.period == Period(LAST - 2, LAST, STEP)
    assert screen.scrape_interval_seconds == 30.0
    assert {one.device.uuid for one in peaks_of(screen)} == {
        "GPU-0busy",
        "GPU-1free",
        "GPU-2mig",
        "GPU-3gap",
        "GPU-4nan",
    }
    scheme, *others = screen.notes
    assert ("honorLabels true" if honor_labels else "honorLabels false") in scheme
    assert any("up to 2 series say the same" in note for note in others)


async def test_cold_start_reaches_back_over_the_whole_history(server: PrometheusServer) -> None:
    async with source_of(server.url) as source:
        screen = await source.screen(now=NOW, back_to=START)
    (free,) = of(peaks_of(screen), "GPU-1free", Signal.ENGINE)
    assert len(free.steps) == 35


async def test_a_wrong_honor_labels_setting_is_noted(
    server: PrometheusServer,
    honor_labels: bool,  # noqa: FBT001 - a fixture
) -> None:
    async with source_of(server.url, honor_labels=not honor_labels) as source:
        screen = await source.screen(now=NOW, back_to=NOW)
    told = str(not honor_labels).lower()
    assert any(note.startswith(f"honor_labels is {told}, but") for note in screen.notes)


async def test_no_telemetry_at_that_time_is_an_error_with_the_fix(server: PrometheusServer) -> None:
    async with source_of(server.url, now=NOW - 86_400) as source:
        with pytest.raises(PrometheusError, match=r"no DCGM series.*check that dcgm-exporter"):
            await source.screen(now=NOW - 86_400, back_to=NOW - 86_400)


async def test_too_many_samples_are_asked_for_in_smaller_parts(tmp_path: Path) -> None:
    limit = "--query.max-samples=200"
    with prometheus_with_past(tmp_path, honor_labels=True, arguments=(limit,)) as server:
        async with source_of(server.url) as source:
            whole = peaks(ENGINE_FIELD, Slice(WINDOW), Scope())
            with pytest.raises(QueryTooLarge):
                source._timed(lambda: source._queries.range(whole, WINDOW))
            screen = await source.screen(now=NOW, back_to=START)
            (free,) = of(peaks_of(screen), "GPU-1free", Signal.ENGINE)
            assert len(free.steps) == 35


async def test_a_limit_that_no_part_can_meet_is_an_error(tmp_path: Path) -> None:
    with prometheus_with_past(
        tmp_path, honor_labels=True, arguments=("--query.max-samples=1",)
    ) as server:
        async with source_of(server.url) as source:
            with pytest.raises(PrometheusError, match="too large"):
                await source.screen(now=NOW, back_to=NOW)


async def test_credentials_reach_prometheus_only_through_a_proxy_that_wants_them(
    server: PrometheusServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first\n", encoding="ascii")
    with ScriptedServer(forward_to=server.url, bearer="first") as proxy:
        async with source_of(proxy.url, token_file=str(token)) as source:
            await source.screen(now=NOW, back_to=NOW)
            proxy.bearer = "second"
            with pytest.raises(PrometheusError, match="asks for credentials") as refused:
                await source.verify([DeviceId("GPU-0busy")], WINDOW)
            assert "first" not in str(refused.value)
            token.write_text("second one is longer\n", encoding="ascii")
            proxy.bearer = "second one is longer"
            assert await source.verify([DeviceId("GPU-0busy")], WINDOW)


async def test_live_scraping_is_seen(
    tmp_path: Path,
    honor_labels: bool,  # noqa: FBT001 - a fixture
) -> None:
    labels = ",".join(f'{name}="{text}"' for name, text in (BUSY | OWNED).items())
    page = f"{ENGINE}{{{labels}}} 0.25\n{ENERGY}{{{labels}}} 5000\n"
    with (
        ScriptedServer({"/metrics": page}) as exporter,
        PrometheusServer(
            tmp_path,
            targets=(exporter.address,),
            honor_labels=honor_labels,
            scrape_interval="1s",
        ) as server,
    ):
        exporter.wait_for_requests(3)
        # The minute is not over yet, so the clock is set past its end; the samples are real.
        later = math.ceil(time.time() / STEP) * STEP + STEP
        async with source_of(server.url, now=later) as source:
            screen = await source.screen(now=later, back_to=later)
    (engine,) = of(peaks_of(screen), "GPU-0busy", Signal.ENGINE)
    assert {value for _, value in engine.steps} == {0.25}
    owner = engine.labels.native if honor_labels else engine.labels.exported
    assert owner == PodName("team-a", "notebook-1")
    assert screen.scrape_interval_seconds == 1.0


async def test_a_check_hears_the_step_that_is_not_over(binary: str, tmp_path: Path) -> None:
    labels = ",".join(f'{name}="{text}"' for name, text in (BUSY | OWNED).items())
    text = {"Content-Type": "text/plain; version=0.0.4"}
    page = Answer(f"{ENGINE}{{{labels}}} 0.25\n", headers=text)
    with (
        ScriptedServer({"/metrics": page}) as exporter,
        PrometheusServer(
            tmp_path, targets=(exporter.address,), scrape_interval="1s", binary=binary
        ) as server,
    ):
        exporter.wait_for_requests(3)
        at = time.time()
        async with source_of(server.url, now=at) as source:
            window = Period.ending(at, length=4 * STEP, step_seconds=STEP)
            tracks = await source.verify([DeviceId("GPU-0busy")], window.reaching(at))
    (engine,) = of(tracks, "GPU-0busy", Signal.ENGINE)
    # Of a minute that began this very second there may be no sample yet.
    assert engine.steps[-1][0] >= math.ceil((at - 5.0) / STEP) - 1
    assert engine.steps[-1][1] == 0.25


async def test_a_warning_makes_the_answer_incomplete(server: PrometheusServer) -> None:
    with ScriptedServer(forward_to=server.url, warning="store x is gone") as proxy:
        async with source_of(proxy.url) as source:
            with pytest.raises(IncompleteData, match="store x is gone"):
                await source.screen(now=NOW, back_to=NOW)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a self-signed certificate for 127.0.0.1 and its key."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=prometheus", "-keyout", str(file)]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(file.with_suffix(".crt"))]
    subprocess.run(command, check=True, capture_output=True)
    file.write_text(file.read_text() + file.with_suffix(".crt").read_text())
    return file


async def test_a_private_authority_is_trusted_only_where_it_is_named(
    server: PrometheusServer, certificate: Path
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with ScriptedServer(forward_to=server.url, tls=tls) as proxy:
        async with source_of(proxy.url) as source:
            with pytest.raises(PrometheusError, match=r"cannot be verified; set prometheus"):
                await source.screen(now=NOW, back_to=NOW)
        authority = str(certificate.with_suffix(".crt"))
        async with source_of(proxy.url, ca_file=authority) as source:
            trusted = await source.screen(now=NOW, back_to=NOW)
        async with source_of(proxy.url, tls_verify=False) as source:
            unchecked = await source.screen(now=NOW, back_to=NOW)
    note = "TLS certificates are not checked"
    assert note not in trusted.notes
    assert note in unchecked.notes

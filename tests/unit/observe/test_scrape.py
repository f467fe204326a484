"""Exporters are scraped on the clock's time; what fails is a gap that is told, never idleness."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from support.manual_clock import NOON
from support.prometheus import free_port
from support.screens import peaks_of
from support.scripted import Answer, ScriptedServer

from gpu_pruner.errors import ObservationError
from gpu_pruner.model.signals import DeviceId, Period, PodName, Signal
from gpu_pruner.observe import exporters
from gpu_pruner.observe.exporters import Fetcher, Target, expand
from gpu_pruner.observe.scrape import ScrapeSource
from gpu_pruner.settings.schema import ScrapeSettings

HALF_MINUTE = 30.0


@dataclass
class SteppedClock:
    """Stands still; whoever sleeps wakes when `advance` reaches his time."""

    at: float = NOON + 1.0
    _sleepers: list[tuple[float, asyncio.Event]] = field(default_factory=list)
    _asleep: asyncio.Event = field(default_factory=asyncio.Event)

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        self._sleepers.append((self.at + seconds, awake))
        self._asleep.set()
        await awake.wait()

    async def advance(self, seconds: float) -> None:
        """Move on, and return when the sleeper that woke sleeps again."""
        await self._asleep.wait()
        self._asleep.clear()
        self.at += seconds
        for due, awake in self._sleepers:
            assert due <= self.at, "moved too little to wake anybody"
            awake.set()
        self._sleepers.clear()
        await self._asleep.wait()


def page(value: object = 0.0, *, pod: str = "notebook-1", uuid: str = "GPU-a") -> str:
    labels = f'gpu="0",UUID="{uuid}",Hostname="node-a",namespace="team-a",pod="{pod}"'
    return f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} {value}\n"


@pytest.fixture
def exporter() -> Iterator[ScriptedServer]:
    with ScriptedServer({"/metrics": page()}) as running:
        yield running


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@asynccontextmanager
async def source_of(
    clock: SteppedClock, *urls: str, keep: float = 2100.0, **more: object
) -> AsyncIterator[ScrapeSource]:
    settings = ScrapeSettings.model_validate(
        {"exporters": urls, "interval_seconds": HALF_MINUTE, **more}
    )
    source = ScrapeSource(settings, clock=clock, keep_seconds=keep)
    await source.start()
    try:
        yield source
    finally:
        await source.close()


def metrics(server: ScriptedServer) -> str:
    return f"{server.url}/metrics"


async def test_the_peak_of_each_step_is_kept(clock: SteppedClock, exporter: ScriptedServer) -> None:
    async with source_of(clock, metrics(exporter)) as source:
        for value in (0.7, 0.0, 0.1, 0.2):
            exporter.answers = {"/metrics": page(value)}
            await clock.advance(HALF_MINUTE)
        screen = await source.screen(now=clock.now(), back_to=NOON)
    (track,) = peaks_of(screen)
    first = int(NOON / 60)
    assert track.steps == ((first, 0.7), (first + 1, 0.1))
    assert screen.period == Period(first, first + 1, 60.0)
    assert track.labels.native == PodName("team-a", "notebook-1")
    assert track.labels.exported is None
    assert track.labels.job == exporter.address


async def test_not_a_number_does_not_hide_in_a_step(
    clock: SteppedClock, exporter: ScriptedServer
) -> None:
    async with source_of(clock, metrics(exporter)) as source:
        for value in ("NaN", 0.3):
            exporter.answers = {"/metrics": page(value)}
            await clock.advance(HALF_MINUTE)
        tracks = await source.verify([DeviceId("GPU-a")], Period(0, int(NOON), 60.0))
    assert [str(value) for track in tracks for _, value in track.steps] == ["0.0", "0.3", "nan"]


async def test_a_failing_exporter_is_a_gap_with_a_note_said_once(
    clock: SteppedClock, exporter: ScriptedServer
) -> None:
    with ScriptedServer({"/metrics": page(uuid="GPU-b")}) as other, capture_logs() as logs:
        async with source_of(clock, metrics(exporter), metrics(other)) as source:
            other.answers = {"/metrics": Answer("", 500)}
            for _ in range(4):
                await clock.advance(HALF_MINUTE)
            screen = await source.screen(now=clock.now(), back_to=NOON)
            other.answers = {"/metrics": page(uuid="GPU-b")}
            await clock.advance(HALF_MINUTE)
            healed = await source.screen(now=clock.now(), back_to=NOON)
    failed = f"exporter {other.address}: HTTP 500 instead of a page of metrics"
    assert screen.notes == (failed,)
    assert {track.device.uuid: len(track.steps) for track in peaks_of(screen)} == {
        "GPU-a": 2,
        "GPU-b": 1,
    }
    assert healed.notes == ()
    assert [(entry["event"], entry["exporter"]) for entry in logs] == [
        ("exporter failed", other.address),
        ("exporter is back", other.address),
    ]


async def test_all_failing_is_an_error_until_one_is_back(
    clock: SteppedClock, exporter: ScriptedServer
) -> None:
    dead = free_port()
    exporter.answers = {}
    async with source_of(clock, metrics(exporter), f"http://127.0.0.1:{dead}/metrics") as source:
        with pytest.raises(ObservationError, match="no exporter could be scraped") as caught:
            await source.screen(now=clock.now(), back_to=NOON)
        assert f"127.0.0.1:{dead}: refuses connections" in str(caught.value)
        assert f"{exporter.address}: HTTP 404" in str(caught.value)
        exporter.answers = {"/metrics": page()}
        await clock.advance(HALF_MINUTE)
        await source.screen(now=clock.now(), back_to=NOON)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer("<html>Log in</html>"), "a page without any GPU metric we know"),
        (Answer(""), "a page without any GPU metric we know"),
        (Answer(page("many")), "a line cannot be read"),
        (Answer(page(), cut=True), "broke off"),
        (Answer("", 302, {"Location": "/login"}), "HTTP 302"),
        (Answer(hang=True), "no answer within 0.3 s"),
        (Answer("x" * 3_000_000), "sent more than 1 MiB"),
    ],
)
async def test_a_bad_page_fails_its_exporter_whole(
    clock: SteppedClock,
    exporter: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    said: str,
) -> None:
    monkeypatch.setattr(exporters, "LARGEST_PAGE", 1 << 20)
    exporter.answers = {"/metrics": answer}
    async with source_of(clock, metrics(exporter), timeout_seconds=0.3) as source:
        with pytest.raises(ObservationError, match=said) as caught:
            await source.screen(now=clock.now(), back_to=NOON)
        assert exporter.address in str(caught.value)
        assert await source.verify([DeviceId("GPU-a")], Period(0, int(NOON), 60.0)) == ()


async def test_the_window_is_kept_and_no_more(
    clock: SteppedClock, exporter: ScriptedServer
) -> None:
    async with source_of(clock, metrics(exporter), keep=300.0) as source:
        for _ in range(40):
            await clock.advance(HALF_MINUTE)
        screen = await source.screen(now=clock.now(), back_to=NOON)
        (track,) = peaks_of(screen)
        assert len(track.steps) == 10
        assert len(source._table) == 1


async def test_a_new_owner_is_a_new_track(clock: SteppedClock, exporter: ScriptedServer) -> None:
    async with source_of(clock, metrics(exporter)) as source:
        exporter.answers = {"/metrics": page(pod="notebook-2")}
        await clock.advance(60.0)
        tracks = await source.verify([DeviceId("GPU-a")], Period(0, int(NOON), 60.0))
    assert [str(track.labels.native) for track in tracks] == [
        "team-a/notebook-1",
        "team-a/notebook-2",
    ]
    assert {track.signal for track in tracks} == {Signal.ENGINE}


async def test_a_slow_round_makes_the_next_one_late_and_no_burst(
    clock: SteppedClock, exporter: ScriptedServer
) -> None:
    async with source_of(clock, metrics(exporter)):
        await clock.advance(300.0)
        await clock.advance(HALF_MINUTE)
    assert len(exporter.seen) == 3


async def test_steps_of_another_length_are_refused(
    clock: SteppedClock, exporter: ScriptedServer
) -> None:
    async with source_of(clock, metrics(exporter)) as source:
        with pytest.raises(ObservationError, match="steps of 60 s, not 90 s"):
            await source.verify([DeviceId("GPU-a")], Period(1, 2, 90.0))


async def test_before_the_start_there_is_nothing(clock: SteppedClock) -> None:
    source = ScrapeSource(ScrapeSettings(), clock=clock, keep_seconds=60.0)
    with pytest.raises(ObservationError, match="has not begun"):
        await source.screen(now=NOON, back_to=NOON)
    await source.close()


async def test_a_name_stands_for_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(host: str, port: int, **_: object) -> list[object]:
        assert (host, port) == ("exporters.gpu", 9400)
        return [(2, 1, 6, "", (ip, port)) for ip in ("10.0.0.2", "10.0.0.1", "fd00::1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    found = await expand("dns+http://exporters.gpu:9400/metrics")
    assert [one.url for one in found] == [
        "http://10.0.0.1:9400/metrics",
        "http://10.0.0.2:9400/metrics",
        "http://[fd00::1]:9400/metrics",
    ]


async def test_a_name_that_does_not_resolve_is_named(clock: SteppedClock) -> None:
    url = "dns+http://exporters.invalid:9400/metrics?api_key=canary"
    with capture_logs() as logs:
        async with source_of(clock, url) as source:
            with pytest.raises(ObservationError, match="exporters.invalid:9400: the name does not"):
                await source.screen(now=clock.now(), back_to=NOON)
    assert "exporters.invalid" in repr(logs)
    assert "canary" not in repr(logs)


async def test_what_is_left_out_is_told(clock: SteppedClock) -> None:
    text = page() + 'DCGM_FI_DEV_GPU_UTIL{gpu="1"} 0\nDCGM_FI_DEV_NEW_UTIL_RATIO{UUID="GPU-a"} 1\n'
    with ScriptedServer({"/metrics": text}) as exporter:
        async with source_of(clock, metrics(exporter), profiles=["dcgm", "amd"]) as source:
            screen = await source.screen(now=clock.now() + 60, back_to=clock.now())
    nameless, unknown, advice = screen.notes
    assert nameless.startswith("1 samples name no device")
    assert "not read: DCGM_FI_DEV_NEW_UTIL_RATIO" in unknown
    assert advice.startswith("AMD's exporter")


async def test_a_password_in_an_exporters_url_is_sent_and_never_told(
    clock: SteppedClock, exporter: ScriptedServer
) -> None:
    url = f"http://admin:can%40ary@{exporter.address}"
    with capture_logs() as logs:
        async with source_of(clock, f"{url}/metrics", f"{url}/none") as source:
            screen = await source.screen(now=clock.now() + 60, back_to=clock.now())
            assert "ary" not in repr(source._settings)
    sent = {seen.headers.get("Authorization") for seen in exporter.seen}
    assert sent == {f"Basic {b64encode(b'admin:can@ary').decode()}"}
    assert "ary" not in repr(logs) + repr(screen.notes)


async def test_a_password_for_a_name_goes_to_all_its_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def getaddrinfo(*_: object, **__: object) -> list[object]:
        return [(2, 1, 6, "", (ip, 9400)) for ip in ("10.0.0.2", "10.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    found = await expand("dns+http://exporters.gpu:9400/metrics", SecretStr("admin:canary"))
    assert [one.login and one.login.get_secret_value() for one in found] == ["admin:canary"] * 2
    assert "canary" not in repr(found)


async def test_an_address_that_cannot_be_asked_is_a_failure_of_that_exporter() -> None:
    fetcher = Fetcher(1.0)
    for url in ("http://[::1/m", "http://127.0.0.1:99999/m", "ftp://admin:canary@h/m"):
        with pytest.raises(ObservationError, match="exporter h:1: ") as caught:
            await fetcher.page(Target("h:1", url))
        assert "canary" not in str(caught.value)
    fetcher.close()

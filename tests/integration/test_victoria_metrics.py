"""A real VictoriaMetrics gives the same tracks as Prometheus 3, and hides nothing that is new."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import pytest
from support.manual_clock import ManualClock
from support.prometheus import History, as_stored, every
from support.screens import peaks_of
from support.scripted import ScriptedServer
from support.victoria import VictoriaMetrics

from gpu_pruner.model.signals import DeviceId, Period, PodName, Signal, Track
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.settings.schema import PrometheusSettings

pytestmark = pytest.mark.prometheus

STEP = 60.0
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
OWNED = {"namespace": "team-a", "pod": "notebook-1", "Hostname": "node-a"}


def stored(uuid: str, **labels: str) -> dict[str, str]:
    return as_stored({"UUID": uuid, **OWNED, **labels}, honor_labels=False)


def past(now: float) -> list[History]:
    """Return an hour that ends at a whole minute."""
    times = every(30, now - 3600, now)
    gap = [at for at in times if not now - 900 < at <= now - 600]
    return [
        # Work on the boundary of two steps belongs to the earlier one.
        History(ENGINE, stored("GPU-0edge"), [(at, 0.9 if at == now - 600 else 0.0)
                                             for at in times]),
        History(ENERGY, stored("GPU-0edge"), [(at, (at - now + 3600) * 70_000) for at in times]),
        History(ENGINE, stored("GPU-1gap"), [(at, 0.0) for at in gap]),
        History(UTIL, stored("GPU-2neg"), [(at, -1.0 if at == now - 600 else 0.0)
                                           for at in times]),
        History(ENGINE, stored("GPU-3new"), [(at, 0.7 if at > now - 20 else 0.0)
                                             for at in every(10, now - 600, now)]),
        History(ENGINE, stored("GPU-4nan"), [(at, math.nan if at > now - 300 else 0.0)
                                             for at in times]),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def now() -> float:
    """Return the last whole minute: its newest samples are younger than any hiding of them."""
    return math.floor(time.time() / STEP) * STEP


@pytest.fixture(scope="module")
def server(now: float, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaMetrics]:
    with VictoriaMetrics(tmp_path_factory.mktemp("victoria")) as running:
        running.take(past(now))
        yield running


async def screen(url: str, now: float) -> Screen:
    source = PrometheusSource(PrometheusSettings(url=url), clock=ManualClock(now))
    try:
        return await source.screen(now=now, back_to=now - 3600)
    finally:
        await source.close()


async def verify(url: str, now: float, uuid: str) -> tuple[Track, ...]:
    source = PrometheusSource(PrometheusSettings(url=url), clock=ManualClock(now))
    try:
        await source.screen(now=now, back_to=now)
        window = Period.ending(now, length=35 * STEP, step_seconds=STEP)
        return await source.verify([DeviceId(uuid)], window)
    finally:
        await source.close()


def only(tracks: tuple[Track, ...], signal: Signal) -> dict[int, float]:
    (found,) = (one for one in tracks if one.signal is signal)
    return dict(found.steps)


def step_of(at: float) -> int:
    return math.ceil(at / STEP) - 1


async def test_a_sample_on_a_boundary_belongs_to_the_step_that_it_ends(
    server: VictoriaMetrics, now: float
) -> None:
    tracks = await verify(server.url, now, "GPU-0edge")
    engine = only(tracks, Signal.ENGINE)
    assert [step for step, value in engine.items() if value] == [step_of(now - 600)]
    assert len(engine) == 35
    assert only(tracks, Signal.ENERGY)[step_of(now)] == pytest.approx(3600 * 70)
    assert {one.labels.exported for one in tracks} == {PodName("team-a", "notebook-1")}


async def test_a_gap_is_absent_steps(server: VictoriaMetrics, now: float) -> None:
    engine = only(await verify(server.url, now, "GPU-1gap"), Signal.ENGINE)
    window = range(step_of(now) - 34, step_of(now) + 1)
    missing = {step_of(at) for at in every(60, now - 840, now - 600)}
    assert set(window) - engine.keys() == missing


async def test_a_value_below_zero_is_a_track_of_its_own(
    server: VictoriaMetrics, now: float
) -> None:
    negative = min(await verify(server.url, now, "GPU-2neg"), key=lambda one: len(one.steps))
    assert negative.steps == ((step_of(now - 600), -1.0),)


async def test_not_a_number_is_never_silence(server: VictoriaMetrics, now: float) -> None:
    engine = only(await verify(server.url, now, "GPU-4nan"), Signal.ENGINE)
    assert max(engine) == step_of(now - 300), "the server drops it, so its steps are a gap"


async def test_work_of_the_newest_seconds_is_not_hidden(
    server: VictoriaMetrics, now: float
) -> None:
    found = await screen(server.url, now)
    newest = {
        one.device.uuid: one.steps[-1] for one in peaks_of(found) if one.signal is Signal.ENGINE
    }
    assert newest["GPU-3new"] == (step_of(now), 0.7)


async def test_it_is_asked_for_whole_answers(server: VictoriaMetrics, now: float) -> None:
    with ScriptedServer(forward_to=server.url, forwarded=("X-Server-Hostname",)) as proxy:
        await screen(proxy.url, now)
    asked = proxy.seen[-1].form
    assert (asked["nocache"], asked["deny_partial_response"]) == ("1", "1")
    assert "partial_response" not in asked


async def test_a_check_hears_the_step_that_is_not_over(server: VictoriaMetrics) -> None:
    at = time.time()
    server.take([History(ENGINE, stored("GPU-5now"), [(at, 0.6)])])
    source = PrometheusSource(PrometheusSettings(url=server.url), clock=ManualClock(at))
    try:
        await source.screen(now=at, back_to=at)
        window = Period.ending(at, length=4 * STEP, step_seconds=STEP)
        tracks = await source.verify([DeviceId("GPU-5now")], window.reaching(at))
    finally:
        await source.close()
    assert only(tracks, Signal.ENGINE) == {step_of(at): 0.6}


async def test_it_is_named_for_what_it_is_and_its_devices_are_counted(
    server: VictoriaMetrics, now: float
) -> None:
    source = PrometheusSource(PrometheusSettings(url=server.url), clock=ManualClock(now))
    try:
        survey = await source.survey(now=now)
    finally:
        await source.close()
    assert (survey.product, survey.version) == ("VictoriaMetrics", "")
    assert [(one.name, one.native) for one in survey.jobs] == [("dcgm-exporter", 0)]
    assert survey.jobs[0].exported == survey.jobs[0].series > 0
    assert survey.models[""][ENERGY] == 1

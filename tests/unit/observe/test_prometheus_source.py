"""Whatever a server does, the answer is complete tracks or an error that names server and fix."""

from __future__ import annotations

import json
import socket
import threading
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from email.utils import formatdate
from pathlib import Path

import msgspec
import pytest
from support.manual_clock import NOON, ManualClock
from support.prometheus import free_port
from support.screens import peaks_of
from support.scripted import Answer, ScriptedServer

from gpu_pruner.errors import IncompleteData, ObservationError, PrometheusError
from gpu_pruner.model.signals import DeviceId, Period, Signal
from gpu_pruner.observe import prometheus_queries, prometheus_transport
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.settings.schema import PrometheusSettings

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
LIVE = (ENGINE, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
QUERY, RANGE = "/api/v1/query", "/api/v1/query_range"
BUILD = "/api/v1/status/buildinfo"
WINDOW = Period.ending(NOON, length=2100.0, step_seconds=60.0)
DATE = {"Date": formatdate(NOON, usegmt=True)}


def success(*result: object, **more: object) -> str:
    return json.dumps({"status": "success", "data": {"result": result}, **more})


def one_device(**more: object) -> dict[str, Answer]:
    """Return a server's answers: one device with engine activity, idle."""
    probe = success({"metric": {"mode": ENGINE, "__name__": ENGINE}, "value": [NOON, "1"]})
    labels = {
        "__name__": ENGINE,
        "asked": ENGINE,
        "UUID": "GPU-a",
        "exported_namespace": "team-a",
        "exported_pod": "notebook-1",
    }
    values = [[NOON - 60, "0"], [NOON, "0.5"]]
    return {
        QUERY: Answer(probe, headers=DATE),
        RANGE: Answer(success({"metric": labels, "values": values}, **more), headers=DATE),
    }


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(one_device()) as running:
        yield running


@asynccontextmanager
async def source_of(url: str, **more: object) -> AsyncIterator[PrometheusSource]:
    settings = PrometheusSettings.model_validate({"url": url, "timeout_seconds": 5, **more})
    source = PrometheusSource(settings, clock=ManualClock())
    try:
        yield source
    finally:
        await source.close()


async def failure(url: str, **more: object) -> str:
    """Return what a screen raises."""
    async with source_of(url, **more) as source:
        with pytest.raises(PrometheusError) as caught:
            await source.screen(now=NOON, back_to=NOON)
    return str(caught.value)


async def test_a_screen_is_made_of_whole_steps(server: ScriptedServer) -> None:
    async with source_of(server.url) as source:
        screen = await source.screen(now=NOON + 59, back_to=NOON)
    (track,) = peaks_of(screen)
    last = int(NOON / 60) - 1
    assert screen.period == Period(last - 2, last, 60.0)
    assert (track.device, track.signal) == (DeviceId("GPU-a"), Signal.ENGINE)
    assert track.steps == ((last - 1, 0.0), (last, 0.5))


async def test_queries_are_forms_with_whole_steps(server: ScriptedServer) -> None:
    async with source_of(server.url) as source:
        await source.screen(now=NOON + 59, back_to=NOON)
    asked = next(one for one in server.seen if one.path == RANGE)
    assert asked.method == "POST"
    assert asked.form["start"] == str(int(NOON) - 120)
    assert asked.form["end"] == str(int(NOON))
    assert asked.form["step"] == "60"
    assert set(asked.form) == {"query", "start", "end", "step", "timeout"}


@pytest.mark.parametrize(
    ("build", "header", "sent"),
    [
        ({"version": "0.41.0"}, {}, {"dedup": "true", "partial_response": "false",
                                     "max_source_resolution": "0s"}),
        ({}, {"X-Server-Hostname": "vm"}, {"nocache": "1", "deny_partial_response": "1"}),
        ({"application": "Grafana Mimir", "version": "3.0.0"}, {}, {}),
        ({"version": "3.16.0"}, {}, {}),
        ("<html>", {}, {}),
    ],
)  # fmt: skip
async def test_each_server_is_sent_what_it_knows_and_nothing_else(
    server: ScriptedServer, build: object, header: dict[str, str], sent: dict[str, str]
) -> None:
    body = build if isinstance(build, str) else json.dumps({"status": "success", "data": build})
    server.answers = {**one_device(), BUILD: Answer(body, headers={**DATE, **header})}
    async with source_of(server.url) as source:
        await source.screen(now=NOON, back_to=NOON)
    asked = server.seen[-1].form
    own = {"query", "start", "end", "step", "timeout"}
    assert {name: text for name, text in asked.items() if name not in own} == sent


async def test_the_tenancy_port_is_refused_with_the_reason() -> None:
    said = await failure("https://thanos-querier.openshift-monitoring.svc:9092")
    assert "the label namespace; with honorLabels false that is the exporter's" in said
    assert "Use port 9091" in said


async def test_verify_asks_in_batches(server: ScriptedServer) -> None:
    async with source_of(server.url) as source:
        await source.verify([DeviceId(f"GPU-{n:04}") for n in range(201)], WINDOW)
    peaks = [one.form["query"] for one in server.seen if "max_over_time" in one.form["query"]]
    assert len(peaks) == 2, "everything is asked for at once"
    sizes = {query.split("}")[0].count("GPU-") for query in peaks}
    assert sizes == {200, 1}


async def test_an_answer_to_another_question_is_an_error(server: ScriptedServer) -> None:
    row = {"metric": {"__name__": ENGINE, "UUID": "GPU-a"}, "values": [[NOON, "0"]]}
    server.answers = {**one_device(), RANGE: Answer(success(row), headers=DATE)}
    async with source_of(server.url) as source:
        with pytest.raises(PrometheusError, match="what was not asked"):
            await source.verify([DeviceId("GPU-a")], WINDOW)


async def test_meters_that_worked_are_asked_for_once_a_day_and_may_fail(
    server: ScriptedServer,
) -> None:
    worked = {"metric": {"__name__": ENGINE, "UUID": "GPU-a", "modelName": "NVIDIA X9"}}
    server.answers = {
        **one_device(), RANGE: Answer(success(worked | {"values": [[NOON, "0"]]}), headers=DATE),
    }  # fmt: skip
    async with source_of(server.url) as source:
        for minute in (0, 1):
            screen = await source.screen(now=NOON + 60 * minute, back_to=NOON)
            assert screen.proven == {("NVIDIA X9", Signal.ENGINE)}
    assert sum("modelName, model_name) (" in one.form["query"] for one in server.seen
               if "group by (model" in one.form.get("query", "")) == 7  # fmt: skip


async def test_the_probe_is_asked_again_only_after_ten_minutes(server: ScriptedServer) -> None:
    async with source_of(server.url) as source:
        source._interval = 30.0
        for minute in (0, 1, 9, 10, 11):
            await source.screen(now=NOON + minute * 60, back_to=NOON)
    asked = [one.form.get("query", "") for one in server.seen]
    assert sum(query.startswith("count by (__name__)") for query in asked) == 2


async def test_a_small_change_of_the_interval_does_not_renumber_steps() -> None:
    async with source_of("http://prometheus:9090") as source:
        for gap, expected in ((60.0, 60.0), (64.0, 60.0), (90.0, 90.0), (85.0, 90.0)):
            source._measure([_samples(0.0, gap)])
            assert source._interval == expected


def _samples(*moments: float) -> prometheus_transport.replies.Series:
    values = json.dumps([(moment, "0") for moment in moments])
    return prometheus_transport.replies.Series(values=msgspec.Raw(values.encode()))


@pytest.mark.parametrize(("ahead", "skew"), [(0, 0.0), (45, 45.0), (-45, -44.0)])
async def test_clock_skew_is_measured(server: ScriptedServer, ahead: float, skew: float) -> None:
    date = {"Date": formatdate(NOON + ahead, usegmt=True)}
    server.answers = {
        path: Answer(answer.body, headers=date) for path, answer in one_device().items()
    }
    async with source_of(server.url) as source:
        screen = await source.screen(now=NOON, back_to=NOON)
    assert screen.clock_skew_seconds == skew


async def test_informational_notes_reach_the_operator(server: ScriptedServer) -> None:
    server.answers = one_device(warnings=["PromQL info: hm"], infos=["PromQL info: ho"])
    async with source_of(server.url) as source:
        screen = await source.screen(now=NOON, back_to=NOON)
    assert {"PromQL info: hm", "PromQL info: ho"} <= set(screen.notes)


async def test_warnings_and_partial_answers_are_incomplete(server: ScriptedServer) -> None:
    for spoiled in ({"warnings": ["store gone"]}, {"isPartial": True}):
        server.answers = one_device(**spoiled)
        async with source_of(server.url) as source:
            with pytest.raises(IncompleteData):
                await source.screen(now=NOON, back_to=NOON)
            with pytest.raises(IncompleteData):
                await source.verify([DeviceId("GPU-a")], WINDOW)


async def test_refused() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert await failure(url) == (
        f"Prometheus at {url} cannot be reached; check prometheus.url, and that it runs and may "
        "be reached"
    )


async def test_unknown_host() -> None:
    assert "host name does not resolve" in await failure("http://prometheus.invalid:9090")


async def test_silent(server: ScriptedServer) -> None:
    server.answers = {QUERY: Answer(hang=True)}
    said = await failure(server.url, timeout_seconds=0.2)
    assert "did not answer within 0.2 s" in said
    assert len(server.seen) == 1, "a read timeout is not retried"


async def test_a_trickle_is_given_up() -> None:
    def trickle(listening: socket.socket) -> None:
        with listening.accept()[0] as caller, suppress(OSError):
            caller.recv(65536)
            caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while True:
                caller.sendall(b" ")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=trickle, args=(listening,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert "did not answer within 1 s" in await failure(url, timeout_seconds=1)
        thread.join()


async def test_broken_off(server: ScriptedServer) -> None:
    server.answers = {QUERY: Answer(success(), cut=True)}
    assert "broke off" in await failure(server.url)


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_refusals(server: ScriptedServer, status: int) -> None:
    server.answers = {QUERY: Answer("no", status)}
    said = await failure(server.url)
    assert f"HTTP {status}" in said
    assert len(server.seen) == 1


async def test_a_busy_gateway_is_tried_again(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_transport.RETRY, "backoff_factor", 0)
    server.answers = {QUERY: Answer("", 502)}
    assert "behind a proxy that cannot reach it" in await failure(server.url)
    assert len(server.seen) == 3


async def test_html_instead_of_data(server: ScriptedServer) -> None:
    server.answers = {QUERY: Answer("<html>Log in</html>", headers={"Content-Type": "text/html"})}
    assert "HTML page" in await failure(server.url)


@pytest.mark.parametrize("metric", [None, [], {"UUID": 5}])
async def test_labels_that_are_no_texts_are_an_error(metric: object) -> None:
    answers = one_device()
    answers[RANGE] = Answer(success({"metric": metric, "values": [[NOON, "0"]]}), headers=DATE)
    with ScriptedServer(answers) as running:
        assert "answers what cannot be read" in await failure(running.url)


@pytest.mark.parametrize("count", ["NaN", "+Inf", "many"])
async def test_counts_that_are_no_numbers_are_an_error(count: str) -> None:
    probe = success({"metric": {"mode": ENGINE, "__name__": ENGINE}, "value": [NOON, count]})
    with ScriptedServer(one_device() | {QUERY: Answer(probe, headers=DATE)}) as running:
        assert "answers what cannot be read" in await failure(running.url)


@pytest.mark.parametrize("at", [NOON * 1000, 1e300, -5e12])
async def test_points_of_another_time_are_left_out(at: float) -> None:
    probe = success(
        *({"metric": {"mode": one, "__name__": one}, "value": [NOON, "1"]} for one in LIVE)
    )
    values = [[at, "1"], [NOON, "0"]]
    answer = success({"metric": {"__name__": ENGINE, "UUID": "GPU-a"}, "values": values})
    answers = {QUERY: Answer(probe, headers=DATE), RANGE: Answer(answer, headers=DATE)}
    with ScriptedServer(answers) as running:
        async with source_of(running.url) as source:
            screen = await source.screen(now=NOON, back_to=NOON)
    steps = [found for column in screen.columns for _, found in column.series]
    assert steps == [((screen.period.last, 0.0),)] * 2


async def test_redirects_are_not_followed(server: ScriptedServer) -> None:
    headers = {"Location": "http://user:s3cret@login.example:80/?token=s3cret"}
    server.answers = {QUERY: Answer("", 302, headers)}
    said = await failure(server.url, token="s3cret")
    assert "redirects to login.example (HTTP 302)" in said
    assert "s3cret" not in said
    assert len(server.seen) == 1


@pytest.mark.parametrize("words", ["bad token: Bearer s3cret", "is s3cret known?"])
@pytest.mark.parametrize("code", [200, 400, 401, 403, 422, 500])
@pytest.mark.parametrize("by", ["token", "login"])
async def test_our_credential_is_not_repeated_when_the_server_does(
    server: ScriptedServer, words: str, code: int, by: str
) -> None:
    url = server.url if by == "token" else server.url.replace("http://", "http://user:s3cret@")
    token = {"token": "s3cret"} if by == "token" else {}
    refused = {"status": "error", "errorType": "execution", "error": words}
    for body in (words, json.dumps(refused), json.dumps({**refused, "status": words})):
        server.answers = {QUERY: Answer(body, code)}
        said = await failure(url, **token)
        assert "s3cret" not in said


async def test_an_empty_server_names_what_it_has_instead(server: ScriptedServer) -> None:
    server.answers = {QUERY: success()}
    assert "has no DCGM series at 2026-01-31T12:00:00Z; check" in await failure(server.url)
    server.answers = {QUERY: success({"metric": {"__name__": "dcgm_gpu_utilization"}})}
    assert "it has dcgm_gpu_utilization" in await failure(server.url)


async def test_series_that_vanish_between_two_probes_are_an_error(server: ScriptedServer) -> None:
    async with source_of(server.url) as source:
        await source.screen(now=NOON, back_to=NOON)
        server.answers = {**one_device(), RANGE: success()}
        with pytest.raises(PrometheusError, match="known 1 device, but no sample of them since"):
            await source.screen(now=NOON, back_to=NOON)


async def test_a_huge_answer_is_not_swallowed(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_transport, "LARGEST_BODY", 1 << 20)
    server.answers = {QUERY: "x" * ((1 << 20) + 1)}
    assert "more than 1 MiB" in await failure(server.url)


async def test_a_missing_ca_file_is_named(server: ScriptedServer, tmp_path: Path) -> None:
    said = await failure(server.url.replace("http", "https"), ca_file=str(tmp_path / "missing.pem"))
    assert "missing.pem" in said
    assert "prometheus.ca_file" in said


async def test_credentials_in_the_url_are_used_and_never_told(server: ScriptedServer) -> None:
    server.answers = {QUERY: Answer("", 401)}
    said = await failure(server.url.replace("http://", "http://user:s3cret@"))
    assert server.seen[0].headers["Authorization"] == "Basic dXNlcjpzM2NyZXQ="
    assert "s3cret" not in said
    assert server.url in said


@pytest.mark.parametrize("status", [200, 400, 401, 500, 502])
async def test_an_answer_that_repeats_our_secrets_is_told_without_them(status: int) -> None:
    words = "unknown key key-s3cr3t, unknown token 'tok-s3cr3t'"
    body = json.dumps({"status": "error", "errorType": "auth", "error": words})
    for text in (words, body, success(warnings=[words])):
        with ScriptedServer({}, Answer(text, status=status)) as running:
            async with source_of(
                running.url, token="tok-s3cr3t", headers={"X-Api-Key": "key-s3cr3t"}
            ) as source:
                with pytest.raises(ObservationError) as caught:
                    await source.screen(now=NOON, back_to=NOON)
        assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))


async def test_extra_headers_are_sent(server: ScriptedServer) -> None:
    async with source_of(server.url, headers={"X-Scope-OrgID": "team"}) as source:
        await source.screen(now=NOON, back_to=NOON)
    assert server.seen[0].headers["X-Scope-OrgID"] == "team"


async def test_after_close_nothing_more_is_asked(server: ScriptedServer) -> None:
    async with source_of(server.url) as source:
        source._queries.close()
        with pytest.raises(PrometheusError, match="stopping"):
            await source.screen(now=NOON, back_to=NOON)
    assert server.seen == []


async def test_a_server_that_always_finds_the_question_too_large_is_given_up(
    server: ScriptedServer,
) -> None:
    refused = json.dumps({"status": "error", "errorType": "timeout", "error": "timed out"})
    server.answers = {**one_device(), RANGE: Answer(refused, 503)}
    assert "gave up on the query" in await failure(server.url)


async def test_cutting_into_parts_ends_with_the_time_for_the_whole_question(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_queries, "_PATIENCE", 0)
    assert "too slow for the whole question" in await failure(server.url)
    assert server.seen == []


async def test_what_cannot_be_sent_is_told_without_its_value(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "canary"

    def broken(*_: object, **__: object) -> None:
        raise ValueError(f"Invalid header value b'Bearer {secret}'")

    monkeypatch.setattr("requests.Session.request", broken)
    async with source_of(server.url) as source:
        with pytest.raises(PrometheusError, match="cannot be sent.*prometheus.token") as caught:
            await source.screen(now=NOON, back_to=NOON)
    told = "".join(traceback.format_exception(caught.value))
    assert secret not in str(caught.value)
    assert secret not in told

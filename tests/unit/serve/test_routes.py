from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest
from structlog.testing import capture_logs
from support.decisions import SERVER, a_decision, a_finding, a_report
from support.manual_clock import ManualClock
from tornado.httpclient import AsyncHTTPClient

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.snapshot import Breaker
from gpu_pruner.record.board import Board
from gpu_pruner.serve.app import Listener, application


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def board():
    return Board()


@pytest.fixture
async def ask(board, clock):
    listener = Listener(application(board, clock), address="127.0.0.1", port=0)
    client = AsyncHTTPClient(force_instance=True)

    async def get(path: str, method: str = "GET") -> Answer:
        body = b"" if method == "POST" else None
        answer = await client.fetch(
            f"http://127.0.0.1:{listener.port}{path}", method=method, body=body, raise_error=False
        )
        return Answer(answer.code, dict(answer.headers), answer.body)

    yield get
    client.close()
    await listener.close()


def warned():
    book = Book(phase=Phase.WARNED, pause_at=1_769_861_700.0)
    return a_decision(book=book, findings=(a_finding(),))


async def test_before_the_first_cycle_it_is_healthy_but_not_ready(ask):
    assert (await ask("/healthz")).status == 200
    ready = await ask("/readyz")
    assert (ready.status, ready.json["ready"]) == (503, False)
    assert ready.json["waitingFor"]
    workloads = await ask("/api/v1/workloads")
    assert workloads.status == 503
    assert "waiting for" in workloads.json["error"]


async def test_after_a_cycle_it_is_ready_and_shows_open_breakers(ask, board):
    board.publish(a_report(breakers=[Breaker(name="ScreenFailed", message="no answer")]))
    ready = await ask("/readyz")
    assert ready.status == 200, "a breaker is shown, and does not take us out of service"
    assert ready.json["breakers"] == [{"name": "ScreenFailed", "message": "no answer"}]


async def test_a_replica_that_does_not_lead_is_ready_and_answers_and_says_so(ask, board):
    board.publish(replace(a_report(warned()), leading=False))
    ready = await ask("/readyz")
    assert (ready.status, ready.json["leading"]) == (200, False)
    assert (await ask("/api/v1/workloads")).json["workloads"][0]["state"] == "Warned"
    metrics = (await ask("/metrics")).body
    assert b"gpu_pruner_leader 0.0" in metrics
    assert b"gpu_pruner_idle_gpus 0.0" in metrics, "the leader tells it"
    board.publish(a_report(warned()))
    assert (await ask("/readyz")).json["leading"] is True
    assert b"gpu_pruner_leader 1.0" in (await ask("/metrics")).body


async def test_not_being_ready_is_no_failure_in_the_log(ask):
    with capture_logs() as lines:
        assert (await ask("/readyz")).status == 503
        assert (await ask("/nothing")).status == 404
    assert lines == []


async def test_a_loop_that_stands_still_is_unhealthy(ask, board, clock):
    board.publish(a_report())
    assert (await ask("/healthz")).status == 200
    clock.at += 3600
    assert (await ask("/healthz")).status == 503


async def test_a_last_cycle_in_the_future_is_no_sign_of_health(ask, board, clock):
    board.publish(a_report())
    clock.at -= 3
    assert (await ask("/healthz")).status == 200, "clocks are corrected"
    clock.at -= 600
    assert (await ask("/healthz")).status == 503


async def test_workloads_tell_verdict_reason_sentence_and_deadline(ask, board):
    board.publish(a_report(warned()))
    row = (await ask("/api/v1/workloads")).json["workloads"][0]
    assert row["ref"] == "deployment/team-a/server"
    assert (row["verdict"], row["reason"], row["state"]) == ("idle", "Warned", "Warned")
    assert row["message"].startswith("No GPU work on 4 of 4 GPUs")
    assert row["pauseAt"] == "2026-01-31T12:15:00Z"
    assert row["devices"][0]["device"] == "GPU-1"


async def test_one_workload_is_found_by_its_reference_whatever_the_case_of_the_kind(ask, board):
    board.publish(a_report(warned()))
    path = f"/api/v1/workloads/Deployment/{SERVER.namespace}/{SERVER.name}"
    assert (await ask(path)).json["ref"] == SERVER.ref
    missing = await ask("/api/v1/workloads/deployment/team-a/nobody")
    assert missing.status == 404
    assert "deployment/team-a/nobody" in missing.json["error"]


async def test_summary_and_stats_have_the_rust_tools_shape(ask, board):
    board.publish(a_report(warned()))
    summary = (await ask("/api/v1/summary")).json
    assert summary["scale_downs"] == {"lifetime": 0}
    assert summary["idle_workloads"] == {"current": 1}
    assert summary.keys() == {"scale_downs", "idle_workloads", "pods_checked", "updated_at"}
    stats = (await ask("/api/v1/stats?window=1h")).json
    assert stats["scale_downs"] == {"lifetime": 0, "in_window": 0, "window": "1h"}
    assert stats["prometheus_available"] is True


async def test_an_unknown_window_names_the_windows_there_are(ask):
    answer = await ask("/api/v1/stats?window=2w")
    assert (answer.status, answer.json["error"]) == (400, "window must be one of 1h, 7d, 30d")


async def test_metrics_are_in_the_prometheus_text_format(ask, board):
    board.publish(a_report(warned()))
    answer = await ask("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert b"gpu_pruner_idle_gpus 4.0" in answer.body


@pytest.mark.parametrize("path", ["/", "/api/v1", "/api/v1/nothing", "/..%2f..%2fetc/passwd"])
async def test_what_is_no_route_is_a_json_404(ask, path):
    answer = await ask(path)
    assert answer.status == 404
    assert answer.json["error"]
    assert "Server" not in answer.headers


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/api/v1/workloads", "/api/v1/stats"])
async def test_reading_routes_take_no_posts(ask, path):
    answer = await ask(path, method="POST")
    assert answer.status == 405
    assert answer.json["error"]


# tornado leaves the socket that it could not bind to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_port_that_is_taken_is_an_error_with_the_place(board, clock):
    first = Listener(application(board, clock), address="127.0.0.1", port=0)
    with pytest.raises(ConfigurationError, match=f"127.0.0.1:{first.port}.*--listen-port"):
        Listener(application(board, clock), address="127.0.0.1", port=first.port)
    await first.close()

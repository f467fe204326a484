"""The routes about the past, through the real listener and out of both databases."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pydantic import SecretStr
from structlog.testing import capture_logs
from support.decisions import NOTEBOOK, SERVER
from support.ledgers import a_keeper, cycle, cycles, holding
from support.manual_clock import NOON, ManualClock
from tornado.httpclient import AsyncHTTPClient

from gpu_pruner.errors import LedgerError
from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.model.plan import Action, Decision
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.model.workload import Complaint
from gpu_pruner.record.board import Board
from gpu_pruner.record.ledger import archive as archives
from gpu_pruner.record.ledger.archive import AT_ONCE, MOST_WAITING, Archive
from gpu_pruner.serve.app import Listener, Voices, application
from gpu_pruner.settings.ledger import LedgerSettings

HOUR, DAY = 3600.0, 86_400.0
NO_HISTORY = "no history is kept here: set ledger.directory or ledger.dsn"
NOT_NOW = "history cannot be read now; the log says why"
PAST = ("/api/v1/leaderboard", "/api/v1/history")


@dataclass
class Answer:
    status: int
    body: Any


Ask = Callable[..., Awaitable[Answer]]


@asynccontextmanager
async def serving(archive: Archive | None, *, at: float = NOON + 2 * HOUR) -> AsyncIterator[Ask]:
    app = application(Board(), ManualClock(at), voices=Voices(archive=archive))
    listener = Listener(app, address="127.0.0.1", port=0)
    client = AsyncHTTPClient(force_instance=True, max_clients=100)

    async def ask(path: str, method: str = "GET") -> Answer:
        url = f"http://127.0.0.1:{listener.port}{path}"
        answer = await client.fetch(url, method=method, raise_error=False)
        return Answer(answer.code, json.loads(answer.body) if answer.body else None)

    yield ask
    client.close()
    await listener.close()


def ordered(decision: Decision, action: Action, name: str) -> Decision:
    return structs.replace(decision, action=action, decision_id=name)


def called_wrong(decision: Decision, name: str, *, at: float) -> Decision:
    said = Complaint(
        pause=name, at=at, by="ada", reason="it was training", evidence="no work", paused_at=NOON
    )
    intent = replace(decision.workload.intent, complaint=said)
    return structs.replace(decision, workload=replace(decision.workload, intent=intent))


def a_past(settings: LedgerSettings) -> None:
    """An hour of idle GPUs, two pauses of which one was wrong, and a pause ten days before."""
    keeper = a_keeper(settings)
    server, notebook = holding(SERVER, 4), holding(NOTEBOOK, 1, verdict=Verdict.ACTIVE)
    done = Outcome(root=SERVER, action="pause", result=Result.DONE, detail="it had 3 replicas")
    long_ago = ordered(server, Action.PAUSE, "d-0")
    keeper.take(cycle(long_ago, at=NOON - 10 * DAY, number=1, outcomes=[done]))
    for number, told in enumerate(cycles(server, notebook, begin=NOON, count=4, every=1200)):
        keeper.take(replace(told, number=2 + number))
    paused = ordered(server, Action.PAUSE, "d-1")
    keeper.take(cycle(paused, notebook, at=NOON + HOUR + 60, number=6, outcomes=[done]))
    wrong = called_wrong(server, "d-1", at=NOON + HOUR + 120)
    refused = Outcome(root=NOTEBOOK, action="pause", result=Result.REFUSED, detail="it is kept")
    again = ordered(holding(NOTEBOOK, 1), Action.PAUSE, "d-2")
    keeper.take(cycle(wrong, again, at=NOON + HOUR + 180, number=7, outcomes=[refused]))


@pytest.fixture
async def ask(ledger_settings: LedgerSettings) -> AsyncIterator[Ask]:
    a_past(ledger_settings)
    async with serving(Archive(ledger_settings)) as asking:
        yield asking


async def test_the_leaderboard_sums_by_namespace_owner_and_workload(ask: Ask) -> None:
    told = (await ask("/api/v1/leaderboard")).body
    assert [one["name"] for one in told["namespaces"]] == ["team-a", "team-b"]
    server = told["workloads"][0]
    assert (server["name"], server["idleGpuHours"]) == ("deployment/team-a/server", 4.2)
    assert (server["falsePositives"], told["workloads"][1]["falsePositives"]) == (1, 0)
    assert told["total"]["falsePositives"] == 1
    assert told["rows"] == {"namespaces": 2, "owners": 1, "workloads": 2}
    assert told["historyBegins"] == "2026-01-31T12:00:00Z"


async def test_a_limit_is_kept_and_what_is_left_out_is_counted(ask: Ask) -> None:
    told = (await ask("/api/v1/leaderboard?limit=1")).body
    assert [one["name"] for one in told["workloads"]] == ["deployment/team-a/server"]
    assert told["rows"]["workloads"] == 2
    history = (await ask("/api/v1/history?limit=1")).body
    assert (len(history["acts"]), history["moreActs"]) == (1, True)
    assert (len(history["falsePositives"]), history["moreFalsePositives"]) == (1, False)


async def test_history_tells_each_act_with_its_sentence_the_newest_first(ask: Ask) -> None:
    told = (await ask("/api/v1/history")).body
    acts = [(one["ref"], one["result"], one["decisionId"]) for one in told["acts"]]
    assert acts == [
        ("notebook/team-b/notebook-1", "refused", "d-2"),
        ("deployment/team-a/server", "done", "d-1"),
    ]
    pause = told["acts"][1]
    assert pause["message"].startswith("No GPU work on 4 of 4 GPUs")
    assert (pause["detail"], pause["calledWrongBy"]) == ("it had 3 replicas", "ada")
    assert told["acts"][0]["calledWrongBy"] is None
    assert told["falsePositives"] == [
        {
            "at": "2026-01-31T13:02:00Z",
            "ref": "deployment/team-a/server",
            "owner": "",
            "by": "ada",
            "reason": "it was training",
            "evidence": "no work",
            "decisionId": "d-1",
            "pausedAt": "2026-01-31T12:00:00Z",
        }
    ]


async def test_history_can_be_of_one_namespace(ask: Ask) -> None:
    told = (await ask("/api/v1/history?namespace=team-b")).body
    assert [one["ref"] for one in told["acts"]] == ["notebook/team-b/notebook-1"]
    assert told["falsePositives"] == []
    assert (await ask("/api/v1/history?namespace=nobody")).body["acts"] == []


async def test_the_window_bounds_what_is_told(ask: Ask) -> None:
    assert len((await ask("/api/v1/history?window=30d")).body["acts"]) == 3
    assert len((await ask("/api/v1/history?window=1h")).body["acts"]) == 2
    assert (await ask("/api/v1/leaderboard?window=30d")).body["begin"] == "2026-01-01T14:00:00Z"


async def test_stats_outlive_the_process_that_paused(ask: Ask) -> None:
    week = (await ask("/api/v1/stats?window=7d")).body
    assert week["scale_downs"] == {"lifetime": 2, "in_window": 1, "window": "7d"}
    month = (await ask("/api/v1/stats?window=30d")).body
    assert month["scale_downs"]["in_window"] == 2
    assert (await ask("/api/v1/summary")).body["scale_downs"] == {"lifetime": 2}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("leaderboard?window=2w", "window must be one of 1h, 7d, 30d"),
        ("history?window=", "window must be one of 1h, 7d, 30d"),
        ("stats?window=-1h", "window must be one of 1h, 7d, 30d"),
        ("leaderboard?limit=0", "limit must be a whole number from 1 to 1000"),
        ("leaderboard?limit=1001", "limit must be a whole number from 1 to 1000"),
        ("history?limit=1e3", "limit must be a whole number from 1 to 1000"),
        ("history?limit=%D9%A1", "limit must be a whole number from 1 to 1000"),
        ("history?limit=" + "9" * 5000, "limit must be a whole number from 1 to 1000"),
        ("history?windw=1h", "there is no argument 'windw'; known: window, limit, namespace"),
        ("leaderboard?namespace=a", "there is no argument 'namespace'; known: window, limit"),
        ("history?namespace=" + "a" * 254, "namespace is not the name of one"),
    ],
)
async def test_a_question_that_is_none_is_400_with_one_sentence(
    tmp_path: Path, query: str, says: str
) -> None:
    async with serving(Archive(LedgerSettings(directory=tmp_path))) as ask:
        answer = await ask(f"/api/v1/{query}")
    assert (answer.status, answer.body) == (400, {"error": says})


async def test_without_a_ledger_the_past_is_503_and_stats_are_those_of_the_process() -> None:
    async with serving(None) as ask:
        for path in PAST:
            answer = await ask(path)
            assert (answer.status, answer.body) == (503, {"error": NO_HISTORY})
        assert (await ask("/api/v1/stats")).status == 200
        assert (await ask("/api/v1/summary")).body["scale_downs"] == {"lifetime": 0}


@pytest.mark.parametrize("path", [*PAST, "/api/v1/stats", "/api/v1/summary"])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_database_that_is_away_is_503_and_never_a_zero(
    tmp_path: Path, path: str, kind: str
) -> None:
    secret = "canary-password"
    dsn = SecretStr(f"postgresql://me:{secret}@127.0.0.1:1/away")
    away = LedgerSettings(directory=tmp_path, dsn=dsn if kind == "postgresql" else None)
    with capture_logs() as lines:
        async with serving(Archive(away)) as ask:
            answer = await ask(path)
    assert (answer.status, answer.body) == (503, {"error": NOT_NOW})
    assert any("history cannot be read" in one["event"] for one in lines)
    assert secret not in str(lines)


async def test_a_head_is_answered_like_a_get(ask: Ask) -> None:
    assert await ask("/api/v1/leaderboard", "HEAD") == Answer(200, None)
    assert (await ask("/api/v1/history?limit=x", "HEAD")).status == 400


async def test_a_slow_database_holds_nobody_up_and_a_crowd_is_sent_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads run in threads: while all of them stand still, everything else is answered."""
    go_on, lock = threading.Event(), threading.Lock()
    running: list[int] = [0]

    def stands_still(*_: object, **__: object) -> None:
        with lock:
            running.append(running[-1] + 1)
        go_on.wait(15)
        with lock:
            running.append(running[-1] - 1)
        raise LedgerError("it took too long")

    monkeypatch.setattr(archives.past, "history", stands_still)
    async with serving(Archive(LedgerSettings(directory=tmp_path))) as ask:
        crowd = AT_ONCE + MOST_WAITING + 4
        asked = asyncio.as_completed([ask("/api/v1/history") for _ in range(crowd)])
        first = [(await one).status for _, one in zip(range(4), asked, strict=False)]
        healthy = (await ask("/healthz")).status
        go_on.set()
        rest = [(await one).status for one in asked]
    assert (first, healthy) == ([429] * 4, 200)
    assert rest == [503] * (AT_ONCE + MOST_WAITING)
    assert max(running) == AT_ONCE


async def test_what_two_processes_hear_is_one_false_positive(
    ledger_settings: LedgerSettings,
) -> None:
    """The complaint stands in the cluster, so that every process after a restart reads it anew."""
    wrong = called_wrong(holding(SERVER, 4), "d-1", at=NOON)
    for process in ("one", "two"):
        keeper = a_keeper(ledger_settings, process)
        for told in cycles(wrong, begin=NOON + 60, count=2):
            keeper.take(told)
    async with serving(Archive(ledger_settings)) as ask:
        assert len((await ask("/api/v1/history")).body["falsePositives"]) == 1


async def test_what_a_stranger_wrote_into_a_complaint_cannot_lose_history(
    ledger_settings: LedgerSettings,
) -> None:
    hostile = "\0\ud800'; DROP TABLE cycles; --" + "x" * 5000
    said = Complaint(pause=hostile, at=NOON, by=hostile, reason=hostile, evidence=hostile)
    before = holding(SERVER, 4)
    intent = replace(before.workload.intent, complaint=said)
    told = structs.replace(before, workload=replace(before.workload, intent=intent))
    keeper = a_keeper(ledger_settings)
    keeper.take(cycle(told, at=NOON))
    assert (keeper.state.lost, keeper.state.failures) == (0, 0)
    async with serving(Archive(ledger_settings)) as ask:
        [wrong] = (await ask("/api/v1/history")).body["falsePositives"]
    assert wrong["reason"].startswith("??'; DROP TABLE")

"""An explanation over HTTP: the command's answer, from the controller's own look, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field

import msgspec
import pytest
from support.manual_clock import ManualClock
from support.screens import screen_of
from support.story import told_rules
from support.telling_time import START
from support.world import World
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from gpu_pruner.cli.asking import ask_controller, controller_address
from gpu_pruner.cli.explainer import Explainer
from gpu_pruner.cli.references import parse_question
from gpu_pruner.errors import ConfigurationError, PrunerError
from gpu_pruner.loop.books import MemoryBooks
from gpu_pruner.loop.cycle import Cycle
from gpu_pruner.loop.execution import Executor, Silence
from gpu_pruner.loop.observation import Observer
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.orders import Outcome, PauseOrder
from gpu_pruner.model.signals import DeviceId, Period, Track
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.record.board import Board
from gpu_pruner.record.explanation_rows import Explanation
from gpu_pruner.serve.app import Listener, Voices, application

PATH = "/api/v1/workloads/{}/explain"


@dataclass
class Told:
    """A told world as cluster and telemetry at once; nobody may act in it."""

    world: World
    held: asyncio.Event | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[Period] = field(default_factory=list)

    def view(self) -> ClusterView:
        return self.world.view()

    def _tracks(self, period: Period) -> tuple[Track, ...]:
        devices = self.world.devices()
        return tuple(
            one for device in devices for one in device.tracks(period.first - 1, period.last)
        )

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def screen(self, *, now: float, back_to: float) -> Screen:
        period = Period.ending(now, length=now - back_to, step_seconds=60)
        return screen_of(self._tracks(period), period)

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        self.asked.append(period)
        self.begun.set()
        if self.held is not None:
            await self.held.wait()
        return self._tracks(period)

    async def pause(self, order: PauseOrder, *_: object, **__: object) -> Outcome:
        raise AssertionError(order)


@pytest.fixture
def told() -> Told:
    return Told(
        World({"train": {"gpus": ["idle", {"engine": "0.412 at -20m"}]}, "other": {"gpus": 1}})
    )


@pytest.fixture
def cycle(told: Told) -> Cycle:
    clock, rules, books = ManualClock(START), told_rules(), MemoryBooks()
    return Cycle(
        observer=Observer(told, told, rules),
        source=told,
        books=books,
        executor=Executor(Silence(), told, books, rules),
        board=Board(),
        clock=clock,
        rules=rules,
    )


@pytest.fixture
def explainer() -> Explainer:
    return Explainer()


@pytest.fixture
async def ask(cycle: Cycle, explainer: Explainer) -> AsyncIterator:
    app = application(cycle.board, cycle.clock, voices=Voices(explainer=explainer))
    listener = Listener(app, address="127.0.0.1", port=0)
    client = AsyncHTTPClient(force_instance=True)

    async def get(ref: str, *, method: str = "GET") -> HTTPResponse:
        url = f"{get.url}{PATH.format(ref)}"
        return await client.fetch(url, method=method, raise_error=False)

    get.url = f"http://127.0.0.1:{listener.port}"
    yield get
    client.close()
    await listener.close()


async def test_it_answers_what_the_command_prints(ask, cycle: Cycle, explainer: Explainer) -> None:
    await cycle.run()
    explainer.open(cycle)
    answer = await ask("deployment/team-a/train")
    assert answer.code == 200
    told = msgspec.json.decode(answer.body, type=Explanation)
    (one,) = told.workloads
    assert (one.verdict, one.reason) == ("active", "GpuActive")
    assert "engine peak 0.412 at 11:40 UTC" in one.message
    settings = {row.name: row.value for row in told.settings}
    assert (settings["window_seconds"], settings["mode"]) == ("35m", "scale-down")


async def test_asking_changes_nothing_of_what_the_cycle_does_next(
    ask, told: Told, cycle: Cycle, explainer: Explainer
) -> None:
    await cycle.run()
    explainer.open(cycle)
    before = cycle.board.planned
    for _ in range(3):
        assert (await ask("deployment/team-a/other")).code == 200
    assert cycle.board.planned is before
    assert len(told.asked) == 3


async def test_before_anything_was_looked_at_it_says_so(
    ask, cycle: Cycle, explainer: Explainer
) -> None:
    assert (await ask("deployment/team-a/train")).code == 503
    explainer.open(cycle)
    answer = await ask("deployment/team-a/train")
    assert (answer.code, b"no look" in answer.body) == (503, True)


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("deployment/team-a/trains", "did you mean deployment/team-a/train"),
        ("replicaset/team-a/train-part", "holds no GPU"),
        ("notebook/none/thing", "`once` lists"),
    ],
)
async def test_what_is_not_there_is_404_with_what_is_near(
    ask, cycle: Cycle, explainer: Explainer, ref: str, words: str
) -> None:
    await cycle.run()
    explainer.open(cycle)
    answer = await ask(ref)
    assert answer.code == 404
    assert words in msgspec.json.decode(answer.body)["error"]


async def test_one_is_measured_at_a_time(
    ask, told: Told, cycle: Cycle, explainer: Explainer
) -> None:
    await cycle.run()
    explainer.open(cycle)
    told.held = asyncio.Event()
    first = asyncio.ensure_future(ask("deployment/team-a/train"))
    await told.begun.wait()
    assert (await ask("deployment/team-a/other")).code == 429
    told.held.set()
    assert (await first).code == 200
    assert (await ask("deployment/team-a/other")).code == 200


async def test_only_get_measures(ask, cycle: Cycle, explainer: Explainer) -> None:
    await cycle.run()
    explainer.open(cycle)
    assert (await ask("deployment/team-a/train", method="HEAD")).code == 405


async def test_the_command_can_ask_a_controller_and_gets_the_same(
    ask, cycle: Cycle, explainer: Explainer
) -> None:
    await cycle.run()
    explainer.open(cycle)
    for ref in ("deployment/team-a/train", "pod/team-a/train-0"):
        told = await ask_controller(ask.url, parse_question(ref))
        assert [one.ref for one in told.workloads] == ["deployment/team-a/train"]
    answer = await ask("deployment/team-a/train")
    told = await ask_controller(ask.url, parse_question("deployment/team-a/train"))
    assert msgspec.json.decode(answer.body, type=Explanation) == told


@pytest.mark.parametrize(
    ("ref", "error", "words"),
    [
        ("deployment/team-a/trains", ConfigurationError, "did you mean deployment/team-a/train"),
        ("node/node-1", ConfigurationError, "--controller: .* not node/node-1"),
        ("deployment/team-a/..%2F..", ConfigurationError, "nothing that holds a GPU"),
    ],
)
async def test_what_a_controller_cannot_explain_is_bad_input(
    ask, cycle: Cycle, explainer: Explainer, ref: str, error: type[Exception], words: str
) -> None:
    await cycle.run()
    explainer.open(cycle)
    with pytest.raises(error, match=words):
        await ask_controller(ask.url, parse_question(ref))


async def test_a_controller_that_cannot_now_is_a_failure_with_its_reason(ask) -> None:
    with pytest.raises(PrunerError, match="cannot answer now: not connected"):
        await ask_controller(ask.url, parse_question("deployment/team-a/train"))
    with pytest.raises(PrunerError, match="is not a controller of this version"):
        await ask_controller(f"{ask.url}/metrics?", parse_question("deployment/team-a/train"))


@pytest.mark.parametrize(
    ("url", "words"), [("prom:8080", "http://"), ("http://a:8080/?x=1", "must end before")]
)
def test_a_wrong_address_names_its_flag(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--controller: .*{words}"):
        controller_address(url)
    assert controller_address("http://gpu-pruner:8080/") == "http://gpu-pruner:8080"

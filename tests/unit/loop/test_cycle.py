from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

from structlog.testing import capture_logs
from support.manual_clock import ManualClock
from support.screens import screen_of
from support.story import told_rules
from support.telling_time import START
from support.world import World

from gpu_pruner.errors import PrometheusError
from gpu_pruner.loop.books import MemoryBooks
from gpu_pruner.loop.cycle import Cycle
from gpu_pruner.loop.execution import Executor
from gpu_pruner.loop.observation import Observer
from gpu_pruner.loop.runner import run_guarded
from gpu_pruner.model.annotations import EXEMPT
from gpu_pruner.model.orders import Delivery, Outcome, Result
from gpu_pruner.model.signals import Period
from gpu_pruner.record.board import Board
from gpu_pruner.record.rows import plan_row

WARNED = {
    "phase": "Warned",
    "warned_at": "-20m",
    "warned_via": ["event"],
    "pause_at": "-1m",
    "warned_mode": "scale-down",
    "idle_since": "-60m",
    "nominated_at": "-21m",
}


@dataclass
class Stage:
    """A told world, a source that measures it, and an actor that answers as told."""

    world: World
    result: Result = Result.DONE
    meanwhile: dict[str, object] = field(default_factory=dict)
    """What people write on every owner while a measurement is made."""
    unmeasurable: str = ""
    """A workload whose measurement always fails."""
    paused: list[str] = field(default_factory=list)
    reaches: tuple[str, ...] = ("event",)

    def view(self):
        return self.world.view()

    def tracks(self, period):
        return tuple(
            track
            for device in self.world.devices()
            for track in device.tracks(period.first - 1, period.last)
        )

    async def screen(self, *, now, back_to):
        period = Period.ending(now, length=now - back_to, step_seconds=60)
        return screen_of(self.tracks(period), period)

    async def verify(self, devices, period):
        for one in self.world.workloads.values():
            one.setdefault("owner", {}).update(self.meanwhile)
        if self.unmeasurable and any(self.unmeasurable in str(one) for one in devices):
            raise PrometheusError("no answer")
        return self.tracks(period)

    async def deliver(self, letters, *, warned):
        return tuple(Delivery(root=one.root, kind=one.kind, via=self.reaches) for one in letters)

    async def pause(self, order, book=None, **_freshness):
        self.paused.append(order.root.name)
        return Outcome(root=order.root, action="pause", result=self.result, detail="it said no")

    def cycle(self, board=None):
        clock, rules = ManualClock(), told_rules()
        clock.at = START
        return Cycle(
            observer=Observer(self, self, rules),
            source=self,
            books=MemoryBooks(),
            executor=Executor(self, self, MemoryBooks(), rules),
            board=board or Board(),
            clock=clock,
            rules=rules,
        )


def due(*names: str) -> World:
    return World({name: {"gpus": ["idle"], "book": WARNED} for name in names})


async def test_what_is_due_is_paused():
    stage = Stage(due("train"))
    await stage.cycle().run()
    assert stage.paused == ["train"]


async def test_rules_that_change_between_two_cycles_hold_in_the_next():
    stage = Stage(due("train"))
    cycle = stage.cycle()
    cycle.obey(told_rules({"namespaces": "other"}))
    report = await cycle.run()
    (decision,) = report.decisions
    assert (stage.paused, decision.reason.value) == ([], "NotSelected")
    busy_an_hour_ago = World({"train": {"gpus": [{"engine": "0.9 at -60m"}], "book": WARNED}})
    for window, paused in (("35m", ["train"]), ("3h", [])):
        stage = Stage(busy_an_hour_ago)
        cycle = stage.cycle()
        cycle.obey(told_rules({"window_seconds": window}))
        await cycle.run()
        assert stage.paused == paused


async def test_a_wish_that_is_written_while_we_measure_counts():
    stage = Stage(due("train"), meanwhile={"annotations": {EXEMPT: "true"}})
    report = await stage.cycle().run()
    assert stage.paused == []
    (decision,) = report.decisions
    assert decision.reason.value == "Exempt"


async def test_a_pause_that_was_refused_is_shown_and_logged_as_refused_and_not_as_done():
    stage, board = Stage(due("train"), result=Result.REFUSED), Board()
    cycle = stage.cycle(board)
    with capture_logs() as lines:
        await cycle.run()
    (row,) = plan_row(board.planned.plan, number=1).workloads
    assert (row.reason, row.state, row.paused_at) == ("Refused", "Warned", None)
    assert "it said no" in row.message
    (line,) = [one for one in lines if one["event"] == "not done"]
    assert (line["order"], line["result"], line["detail"]) == ("pause", "refused", "it said no")


async def test_who_cannot_be_paused_lets_the_next_of_its_namespace_have_its_turn():
    stage = Stage(due("a-refused", "b-next"), result=Result.REFUSED)
    cycle = stage.cycle()
    await cycle.run()
    cycle.clock.at += 60
    await cycle.run()
    assert stage.paused == ["a-refused", "b-next"]


async def test_a_warning_that_reached_nobody_is_shown_as_not_delivered():
    nominated = {"phase": "Nominated", "confirmations": 2, "nominated_at": "-3m"}
    world = World({"train": {"gpus": ["idle"], "book": nominated}})
    board = Board()
    await replace(Stage(world), reaches=()).cycle(board).run()
    (row,) = plan_row(board.planned.plan, number=1).workloads
    assert (row.reason, row.state, row.warned_at) == ("NotDelivered", "Nominated", None)
    assert "reached nobody" in row.message


async def test_what_many_devices_do_between_two_looks_stops_the_cycle():
    lost = {"namespace": "team-b", "gpus": [{"gap": "from 0"}] * 3}
    stage = Stage(
        World({"train": {"gpus": ["idle"], "book": WARNED | {"pause_at": "2m"}}, "lost": lost})
    )
    cycle = stage.cycle()
    for opens in ([], [], ["DataLost"]):
        report = await cycle.run()
        assert [one.name for one in report.breakers] == opens
        cycle.clock.at += 60
    assert stage.paused == []


async def test_who_cannot_be_measured_lets_the_next_of_its_namespace_have_its_turn():
    stage = Stage(due("a-unmeasurable", "b-next"), unmeasurable="a-unmeasurable")
    cycle = stage.cycle()
    for _ in range(3):
        await cycle.run()
        cycle.clock.at += 60
    assert "b-next" in stage.paused
    assert "a-unmeasurable" not in stage.paused


@dataclass
class Office:
    """Leads or does not, as told, and remembers what was completed."""

    term: object | None = None
    completed: list[float] = field(default_factory=list)

    def begin_cycle(self):
        return self.term

    def complete_cycle(self, term, at):
        assert term is self.term
        self.completed.append(at)


@dataclass
class Term:
    began_at: float = START
    last_cycle_at: float | None = None


async def test_a_replica_that_does_not_lead_tells_what_it_sees_and_does_nothing():
    stage, board, office = Stage(due("train")), Board(), Office()
    cycle = stage.cycle(board)
    cycle.leadership = office
    with capture_logs() as lines:
        report = await cycle.run()
    assert (stage.paused, report.outcomes, report.deliveries) == ([], (), ())
    assert office.completed == []
    assert lines == []
    (row,) = plan_row(board.planned.plan, number=1).workloads
    assert (row.state, row.verdict) == ("Warned", "idle")
    assert (board.leading, board.led, board.totals.decisions.total()) == (False, None, 0)


async def test_a_new_leader_moves_the_deadline_by_the_time_in_which_none_led():
    stage, board = Stage(due("train")), Board()
    cycle = stage.cycle(board)
    cycle.leadership = office = Office(Term(last_cycle_at=START - 120))
    await cycle.run()
    assert stage.paused == []
    assert office.completed == [START]
    (decision,) = board.planned.decisions
    assert decision.book.pause_at == START + 60


async def test_a_cycle_that_failed_is_not_completed_and_says_whether_it_led():
    stage, board, office = Stage(due("train")), Board(), Office(Term())
    cycle = stage.cycle(board)
    cycle.leadership = office
    cycle.clock.at = START

    async def broken(plan):
        raise PrometheusError("no")

    cycle.executor = SimpleNamespace(notify=broken)
    await run_guarded(cycle, START)
    assert office.completed == []
    assert board.latest.leading is True
    office.term = None
    await run_guarded(cycle, START)
    assert board.leading is False


@dataclass
class Switch:
    """Says at each look what it is told to."""

    says: list[str]
    looks: int = 0

    async def hold(self):
        self.looks += 1
        return self.says[min(self.looks, len(self.says)) - 1]


async def test_who_holds_everything_stops_the_acts_and_the_clocks():
    stage = Stage(due("train"))
    cycle = stage.cycle()
    cycle.switch = Switch(["maintenance"])
    report = await cycle.run()
    assert stage.paused == []
    assert [(one.name, one.message) for one in report.breakers] == [("AllHeld", "maintenance")]
    assert report.decisions[0].book.frozen_since == START


async def test_a_hold_that_comes_while_we_measure_counts():
    stage = Stage(due("train"))
    cycle = stage.cycle()
    cycle.switch = Switch(["", "maintenance"])
    await cycle.run()
    assert stage.paused == []


async def test_when_nobody_holds_anything_any_more_it_goes_on():
    stage = Stage(due("train"))
    cycle = stage.cycle()
    cycle.switch = Switch(["maintenance", ""])
    await cycle.run()
    assert stage.paused == []
    cycle.clock.at += 60
    await cycle.run()
    assert stage.paused == ["train"]


class History:
    """Stands for the ledger: holds what it was told to write down."""

    def __init__(self) -> None:
        self.reports = []

    def record(self, report):
        self.reports.append(report)


async def test_history_is_told_of_every_cycle_with_its_acts_and_of_those_that_failed():
    cycle = Stage(due("train")).cycle()
    cycle.history = History()
    report = await cycle.run()
    cycle.failed(START + 60, "the API server is away")
    done, failed = cycle.history.reports
    assert done is report
    assert [(one.action, one.result) for one in done.outcomes if one.action == "pause"] == [
        ("pause", Result.DONE)
    ]
    assert (failed.plan, failed.failure) == (None, "the API server is away")

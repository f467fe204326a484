from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from support.decisions import NOTEBOOK, SERVER, a_decision

from gpu_pruner.loop.execution import Executor, Silence
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.orders import Delivery, MessageKind, Outcome, Result
from gpu_pruner.model.plan import Action, Plan
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import Intent, Release
from gpu_pruner.settings.schema import Settings

RULES = Settings().rules()
WARNED = Book(phase=Phase.WARNED, warned_at=100.0)
PAUSING = Book(phase=Phase.PAUSING)


@dataclass
class World:
    """Notifier, actor and books in one, with a diary of what was asked in which order."""

    reaches: tuple[str, ...] = ("event",)
    result: Result = Result.DONE
    diary: list[tuple[str, str]] = field(default_factory=list)
    written: list[Book] = field(default_factory=list)
    paused_with: dict[str, object] = field(default_factory=dict)

    async def deliver(self, decision, kind):
        self.diary.append((f"tell {kind.value}", decision.workload.root.name))
        return Delivery(root=decision.workload.root, kind=kind, via=self.reaches)

    async def pause(self, order, book=None, **freshness):
        self.diary.append(("pause", order.root.name))
        self.paused_with = {"order": order, "book": book, **freshness}
        return Outcome(root=order.root, action="pause", result=self.result)

    async def restore(self, root, *, by, why):
        self.diary.append(("restore", root.name))
        return Outcome(root=root, action="restore", result=self.result)

    async def write(self, decision, book):
        self.diary.append(("write", decision.workload.root.name))
        self.written.append(book)
        return Outcome(root=decision.workload.root, action="write-book", result=Result.DONE)

    def forget(self, root):
        self.diary.append(("forget", root.name))

    async def carry_out(self, *decisions):
        executor = Executor(self, self, self, RULES)
        plan = Plan(at=0.0, decisions=decisions)
        return await executor.act(plan, await executor.notify(plan))


async def test_a_warning_is_delivered_before_its_book_says_so():
    world = World()
    await world.carry_out(a_decision(action=Action.WARN, before=Book(), book=WARNED))
    assert world.diary == [("tell warning", "server"), ("write", "server")]
    assert world.written[0].warned_via == ("event",)


async def test_a_warning_that_reached_nobody_is_not_remembered_as_given():
    world = World(reaches=())
    (outcome,) = await world.carry_out(a_decision(action=Action.WARN, before=Book(), book=WARNED))
    assert world.written == []
    assert (outcome.result, outcome.detail) == (Result.FAILED, Reason.NOT_DELIVERED.rule)


async def test_the_notifier_of_a_dry_pass_reaches_nobody():
    decision = a_decision()
    assert (await Silence().deliver(decision, MessageKind.WARNING)).via == ()


async def test_pauses_go_first_because_their_evidence_ages():
    world = World()
    written = a_decision(before=Book(), book=WARNED)
    due = a_decision(root=NOTEBOOK, action=Action.PAUSE, before=WARNED, book=PAUSING)
    await world.carry_out(written, due)
    assert world.diary == [("pause", NOTEBOOK.name), ("write", "server")]


async def test_a_pause_hands_on_the_book_it_was_decided_on_and_the_age_limit():
    world = World()
    await world.carry_out(a_decision(action=Action.PAUSE, before=WARNED, book=PAUSING))
    assert world.paused_with["book"] == WARNED
    assert world.paused_with["max_age_seconds"] == RULES.verify_max_age_seconds
    assert world.paused_with["order"].decision_id == "d-1"
    assert world.written == [], "the actor writes Pausing, right before the lever"


async def test_a_pause_on_a_release_is_ordered_by_who_released_it_and_no_other_pause_is():
    intent = Intent(release=Release(at=0.0, by="ada"))
    for reason, by in ((Reason.RELEASED, "ada"), (Reason.DUE, "gpu-pruner")):
        world, how = World(), {"before": WARNED, "book": PAUSING, "intent": intent}
        await world.carry_out(a_decision(action=Action.PAUSE, reason=reason, **how))
        assert world.paused_with["order"].by == by


async def test_an_unchanged_book_is_not_written():
    world = World()
    assert await world.carry_out(a_decision(before=WARNED, book=WARNED)) == ()
    assert world.diary == []


@pytest.mark.parametrize(
    ("before", "after", "reason", "told"),
    [
        (Phase.PAUSING, Phase.PAUSED, Reason.PAUSED, "tell paused"),
        (Phase.RESTORING, Phase.WATCHING, Reason.RESTORED, "tell restored"),
        (Phase.PAUSED, Phase.PAUSED, Reason.PAUSED, None),
        (Phase.PAUSED, Phase.WATCHING, Reason.RESTARTED, None),
    ],
)
async def test_people_are_told_of_what_was_seen_to_happen(before, after, reason, told):
    world = World()
    await world.carry_out(
        a_decision(reason=reason, before=Book(phase=before), book=Book(phase=after))
    )
    said = [what for what, _ in world.diary if what.startswith("tell")]
    assert said == ([told] if told else [])


@pytest.mark.parametrize(("result", "writes"), [(Result.DONE, 1), (Result.CONFLICT, 0)])
async def test_a_restore_is_remembered_only_when_it_was_done(result, writes):
    world = World(result=result)
    restoring = Book(phase=Phase.RESTORING)
    await world.carry_out(a_decision(action=Action.RESTORE, before=PAUSING, book=restoring))
    assert len(world.written) == writes
    assert world.diary[0] == ("restore", SERVER.name)


@pytest.mark.parametrize(
    ("result", "forgets"),
    [(Result.DONE, 0), (Result.FAILED, 0), (Result.CONFLICT, 1), (Result.REFUSED, 1)],
)
async def test_after_a_no_only_the_watch_is_believed(result, forgets):
    world = World(result=result)
    await world.carry_out(a_decision(action=Action.PAUSE, before=WARNED, book=PAUSING))
    assert [what for what, _ in world.diary].count("forget") == forgets


async def test_a_restore_whose_book_was_not_written_says_so():
    world = World()

    async def conflict(decision, book):
        root = decision.workload.root
        return Outcome(root=root, action="w", result=Result.CONFLICT, detail="it changed")

    world.write = conflict
    restoring = Book(phase=Phase.RESTORING)
    (outcome,) = await world.carry_out(
        a_decision(action=Action.RESTORE, before=PAUSING, book=restoring)
    )
    assert (outcome.result, outcome.detail) == (
        Result.DONE,
        "its GPUWorkload was not told: it changed",
    )

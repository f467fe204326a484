from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from support.decisions import NOTEBOOK, SERVER, a_decision

from gpu_pruner.loop.execution import Executor, Silence
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.letters import Letter
from gpu_pruner.model.orders import Delivery, MessageKind, Outcome, Result
from gpu_pruner.model.plan import Action, Plan
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import Intent, Release, RootRef
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
    letters: list[Letter] = field(default_factory=list)
    warned: frozenset[RootRef] = frozenset()
    rules: Rules = RULES
    executor: Executor | None = None
    written: list[Book] = field(default_factory=list)
    paused_with: dict[str, object] = field(default_factory=dict)

    async def deliver(self, letters, *, warned):
        self.letters += letters
        self.warned = warned
        self.diary += [(f"tell {one.kind.value}", one.root.name) for one in letters]
        return tuple(self.told(one) for one in letters)

    def told(self, letter):
        """Every channel takes everything, unless a letter is for some of them only."""
        via = tuple(one for one in self.reaches if letter.only is None or one in letter.only)
        holding = tuple(one for one in via if one == "pager")
        return Delivery(root=letter.root, kind=letter.kind, via=via, holding=holding)

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
        if self.executor is None:
            self.executor = Executor(self, self, self, self.rules)
        plan = Plan(at=0.0, decisions=decisions)
        return await self.executor.act(plan, await self.executor.notify(plan))


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
    letter = Letter(root=SERVER, kind=MessageKind.WARNING, decision=a_decision())
    (delivery,) = await Silence().deliver([letter], warned=frozenset())
    assert delivery.via == ()


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


MAIL = replace(RULES, delivering_channels=frozenset({"mail"}))


async def test_where_a_channel_reaches_people_an_event_alone_is_no_delivery():
    world = World(reaches=("pager", "event"), rules=MAIL)
    warning = a_decision(action=Action.WARN, before=Book(), book=WARNED)
    (outcome,) = await world.carry_out(warning)
    assert (outcome.result, outcome.detail) == (Result.FAILED, Reason.NOT_DELIVERED.rule)
    assert [one.phase for one in world.written] == [Phase.WATCHING], "only the open alert is noted"


async def test_a_warning_that_one_counting_channel_confirmed_is_remembered_with_all_that_did():
    world = World(reaches=("mail", "event"), rules=MAIL)
    await world.carry_out(a_decision(action=Action.WARN, before=Book(), book=WARNED))
    assert [one.warned_via for one in world.written] == [("mail", "event")]


async def test_that_nobody_was_reached_is_written_into_the_book_once():
    world = World(reaches=())
    before = Book(phase=Phase.NOMINATED, reason="Confirming")
    await world.carry_out(a_decision(action=Action.WARN, before=before, book=WARNED))
    (book,) = world.written
    assert (book.phase, book.reason) == (Phase.NOMINATED, Reason.NOT_DELIVERED.value)
    assert book.message.startswith(Reason.NOT_DELIVERED.rule)

    await world.carry_out(a_decision(action=Action.WARN, before=book, book=WARNED))
    assert len(world.written) == 1


async def test_only_warnings_that_still_run_may_be_sent_again():
    world = World()
    over = a_decision(root=NOTEBOOK, before=WARNED, book=Book())
    await world.carry_out(a_decision(before=WARNED, book=WARNED), over)
    assert world.warned == {SERVER}


OPEN = replace(WARNED, alerts_in=("pager",))
OVER = Book(alerts_in=("pager",))


async def test_an_alert_that_a_warning_opened_stands_in_the_book():
    world = World(reaches=("pager", "event"))
    await world.carry_out(a_decision(action=Action.WARN, before=Book(), book=WARNED))
    assert [one.alerts_in for one in world.written] == [("pager",)]


@pytest.mark.parametrize("action", [Action.CANCEL, Action.NONE])
async def test_an_alert_is_closed_when_the_matter_ends_with_or_without_a_message(action):
    world = World(reaches=("pager", "event"))
    await world.carry_out(a_decision(action=action, before=OPEN, book=OVER))
    (letter,) = world.letters
    assert letter.kind is MessageKind.CANCELLED
    assert letter.only == (frozenset({"pager"}) if action is Action.NONE else None)
    assert [one.alerts_in for one in world.written] == [()]


async def test_an_alert_stays_open_while_the_warning_runs_or_waits_to_be_given_anew():
    world = World(reaches=("pager", "event"))
    again = replace(OPEN, phase=Phase.NOMINATED)
    await world.carry_out(a_decision(before=OPEN, book=OPEN))
    await world.carry_out(a_decision(before=OPEN, book=again))
    assert world.letters == []


async def test_an_end_that_was_not_confirmed_is_sent_until_it_is_also_by_another_process():
    deaf = World(reaches=("event",))
    await deaf.carry_out(a_decision(before=OPEN, book=OVER))
    assert [one.alerts_in for one in deaf.written] == [("pager",)]
    (book,) = deaf.written

    restarted = World(reaches=("pager", "event"))
    await restarted.carry_out(a_decision(before=book, book=book))
    assert [one.alerts_in for one in restarted.written] == [()]
    (book,) = restarted.written
    await restarted.carry_out(a_decision(before=book, book=book))
    assert len(restarted.letters) == 1


async def test_the_alert_of_a_workload_that_is_gone_is_closed_and_once():
    world = World(reaches=("event",))
    await world.carry_out(a_decision(before=OPEN, book=OPEN))
    await world.carry_out()
    world.reaches = ("pager",)
    await world.carry_out()
    await world.carry_out()
    assert [(one.root, one.decision) for one in world.letters] == [(SERVER, None)] * 2

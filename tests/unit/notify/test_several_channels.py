from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest
from msgspec import structs
from support.decisions import NOTEBOOK, SERVER, a_decision
from support.manual_clock import NOON, ManualClock

from gpu_pruner.errors import NotificationError
from gpu_pruner.model import audience as people_to_tell
from gpu_pruner.model.audience import Person
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.letters import Letter
from gpu_pruner.model.orders import Failure, MessageKind, Severity
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.workload import RootRef
from gpu_pruner.notify.channel import Audience, Taking, audience_of
from gpu_pruner.notify.messages import Message
from gpu_pruner.notify.notifier import AT_ONCE, MOST_TRIES, MOST_WAITING, Notifier
from gpu_pruner.resolve.addresses import addresses

WARNED = Book(phase=Phase.WARNED, nominated_at=NOON - 60, warned_at=NOON, pause_at=NOON + 900)
BOTH = frozenset({SERVER, NOTEBOOK})


@dataclass
class Ear:
    """A channel in memory."""

    name: str = "ear"
    timeout_seconds: float | None = 5.0
    holds_alerts: bool = False
    kinds: frozenset[MessageKind] = frozenset(MessageKind)
    deaf: str = ""
    """Why it confirms nothing, while this is set."""
    dead: bool = False
    """Whether it never answers."""
    tried: list[Message] = field(default_factory=list)
    told: list[Message] = field(default_factory=list)
    to: list[str] = field(default_factory=list)

    def takes(self, kind: MessageKind) -> bool:
        return kind in self.kinds

    async def send(self, message: Message, to: Audience) -> str:
        self.tried.append(message)
        if self.dead:
            await asyncio.Event().wait()
        if self.deaf:
            raise NotificationError(self.deaf)
        self.told.append(message)
        self.to.append(to.owner)
        return "heard"

    async def close(self) -> None:
        """Nothing is open."""


def a_notifier(*channels: Ear, patience: float = 5.0) -> Notifier:
    return Notifier(channels, clock=ManualClock(), mode=Mode.SCALE_DOWN, patience=patience)


def a_letter(
    kind: MessageKind = MessageKind.WARNING,
    *,
    root: RootRef = SERVER,
    book: Book = WARNED,
    only: frozenset[str] | None = None,
) -> Letter:
    return Letter(root=root, kind=kind, decision=a_decision(root, book=book), only=only)


async def test_every_channel_hears_every_message_and_is_named_in_the_order_of_the_settings() -> (
    None
):
    mail, event = Ear("mail"), Ear("event")
    deliveries = await a_notifier(mail, event).deliver([a_letter(), a_letter(root=NOTEBOOK)])
    assert [one.root for one in deliveries] == [SERVER, NOTEBOOK]
    assert [one.via for one in deliveries] == [("mail", "event")] * 2
    assert [one.text for one in mail.told] == [one.text for one in event.told]


async def test_a_channel_that_fails_is_told_with_its_reason_and_stops_no_other() -> None:
    mail, event = Ear("mail", deaf="refuses connections"), Ear("event")
    (delivery,) = await a_notifier(mail, event).deliver([a_letter()])
    assert delivery.via == ("event",)
    assert delivery.failures == (Failure(channel="mail", why="refuses connections"),)
    assert delivery.problem == "mail: refuses connections"


async def test_a_channel_that_never_answers_ends_with_its_patience_however_much_there_is() -> None:
    dead, event = Ear("dead", dead=True), Ear("event", timeout_seconds=None)
    letters = [a_letter(root=replace(SERVER, uid=str(number))) for number in range(500)]
    deliveries = await a_notifier(dead, event, patience=0.01).deliver(letters)
    assert {one.via for one in deliveries} == {("event",)}
    whys = {failure.why for one in deliveries for failure in one.failures}
    assert whys <= {"no confirmation within 0 s", "there was no time left for it in this cycle"}
    assert len(dead.tried) <= AT_ONCE


async def test_what_was_not_confirmed_is_sent_again_under_the_same_key_until_it_is() -> None:
    mail, event = Ear("mail", deaf="busy"), Ear("event")
    notifier = a_notifier(mail, event)
    await notifier.deliver([a_letter(MessageKind.PAUSED)])
    (again,) = await notifier.deliver([])
    assert (again.kind, again.via, again.is_repeat) == (MessageKind.PAUSED, (), True)
    mail.deaf = ""
    (heard,) = await notifier.deliver([])
    assert (heard.via, heard.is_repeat) == (("mail",), True)
    assert await notifier.deliver([]) == ()
    assert len({one.key for one in mail.tried}) == 1
    assert (len(mail.tried), len(event.told)) == (3, 1)


async def test_a_warning_is_sent_again_only_while_it_runs() -> None:
    for warned, repeats in ((BOTH, 1), (frozenset(), 0)):
        mail = Ear("mail", deaf="busy")
        notifier = a_notifier(mail)
        await notifier.deliver([a_letter()], warned=BOTH)
        assert len(await notifier.deliver([], warned=warned)) == repeats
        assert await notifier.deliver([], warned=frozenset()) == ()


async def test_news_takes_the_place_of_what_was_not_heard_before() -> None:
    mail = Ear("mail", deaf="busy")
    notifier = a_notifier(mail)
    await notifier.deliver([a_letter()], warned=BOTH)
    (delivery,) = await notifier.deliver([a_letter(MessageKind.CANCELLED)])
    assert (delivery.kind, delivery.is_repeat) == (MessageKind.CANCELLED, False)
    mail.deaf = ""
    await notifier.deliver([])
    assert [one.kind for one in mail.told] == [MessageKind.CANCELLED]


async def test_news_for_one_channel_leaves_what_waits_for_another() -> None:
    mail, pager = Ear("mail", deaf="busy"), Ear("pager", deaf="busy")
    notifier = a_notifier(mail, pager)
    await notifier.deliver([a_letter(MessageKind.PAUSED)])
    mail.deaf = pager.deaf = ""
    only = frozenset({"pager"})
    new, repeat = await notifier.deliver([a_letter(MessageKind.CANCELLED, only=only)])
    assert (new.via, new.kind) == (("pager",), MessageKind.CANCELLED)
    assert (repeat.via, repeat.kind) == (("mail",), MessageKind.PAUSED)


async def test_old_news_is_given_up() -> None:
    mail = Ear("mail", deaf="gone for good")
    notifier = a_notifier(mail)
    await notifier.deliver([a_letter(MessageKind.PAUSED)])
    tries = 1
    while await notifier.deliver([]):
        tries += 1
    assert tries == MOST_TRIES


async def test_what_waits_is_bounded() -> None:
    mail = Ear("mail", deaf="gone for good")
    notifier = a_notifier(mail)
    letters = [
        a_letter(MessageKind.PAUSED, root=replace(SERVER, uid=str(number)))
        for number in range(MOST_WAITING + 10)
    ]
    await notifier.deliver(letters)
    assert len(await notifier.deliver([])) == MOST_WAITING


async def test_a_channel_gets_only_the_kinds_that_it_takes() -> None:
    mail, event = Ear("mail", kinds=frozenset({MessageKind.PAUSED})), Ear("event")
    first, second = await a_notifier(mail, event).deliver(
        [a_letter(), a_letter(MessageKind.PAUSED, root=NOTEBOOK)]
    )
    assert (first.via, second.via) == (("event",), ("mail", "event"))


async def test_who_does_not_lead_any_more_tells_nobody() -> None:
    mail, leading = Ear("mail"), [True, False]
    notifier = Notifier(
        [mail], clock=ManualClock(), mode=Mode.SCALE_DOWN, may_tell=lambda: leading.pop(0)
    )
    first, second = await notifier.deliver([a_letter(), a_letter(root=NOTEBOOK)])
    assert (first.via, second.via) == (("mail",), ())
    assert [one.root for one in mail.tried] == [SERVER]


async def test_of_a_workload_that_is_gone_only_the_end_is_told_and_where_it_is_open() -> None:
    mail, pager = Ear("mail"), Ear("pager", holds_alerts=True)
    only = frozenset({"pager"})
    gone = Letter(root=SERVER, kind=MessageKind.CANCELLED, decision=None, only=only)
    (delivery,) = await a_notifier(mail, pager).deliver([gone])
    assert (delivery.via, delivery.holding) == (("pager",), ("pager",))
    assert (mail.told, pager.told[0].text) == (
        [],
        "The workload is gone, so its idle warning is void.",
    )


async def test_a_letter_for_a_channel_that_is_no_longer_set_reaches_nobody() -> None:
    only = frozenset({"former"})
    (delivery,) = await a_notifier(Ear("mail")).deliver([a_letter(only=only)])
    assert (delivery.via, delivery.failures) == ((), ())


@pytest.mark.parametrize(
    ("people", "owner"),
    [
        (("alice", "bob@example.org", "carol@example.org"), "bob@example.org"),
        (("alice", "bob"), "alice, bob"),
        ((), ""),
    ],
)
def test_the_first_with_an_address_is_told_else_all_by_name(
    people: tuple[str, ...], owner: str
) -> None:
    told = addresses(", ".join(people)).people
    audience = people_to_tell.Audience(people=tuple(Person(one, "on its root") for one in told))
    decision = a_decision()
    workload = replace(decision.workload, audience=audience)
    assert audience_of(structs.replace(decision, workload=workload)) == Audience(owner)


def test_the_least_severity_leaves_out_what_asks_for_nothing() -> None:
    everything = frozenset(MessageKind)
    assert [one for one in MessageKind if one in Taking(everything, Severity.WARNING)] == [
        MessageKind.WARNING,
        MessageKind.REMINDER,
    ]
    assert all(one in Taking(everything, Severity.INFO) for one in MessageKind)
    assert MessageKind.PAUSED not in Taking(frozenset({MessageKind.WARNING}), Severity.INFO)

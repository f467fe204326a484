from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from structlog.testing import capture_logs
from support.decisions import a_decision
from support.manual_clock import NOON, ManualClock
from support.memory_cluster import Json, MemoryCluster, tree

from gpu_pruner.errors import ClusterError, Forbidden, Throttled
from gpu_pruner.kube.resources import EVENTS, NAMESPACES
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.letters import Letter
from gpu_pruner.model.orders import Delivery, MessageKind
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.rules import Mode
from gpu_pruner.notify.event import EventChannel
from gpu_pruner.notify.notifier import Notifier

WARNED = Book(
    phase=Phase.WARNED,
    nominated_at=NOON - 60.4,
    warned_at=NOON,
    pause_at=NOON + 900,
    object_name="deployment-server-uidd",
)


class World:
    def __init__(self, *, mode: Mode = Mode.SCALE_DOWN) -> None:
        self.cluster = MemoryCluster()
        self.cluster.put(NAMESPACES, {"metadata": {"name": "team-a", "uid": "uid-space"}})
        self.clock = ManualClock()
        self.mode = mode
        self.start()

    def start(self) -> None:
        """Begin anew, as after a crash: with nothing in memory."""
        self.notifier = Notifier([EventChannel(self.cluster)], clock=self.clock, mode=self.mode)

    async def deliver(self, decision: Decision, kind: MessageKind) -> Delivery:
        letter = Letter(root=decision.workload.root, kind=kind, decision=decision)
        delivery, *repeats = await self.notifier.deliver([letter])
        assert repeats == []
        return delivery

    @property
    def events(self) -> list[dict[str, Json]]:
        return [self.cluster.stored(EVENTS, "team-a", name) for name in self.cluster.names(EVENTS)]


async def test_a_stored_event_on_the_root_is_a_delivery() -> None:
    world = World()
    delivery = await world.deliver(a_decision(book=WARNED), MessageKind.WARNING)
    assert delivery.via == ("event",)
    assert delivery.problem == ""
    (event,) = world.events
    assert tree(event["involvedObject"]) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "team-a",
        "name": "server",
        "uid": "uid-d",
    }
    assert (event["reason"], event["type"]) == ("GpuIdleWarning", "Warning")
    assert "will be paused at 2026-01-31T12:15:00Z" in str(event["message"])


@pytest.mark.parametrize("kind", [MessageKind.CANCELLED, MessageKind.PAUSED, MessageKind.RESTORED])
async def test_news_that_asks_for_nothing_are_normal_events(kind: MessageKind) -> None:
    world = World()
    await world.deliver(a_decision(book=WARNED), kind)
    assert [event["type"] for event in world.events] == ["Normal"]


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("may not create events", status=403),
        Throttled("slow down", retry_after_seconds=5),
        ClusterError("no answer"),
    ],
)
async def test_an_event_that_is_not_stored_reaches_nobody(error: ClusterError) -> None:
    world = World()
    world.cluster.failures["create", "events"] = error
    delivery = await world.deliver(a_decision(book=WARNED), MessageKind.WARNING)
    assert delivery.via == ()
    assert str(error) in delivery.problem


async def test_a_crash_before_the_book_is_written_repeats_into_the_same_event() -> None:
    world = World()
    await world.deliver(a_decision(book=WARNED), MessageKind.WARNING)
    world.clock.at += 60
    world.start()
    read_back = replace(WARNED, nominated_at=NOON - 60, warned_at=NOON + 60, pause_at=NOON + 960)
    delivery = await world.deliver(a_decision(book=read_back), MessageKind.WARNING)
    assert delivery.via == ("event",)
    (event,) = world.events
    assert "will be paused at 2026-01-31T12:16:00Z" in str(event["message"])
    assert event["firstTimestamp"] == "2026-01-31T12:00:00Z"
    assert event["lastTimestamp"] == "2026-01-31T12:01:00Z"


async def test_an_old_deadline_that_cannot_be_corrected_is_no_delivery() -> None:
    world = World()
    await world.deliver(a_decision(book=WARNED), MessageKind.WARNING)
    world.cluster.failures["patch", "events"] = Forbidden("may not patch events", status=403)
    delivery = await world.deliver(a_decision(book=WARNED), MessageKind.WARNING)
    assert delivery.via == ()


async def test_another_idle_spell_kind_or_mode_is_another_event() -> None:
    world = World()
    await world.deliver(a_decision(book=WARNED), MessageKind.WARNING)
    later = replace(WARNED, nominated_at=NOON + 7200)
    await world.deliver(a_decision(book=later), MessageKind.WARNING)
    await world.deliver(a_decision(book=WARNED), MessageKind.REMINDER)
    world.mode = Mode.DRY_RUN
    world.start()
    await world.deliver(a_decision(book=WARNED), MessageKind.WARNING)
    assert len(world.events) == 4


async def test_a_cancelled_warning_is_about_the_book_as_it_was() -> None:
    world = World()
    cancelled = a_decision(before=WARNED, book=Book())
    await world.deliver(cancelled, MessageKind.CANCELLED)
    later = a_decision(before=replace(WARNED, nominated_at=NOON + 7200), book=Book())
    await world.deliver(later, MessageKind.CANCELLED)
    assert len(world.events) == 2


@pytest.mark.parametrize("mode", Mode)
async def test_every_message_leaves_a_log_line(mode: Mode) -> None:
    world = World(mode=mode)
    with capture_logs() as lines:
        await world.deliver(a_decision(book=WARNED), MessageKind.WARNING)
    (line,) = lines
    assert (line["ref"], line["kind"], line["via"]) == (
        "deployment/team-a/server",
        "warning",
        ["event"],
    )


async def test_what_is_only_warned_about_is_told_in_the_words_of_a_rehearsal() -> None:
    world = World()
    decision = a_decision(book=WARNED)
    warned = structs.replace(decision, workload=replace(decision.workload, warn_only=True))
    await world.deliver(warned, MessageKind.WARNING)
    (event,) = world.events
    assert str(event["message"]).startswith("Rehearsal: ")
    assert "would be paused at 2026-01-31T12:15:00Z" in str(event["message"])

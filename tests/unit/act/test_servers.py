"""A JupyterHub server is stopped only as what was decided on, started only as what we stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.acting import BOOK
from support.manual_clock import NOON, ManualClock
from support.memory_cluster import Json, MemoryCluster
from support.memory_hub import MemoryHub

from gpu_pruner.act.actor import Actor
from gpu_pruner.errors import HubError
from gpu_pruner.kube.gpuworkloads import name_for
from gpu_pruner.kube.resources import GPUWORKLOADS, NAMESPACES, PODS
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.annotations import EXEMPT, HOLD
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.cluster import Bookkeeping
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.model.orders import Outcome, PauseOrder, Result
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.snapshot import Workload
from gpu_pruner.model.workload import GpuPod, OwnerObject, PodPhase, PodRecord, RootRef

SPACE = "team-a"
ALICE = ServerName(SPACE, "alice")
ROOT = RootRef("JupyterServer", SPACE, "jupyter-alice", "hub.jupyter.org", ALICE.uid)


def a_pod(name: str = "jupyter-alice", *, uid: str = "uid-p", **meta: Json) -> dict[str, Json]:
    notes: dict[str, Json] = {jupyterhub.USERNAME: "alice"}
    told = meta.pop("annotations", {})
    assert isinstance(told, dict)
    head: dict[str, Json] = {"name": name, "namespace": SPACE, "uid": uid}
    return {
        "metadata": head | {"annotations": notes | told} | meta,
        "spec": {},
        "status": {"phase": "Running"},
    }


class World:
    """Alice's server, warned of and due, with its pod; and an actor on it."""

    def __init__(self, *, mode: Mode = Mode.SCALE_DOWN) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster()
        self.cluster.put(NAMESPACES, {"metadata": {"name": SPACE, "uid": "uid-space"}})
        self.cluster.put(PODS, a_pod())
        self.hub = MemoryHub()
        self.decided_at = self.hub.runs(ALICE)
        self.actor = Actor(
            self.cluster,
            clock=self.clock,
            mode=mode,
            protected=frozenset({"kube-system"}),
            hubs=[self.hub],
        )

    async def warned(self) -> Book:
        kept = await self.actor._books.create(ROOT)
        named = replace(
            BOOK, object_name=kept.book.object_name, resource_version=kept.book.resource_version
        )
        await self.actor._books.write_now(ROOT, named)
        self.cluster.writes.clear()
        return (await self.kept()).book

    async def kept(self) -> Bookkeeping:
        found = await self.actor._books.read(ROOT)
        assert found is not None
        return found

    def order(self) -> PauseOrder:
        pod = PodRecord(
            uid="uid-p", namespace=SPACE, name="jupyter-alice", phase=PodPhase.RUNNING, created_at=0
        )
        owner = OwnerObject(root=ROOT, resource_version=self.decided_at.started)
        known = Workload(root=ROOT, pods=(GpuPod(record=pod),), owner=owner, lever=ROOT.kind)
        return PauseOrder(root=ROOT, decision_id="d-1", why="No GPU work.", decided_on=known)

    async def pause(self, book: Book) -> Outcome:
        return await self.actor.pause(self.order(), book, verified_at=NOON, max_age_seconds=15)

    async def paused(self) -> None:
        outcome = await self.pause(await self.warned())
        assert outcome.result is Result.DONE
        self.cluster.remove(PODS, SPACE, "jupyter-alice")
        self.hub.asked.clear()


async def test_a_pause_is_written_down_before_the_hub_is_asked() -> None:
    world = World()
    book = await world.warned()
    world.hub.failures["stop"] = HubError("it did not answer in time")

    unknown = await world.pause(book)

    assert (unknown.result, unknown.detail) == (Result.FAILED, "it did not answer in time")
    now = (await world.kept()).book
    assert (now.phase, now.paused_at, now.warned_at) == (Phase.PAUSING, NOON, BOOK.warned_at)
    assert now.pause is not None
    assert (now.pause.lever, now.pause.uid, now.pause.decision) == (ROOT.kind, ROOT.uid, "d-1")
    assert now.pause.former == {
        "hub.jupyter.org/username": "alice",
        "hub.jupyter.org/servername": "",
        "hub.jupyter.org/started": world.decided_at.started,
    }


async def test_a_server_is_stopped_once_and_nothing_in_the_cluster_is_changed() -> None:
    world = World()

    outcome = await world.pause(await world.warned())

    assert (outcome.result, outcome.detail) == (
        Result.DONE,
        "the server of alice is being stopped",
    )
    assert world.hub.asked == [("stop", ALICE)]
    assert {one.plural for one in world.cluster.writes} == {"gpuworkloads"}


async def test_its_book_is_owned_by_nobody() -> None:
    world = World()
    await world.warned()

    stored = world.cluster.stored(GPUWORKLOADS, SPACE, name_for(ROOT))

    assert "ownerReferences" not in stored["metadata"]
    assert name_for(ROOT) == f"jupyterserver-jupyter-alice-{ROOT.uid[:8]}"


def stops(world: World) -> None:
    del world.hub.active[ALICE]


REFUSED: dict[str, tuple[Callable[[World], object], str]] = {
    "no pod": (lambda it: it.cluster.remove(PODS, SPACE, "jupyter-alice"), "has no pod any more"),
    "two pods": (
        lambda it: it.cluster.put(PODS, a_pod("other", uid="uid-o")),
        "jupyter-alice and other both say to be this server",
    ),
    "a pod on its way out": (
        lambda it: it.cluster.put(PODS, a_pod(deletionTimestamp="2026-01-31T12:00:00Z")),
        "being deleted",
    ),
    "stopped by its user": (stops, "does not run"),
    "being started": (lambda it: it.hub.runs(ALICE, ready=False, pending="spawn"), "spawn"),
    "being stopped": (lambda it: it.hub.runs(ALICE, ready=False, pending="stop"), "stop"),
    "a user whom the Hub does not know": (
        lambda it: setattr(it.hub, "users", ()),
        "knows no such user",
    ),
    "an exemption": (
        lambda it: it.cluster.put(PODS, a_pod(annotations={EXEMPT: "true"})),
        "gpu-pruner.io/exempt=true on JupyterServer jupyter-alice",
    ),
    "a hold": (lambda it: it.cluster.put(PODS, a_pod(annotations={HOLD: "true"})), HOLD),
    "no Hub": (lambda it: setattr(it.hub, "namespace", "team-b"), "no JupyterHub is set"),
}


@pytest.mark.parametrize(("change", "why"), REFUSED.values(), ids=REFUSED.keys())
async def test_what_speaks_against_it_at_the_last_look_leaves_everything_as_it_is(
    change: Callable[[World], object], why: str
) -> None:
    world = World()
    book = await world.warned()
    change(world)

    outcome = await world.pause(book)

    assert outcome.result is Result.REFUSED
    assert why in outcome.detail
    assert world.hub.asked == []
    assert (await world.kept()).book == book


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda it: it.hub.runs(ALICE), "started anew since the decision"),
        (lambda it: it.cluster.put(PODS, a_pod(uid="uid-new")), "its pod is another one"),
    ],
)
async def test_another_start_than_the_one_decided_on_is_decided_anew(
    change: Callable[[World], object], why: str
) -> None:
    world = World()
    book = await world.warned()
    change(world)

    outcome = await world.pause(book)

    assert outcome.result is Result.CONFLICT
    assert why in outcome.detail
    assert world.hub.asked == []


@pytest.mark.parametrize("happens", [lambda it: it.hub.runs(ALICE), stops])
async def test_who_restarts_or_stops_it_between_the_book_and_the_stop_wins(
    happens: Callable[[World], object],
) -> None:
    world = World()
    book = await world.warned()
    world.hub.before[2] = lambda: happens(world)

    outcome = await world.pause(book)

    assert outcome.result is Result.CONFLICT
    assert world.hub.asked == []
    now = (await world.kept()).book
    assert replace(now, resource_version=book.resource_version) == book


@pytest.mark.parametrize(("status", "phase"), [(403, Phase.WARNED), (500, Phase.PAUSING)])
async def test_a_refused_stop_is_taken_back_and_an_unclear_one_is_not(
    status: int, phase: Phase
) -> None:
    world = World()
    book = await world.warned()
    world.hub.failures["stop"] = HubError("no", status=status)

    outcome = await world.pause(book)

    assert outcome.result is Result.FAILED
    assert (await world.kept()).book.phase is phase


@pytest.mark.parametrize("look", [1, 2])
async def test_evidence_that_grew_old_meanwhile_stops_nothing(look: int) -> None:
    world = World()
    book = await world.warned()
    world.hub.before[look] = lambda: setattr(world.clock, "at", NOON + 60)

    outcome = await world.pause(book)

    assert outcome.result is Result.REFUSED
    assert world.hub.asked == []
    assert (await world.kept()).book.phase is Phase.WARNED


async def test_a_dry_run_asks_for_nothing_and_writes_nothing() -> None:
    world = World(mode=Mode.DRY_RUN)

    outcome = await world.actor.pause(replace(world.order(), decided_on=None))

    assert (outcome.result, outcome.detail) == (
        Result.DRY_RUN,
        "the server of alice would be stopped",
    )
    assert (world.hub.asked, world.cluster.writes) == ([], [])


async def test_a_person_stops_and_starts_it_by_the_name_of_its_pod() -> None:
    world = World()
    named = replace(ROOT, uid="")
    order = PauseOrder(root=named, decision_id="manual-1", why="maintenance", by="bob")
    assert (await world.actor.pause(order)).result is Result.DONE
    world.cluster.remove(PODS, SPACE, "jupyter-alice")

    outcome = await world.actor.restore(named, by="bob", why="it is over")

    assert outcome.result is Result.DONE
    assert outcome.detail.startswith("the server of alice is being started, with the options")
    assert world.hub.asked == [("stop", ALICE), ("start", ALICE)]
    assert (await world.kept()).book.phase is Phase.RESTORING


async def test_without_the_gpuworkload_kind_nothing_is_stopped() -> None:
    world = World()
    world.cluster.missing_kinds.add("gpuworkloads")

    outcome = await world.actor.pause(replace(world.order(), decided_on=None))

    assert outcome.result is Result.REFUSED
    assert world.hub.asked == []


async def test_the_controller_gives_back_what_it_stopped() -> None:
    world = World()
    await world.paused()

    outcome = await world.actor.restore(ROOT, by="gpu-pruner", why="it is kept")

    assert outcome.result is Result.DONE
    assert world.hub.asked == [("start", ALICE)]
    assert (await world.kept()).book.phase is Phase.PAUSING  # its own books are the loop's


async def test_what_its_user_started_already_is_left_alone() -> None:
    world = World()
    await world.paused()
    world.hub.runs(ALICE)

    outcome = await world.actor.restore(ROOT, by="bob", why="")

    assert (outcome.result, world.hub.asked) == (Result.DONE, [])
    assert "somebody started" in outcome.detail


async def test_what_is_still_stopping_is_tried_again_later() -> None:
    world = World()
    await world.paused()
    world.hub.runs(ALICE, ready=False, pending="stop")

    outcome = await world.actor.restore(ROOT, by="bob", why="")

    assert (outcome.result, world.hub.asked) == (Result.REFUSED, [])


def forged(book: Book) -> Book:
    assert book.pause is not None
    former = {**book.pause.former, jupyterhub.USERNAME: "bob"}
    return replace(book, pause=replace(book.pause, former=former))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda book: replace(book, phase=Phase.WATCHING), id="a pause that is over"),
        pytest.param(lambda book: replace(book, pause=None), id="no record"),
        pytest.param(forged, id="a record that names another user"),
    ],
)
async def test_nothing_is_started_that_we_did_not_stop(change: Callable[[Book], Book]) -> None:
    world = World()
    await world.paused()
    await world.actor._books.write_now(ROOT, change((await world.kept()).book))

    outcome = await world.actor.restore(ROOT, by="bob", why="")

    assert outcome.result is Result.REFUSED
    assert "no record that it was stopped by us" in outcome.detail
    assert world.hub.asked == []

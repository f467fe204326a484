"""What a JupyterHub says, laid over what the API server says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from support.manual_clock import NOON
from support.memory_hub import MemoryHub

from gpu_pruner.errors import HubError
from gpu_pruner.jupyterhub.answers import HubServer
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.annotations import EXEMPT, PAUSED
from gpu_pruner.model.book import Book, PauseRecord, Phase
from gpu_pruner.model.cluster import Bookkeeping, ClusterView
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import OwnerObject, PodPhase, PodRecord, RootRef
from gpu_pruner.observe.hubs import HubWatch
from gpu_pruner.observe.servers import with_servers
from gpu_pruner.resolve.annotations import is_record_of
from gpu_pruner.resolve.owners import root_of

SPACE = "team-a"
ALICE = ServerName(SPACE, "alice")
ROOT = RootRef("JupyterServer", SPACE, "jupyter-alice", "hub.jupyter.org", ALICE.uid)
FIRST, SECOND = "2026-01-31T12:00:00.5Z", "2026-01-31T13:00:00.5Z"
RUNNING = HubServer(started=FIRST, ready=True)
STOPPING = HubServer(started=FIRST, ready=False, pending="stop")
STARTING = HubServer(started=SECOND, ready=False, pending="spawn")
RESTARTED = HubServer(started=SECOND, ready=True)


def pod(name: str = "jupyter-alice", **more: object) -> PodRecord:
    facts = {
        "uid": f"uid-{name}",
        "namespace": SPACE,
        "phase": PodPhase.RUNNING,
        "created_at": 0.0,
        "requests": {"nvidia.com/gpu": 1},
        "server": ALICE,
        **more,
    }
    return PodRecord(name=name, **facts)


def kept(phase: Phase, *, root: RootRef = ROOT) -> Bookkeeping:
    record = PauseRecord(
        lever="JupyterServer",
        replicas=None,
        uid=ROOT.uid,
        generation=0,
        at=NOON,
        decision="d-1",
        why="",
        former={jupyterhub.USERNAME: "alice", jupyterhub.STARTED: FIRST},
    )
    return Bookkeeping(root=root, book=Book(phase=phase, pause=record))


def seen(
    server: HubServer | None, *pods: PodRecord, book: Bookkeeping | None = None
) -> ClusterView:
    view = ClusterView(pods=pods, books={ROOT.uid: book} if book else {})
    return with_servers(view, {SPACE: {} if server is None else {ALICE: server}})


def owner(view: ClusterView) -> OwnerObject:
    return view.owners[ROOT.uid]


def reason(view: ClusterView) -> Reason | None:
    """Return why the walk from the first pod ends in something that is not paused."""
    return root_of(view.pods[0], view.owners, missing_kinds=frozenset()).obstacle


def test_a_running_server_is_the_root_of_its_pod() -> None:
    view = seen(RUNNING, pod(annotations={EXEMPT: "true"}, labels={EXEMPT: "false"}))

    found = root_of(view.pods[0], view.owners, missing_kinds=frozenset())

    assert (found.ref, found.obstacle) == (ROOT, None)
    assert found.owner is not None
    assert (found.owner.halted, found.owner.is_ready) == (False, True)
    assert found.owner.resource_version == FIRST
    assert found.owner.annotations == {EXEMPT: "true"}
    assert found.owner.labels == {EXEMPT: "false"}


def test_every_start_of_a_server_is_the_same_root() -> None:
    uids = {owner(seen(one, pod())).root.uid for one in (RUNNING, RESTARTED)}
    others = {
        ServerName(SPACE, "alice", "gpu").uid,
        ServerName(SPACE, "bob").uid,
        ServerName("team-b", "alice").uid,
        ServerName(SPACE, 'alice", "gpu').uid,
    }

    assert uids == {ROOT.uid}
    assert len(others | uids) == 5


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(pod(server=None), id="no-word-of-a-hub"),
        pytest.param(
            pod(namespace="team-b", server=ServerName("team-b", "alice")), id="no-hub-there"
        ),
    ],
)
def test_a_pod_of_no_hub_stays_a_bare_pod(one: PodRecord) -> None:
    view = seen(RUNNING, one)

    assert view.pods == (one,)
    assert reason(view) is Reason.BARE_POD


def test_without_hubs_nothing_changes() -> None:
    view = ClusterView(pods=(pod(),))
    assert with_servers(view, {}) is view


def test_a_hub_that_does_not_answer_leaves_its_servers_out_of_sight() -> None:
    view = ClusterView(pods=(pod(),), books={ROOT.uid: kept(Phase.PAUSED)})

    found = with_servers(view, {SPACE: None})

    assert reason(found) is Reason.OWNER_MISSING
    assert found.owners == {}


def test_without_an_answer_a_paused_server_is_not_said_to_be_stopped() -> None:
    view = ClusterView(books={ROOT.uid: kept(Phase.PAUSED)})

    assert with_servers(view, {SPACE: None}).owners == {}


def test_a_pod_whose_server_the_hub_does_not_count_as_active_proves_nothing() -> None:
    view = seen(None, pod(), book=kept(Phase.PAUSING))

    assert reason(view) is Reason.OWNER_MISSING


def test_a_pod_that_ended_holds_no_server_up() -> None:
    view = seen(None, pod(phase=PodPhase.FAILED), book=kept(Phase.PAUSED))

    assert owner(view).halted


@pytest.mark.parametrize(
    ("server", "phase", "halted", "ready", "ours"),
    [
        pytest.param(RUNNING, Phase.PAUSING, False, True, False, id="the-stop-never-arrived"),
        pytest.param(STOPPING, Phase.PAUSING, True, False, True, id="stopping"),
        pytest.param(None, Phase.PAUSING, True, False, True, id="stopped"),
        pytest.param(None, Phase.PAUSED, True, False, True, id="stays-stopped"),
        pytest.param(STARTING, Phase.WARNED, False, False, False, id="restarting"),
        pytest.param(RESTARTED, Phase.PAUSED, False, True, True, id="its-user-started-it"),
        pytest.param(RESTARTED, Phase.PAUSING, False, True, True, id="stopped-and-started-at-once"),
        pytest.param(STARTING, Phase.RESTORING, False, False, False, id="coming-back"),
        pytest.param(RESTARTED, Phase.RESTORING, False, True, False, id="back"),
        pytest.param(None, Phase.RESTORING, True, False, False, id="its-start-failed"),
        pytest.param(None, Phase.WARNED, True, False, False, id="its-user-stopped-it"),
    ],
)
def test_what_is_remembered_is_told_from_what_is(
    *, server: HubServer | None, phase: Phase, halted: bool, ready: bool, ours: bool
) -> None:
    found = owner(seen(server, book=kept(phase)))

    assert (found.halted, found.is_ready) == (halted, ready)
    told = found.annotations.get(PAUSED)
    assert is_record_of(told, uid=ROOT.uid, decision="d-1") is ours
    assert (told is not None) is ours


@pytest.mark.parametrize("pods", [(), (pod(),)])
@pytest.mark.parametrize("phase", [Phase.PAUSING, Phase.PAUSED])
def test_a_start_that_is_not_over_ends_no_pause(phase: Phase, pods: tuple[PodRecord, ...]) -> None:
    view = seen(STARTING, *pods, book=kept(phase))

    assert view.owners == {}


def test_a_pod_cannot_claim_to_be_paused_by_us() -> None:
    found = owner(seen(RUNNING, pod(annotations={PAUSED: '{"uid":"x"}'})))

    assert PAUSED not in found.annotations


def test_a_server_keeps_the_name_that_its_book_has() -> None:
    older = replace(ROOT, name="jupyter-alice-2d1")

    view = seen(RUNNING, pod(), book=kept(Phase.WARNED, root=older))

    assert owner(view).root == older
    assert reason(view) is None


def test_a_book_in_another_namespace_is_no_word_about_it() -> None:
    view = ClusterView(
        pods=(pod(),), books={ROOT.uid: kept(Phase.WARNED, root=replace(ROOT, namespace="team-b"))}
    )

    found = with_servers(view, {SPACE: {ALICE: RUNNING}, "team-b": {}})

    assert owner(found).root == ROOT


def test_pods_that_say_to_be_one_server_are_one_workload() -> None:
    view = seen(RUNNING, pod(), pod("forged"))

    roots = {root_of(one, view.owners, missing_kinds=frozenset()).ref for one in view.pods}

    assert roots == {replace(ROOT, name="forged")}


async def test_a_hub_is_asked_at_every_look_and_its_failure_is_told_once() -> None:
    hub = MemoryHub()
    hub.runs(ALICE)
    watch = HubWatch([hub])
    view = ClusterView(pods=(pod(),))

    assert watch.laid_over(view).owners == {}
    await watch.look()
    assert ROOT.uid in watch.laid_over(view).owners

    hub.failures["servers"] = HubError("it refuses the token (403)", status=403)
    with capture_logs() as logs:
        for _ in range(3):
            await watch.look()
        assert watch.laid_over(view).owners == {}
        hub.failures.clear()
        await watch.look()
    assert ROOT.uid in watch.laid_over(view).owners
    said = [log["event"] for log in logs]
    assert said == ["a JupyterHub is out of sight", "a JupyterHub is in sight again"]

"""The watch shows what the API server holds, and never takes silence for absence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from support.manual_clock import NOON, ManualClock
from support.scripted_api import Reply, ScriptedApi, Watch, event, eventually, page, status, thing
from support.story import told_rules

from gpu_pruner.decide.breaker import find_breakers
from gpu_pruner.errors import ClusterError, Forbidden
from gpu_pruner.kube.resources import (
    DEPLOYMENTS,
    GOVERNORS,
    GPUWORKLOADS,
    NAMESPACES,
    NODES,
    NOTEBOOKS,
    OWNERS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from gpu_pruner.kube.throttle import Pace
from gpu_pruner.model.book import Phase
from gpu_pruner.model.signals import Period
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.observe.cluster import ClusterWatch

WATCHED = (PODS, NODES, NAMESPACES, *OWNERS, *GOVERNORS, GPUWORKLOADS)
GPU_SPEC = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
QUICK = Pace(first=0.001, longest=0.005, absent=0.005, brief=0.0)


def empty_cluster() -> ScriptedApi:
    return ScriptedApi(lists={one.path(): [page([])] for one in WATCHED})


@asynccontextmanager
async def watching(
    api: ScriptedApi, folder: Path, *, clock: ManualClock | None = None
) -> AsyncIterator[ClusterWatch]:
    client = await api.client(folder, clock=clock or ManualClock())
    watch = ClusterWatch(client, clock=clock or ManualClock(), pace=QUICK)
    try:
        yield watch
    finally:
        await watch.close()
        await client.close()


def gpuworkload(name: str, uid: str, **parts: object) -> dict[str, object]:
    root = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "uid": uid}
    made: dict[str, object] = {
        "metadata": {"name": name, "namespace": "team-a", "uid": f"{name}-uid"},
        "spec": {"rootRef": root},
    }
    return made | parts


async def test_shows_every_kind(tmp_path: Path) -> None:
    api = empty_cluster()
    pods = [thing("p-gpu", spec=GPU_SPEC), thing("p-cpu", spec={"containers": [{}]})]
    api.lists[PODS.path()] = [page(pods)]
    api.lists[NODES.path()] = [page([thing("node-1")])]
    api.lists[NAMESPACES.path()] = [page([thing("team-a")])]
    for resource in (REPLICASETS, DEPLOYMENTS, STATEFULSETS, NOTEBOOKS):
        api.lists[resource.path()] = [page([thing(resource.plural, spec={"replicas": 1})])]
    api.lists[GPUWORKLOADS.path()] = [page([gpuworkload("w", "deployments")])]
    async with api, watching(api, tmp_path) as watch:
        await watch.start()
        view = watch.view()
    assert [pod.name for pod in view.pods] == ["p-gpu"]
    assert set(view.nodes) == {"node-1"}
    assert set(view.namespaces) == {"team-a"}
    assert {uid: one.root.kind for uid, one in view.owners.items()} == {
        "replicasets": "ReplicaSet",
        "deployments": "Deployment",
        "statefulsets": "StatefulSet",
        "notebooks": "Notebook",
    }
    assert set(view.books) == {"deployments"}
    assert view.books_available
    assert view.missing_kinds == frozenset()
    assert view.stale_seconds == 0.0


async def test_a_change_shows_in_the_next_view_and_not_in_the_last(tmp_path: Path) -> None:
    api = empty_cluster()
    api.watches[PODS.path()] = [Watch([event("ADDED", thing("p", spec=GPU_SPEC))])]
    async with api, watching(api, tmp_path) as watch:
        await watch.start()
        before = watch.view()
        kept = before.pods
        await eventually(lambda: len(watch.view().pods) == 1)
        assert before.pods is kept
        assert len(watch.view().pods) == 1


@pytest.mark.parametrize("resource", [NOTEBOOKS, GPUWORKLOADS, STATEFULSETS])
@pytest.mark.parametrize("code", [403, 404])
async def test_a_kind_that_is_not_to_be_had_is_named_and_found_later(
    tmp_path: Path, resource: Resource, code: int
) -> None:
    api = empty_cluster()
    api.lists[resource.path()] = [status(code, "no")]
    async with api, watching(api, tmp_path) as watch:
        await watch.start()
        assert watch.view().missing_kinds == {resource.kind}
        assert watch.view().books_available is (resource is not GPUWORKLOADS)
        api.lists[resource.path()] = [page([])]
        await eventually(lambda: watch.view().missing_kinds == frozenset())
        assert watch.view().books_available


@pytest.mark.parametrize("resource", [PODS, NODES, NAMESPACES])
async def test_without_the_right_to_see_what_everything_rests_on_it_does_not_start(
    tmp_path: Path, resource: Resource
) -> None:
    api = empty_cluster()
    api.lists[resource.path()] = [status(403, "you cannot list this")]
    async with api, watching(api, tmp_path) as watch:
        with pytest.raises(Forbidden, match="you cannot list this"):
            await watch.start()


async def test_a_server_that_is_down_ends_the_start_with_a_sentence_and_no_tasks(
    tmp_path: Path,
) -> None:
    api = empty_cluster()
    await api.open()
    async with watching(api, tmp_path) as watch:
        await api.close()
        before = asyncio.all_tasks()
        with pytest.raises(ClusterError, match="cannot be reached: Connection refused"):
            await watch.start()
        assert asyncio.all_tasks() == before
        await api.open()
        await watch.start()
        assert watch.view().pods == ()
        await watch.close()
        await api.close()


async def test_unknown_books_are_not_blank_books(tmp_path: Path) -> None:
    api = empty_cluster()
    api.lists[GPUWORKLOADS.path()] = [status(500, "etcd")]
    async with api, watching(api, tmp_path) as watch:
        with pytest.raises(ClusterError, match="etcd"):
            await watch.start()


async def test_there_is_no_view_before_the_start(tmp_path: Path) -> None:
    async with empty_cluster() as api, watching(api, tmp_path) as watch:
        with pytest.raises(ClusterError, match="not being watched yet"):
            watch.view()


async def test_what_was_seen_stays_while_the_server_is_down_and_grows_stale(
    tmp_path: Path,
) -> None:
    api = empty_cluster()
    api.lists[PODS.path()] = [page([thing("p", spec=GPU_SPEC)])]
    clock = ManualClock()
    async with watching_opened(api, tmp_path, clock) as watch:
        await watch.start()
        await eventually(lambda: all(one._following for one in watch._copies.all))
        await api.close()
        await eventually(lambda: not any(one._following for one in watch._copies.all))
        clock.at = NOON + 500
        assert watch.view().stale_seconds == 500.0
        assert [pod.name for pod in watch.view().pods] == ["p"]


@asynccontextmanager
async def watching_opened(
    api: ScriptedApi, folder: Path, clock: ManualClock
) -> AsyncIterator[ClusterWatch]:
    await api.open()
    async with watching(api, folder, clock=clock) as watch:
        yield watch


async def test_rights_that_are_taken_away_make_the_view_stale(tmp_path: Path) -> None:
    api = empty_cluster()
    api.lists[NAMESPACES.path()] = [page([]), status(403)]
    api.watches[NAMESPACES.path()] = [status(403)]
    clock = ManualClock()
    async with api, watching(api, tmp_path, clock=clock) as watch:
        await watch.start()
        await eventually(lambda: api.count(NAMESPACES.path(), watch=False) > 1)
        await eventually(lambda: "Namespace" in watch.view().missing_kinds)
        clock.at = NOON + 300
        assert watch.view().stale_seconds == 300.0


async def test_a_gpuworkload_beside_its_root_counts_and_one_elsewhere_does_not(
    tmp_path: Path,
) -> None:
    api = empty_cluster()
    api.lists[DEPLOYMENTS.path()] = [page([thing("train-uid", spec={"replicas": 1})])]
    forged = gpuworkload("forged", "train-uid", status={"phase": "Paused"})
    forged["metadata"] = {"name": "forged", "namespace": "team-b", "uid": "f"}
    api.lists[GPUWORKLOADS.path()] = [page([forged])]
    with capture_logs() as logs:
        async with api, watching(api, tmp_path) as watch:
            await watch.start()
            assert watch.view().books == {}
            assert watch.view().books == {}
    assert [log["why"] for log in logs] == ["its root is in another namespace: ignored"]


async def test_of_two_gpuworkloads_the_one_with_our_name_remembers_and_both_wish(
    tmp_path: Path,
) -> None:
    api = empty_cluster()
    ours = gpuworkload("deployment-train-trainuid", "train-uid", status={"phase": "Warned"})
    for name in ("a-first", "z-last"):
        other = gpuworkload(name, "train-uid", status={"phase": "Paused"})
        other["spec"] = {**other["spec"], "exempt": True}
        api.lists[GPUWORKLOADS.path()] = [page([other, ours])]
        async with api, watching(api, tmp_path) as watch:
            await watch.start()
            found = watch.view().books["train-uid"]
        assert found.book.phase is Phase.WARNED
        assert found.intent.exempt


async def test_odd_objects_are_said_once_and_hurt_nobody(tmp_path: Path) -> None:
    api = empty_cluster()
    odd_pod = thing(
        "odd", spec={"containers": [{"resources": {"limits": {"nvidia.com/gpu": "x"}}}]}
    )
    broken_pod = thing("broken", spec={"containers": "many"})
    odd_book = gpuworkload("w", "u", status={"phase": "Dreaming"})
    api.lists[PODS.path()] = [page([odd_pod, broken_pod])]
    api.watches[PODS.path()] = [Watch([event("MODIFIED", odd_pod), event("MODIFIED", broken_pod)])]
    api.lists[GPUWORKLOADS.path()] = [page([odd_book])]
    api.watches[GPUWORKLOADS.path()] = [Watch([event("MODIFIED", odd_book)])]
    with capture_logs() as logs:
        async with api, watching(api, tmp_path) as watch:
            await watch.start()
            await eventually(lambda: api.count(PODS.path(), watch=True) > 0)
            await eventually(lambda: len(watch.view().pods) == 2)
            assert watch.view().books["u"].book.phase is Phase.WATCHING
            assert sum(pod.gpus for pod in watch.view().pods) == 2
    said = [(log["event"], log["name"]) for log in logs if log["log_level"] == "warning"]
    assert sorted(said) == [
        ("object cannot be read", "broken"),
        ("odd object", "odd"),
        ("odd object", "w"),
    ]


async def test_an_error_of_our_own_is_not_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = empty_cluster()
    api.lists[NODES.path()] = [page([thing("n")])]

    def broken(_node: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("gpu_pruner.observe.cluster_records.node_record", broken)
    async with api, watching(api, tmp_path) as watch:
        with pytest.raises(ClusterError, match="ZeroDivisionError"):
            await watch.start()


async def test_the_servers_clock_shows_in_the_view(tmp_path: Path) -> None:
    api = empty_cluster()
    api.date = "Sat, 31 Jan 2026 12:05:00 GMT"
    async with api, watching(api, tmp_path) as watch:
        await watch.start()
        assert watch.view().clock_skew_seconds == 300.0


async def test_a_hanging_server_is_given_up(tmp_path: Path) -> None:
    api = empty_cluster()
    api.lists[PODS.path()] = [Reply(hang=True)]
    async with api:
        client = await api.client(tmp_path, timeout_seconds=0.05)
        watch = ClusterWatch(client, clock=ManualClock(), pace=QUICK)
        with pytest.raises(ClusterError, match="gave no answer"):
            await watch.start()
        await client.close()


@pytest.mark.parametrize("resource", [PODS, NODES, NAMESPACES])
async def test_a_kind_that_every_cluster_has_does_not_vanish_with_its_objects(
    tmp_path: Path, resource: Resource
) -> None:
    api = empty_cluster()
    kept = page([thing("team-a", spec=GPU_SPEC if resource is PODS else {})])
    api.lists[resource.path()] = [kept, status(404), status(404), status(404)]
    api.watches[resource.path()] = [status(404)]
    async with api, watching(api, tmp_path) as watch:
        await watch.start()
        await eventually(lambda: api.count(resource.path(), watch=False) > 3)
        view = watch.view()
        held = {PODS: view.pods, NODES: view.nodes, NAMESPACES: view.namespaces}[resource]
        assert len(held) == 1
        rules = told_rules()
        screen = Screen(period=Period(0, 2, 60.0), columns=(), scrape_interval_seconds=30.0)
        found = [one.name for one in find_breakers(view, rules, screen=screen)]
        assert "KindMissing" in found


async def test_the_kinds_that_are_not_there_are_said_in_one_line(tmp_path: Path) -> None:
    api = empty_cluster()
    for one in (NOTEBOOKS, GPUWORKLOADS):
        api.lists[one.path()] = [status(404, "no such kind")]
    with capture_logs() as logs:
        async with api, watching(api, tmp_path) as watch:
            await watch.start()
    told = [one for one in logs if one["event"] == "kinds that are not to be had"]
    assert [one["kinds"] for one in told] == [[NOTEBOOKS.full_name, GPUWORKLOADS.full_name]]
    loud = [one for one in logs if one["event"] == "kind is not available"]
    assert {one["log_level"] for one in loud} == {"debug"}

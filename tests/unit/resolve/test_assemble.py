from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.story import Story, told_rules
from support.telling_time import START, moment
from support.world import World

from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.cluster import Bookkeeping, ClusterView
from gpu_pruner.model.signals import Period
from gpu_pruner.model.snapshot import Snapshot, Workload
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import Intent
from gpu_pruner.resolve.assemble import Reading, assemble

RULES = told_rules()
PERIOD = Period.ending(START, length=RULES.window_seconds, step_seconds=60)


def view_of(**workloads: dict[str, Any]) -> ClusterView:
    return World(dict(workloads)).view()


def assembled(view: ClusterView) -> Snapshot:
    reading = Reading(period=PERIOD, scrape_interval_seconds=30.0)
    return assemble(view, reading, now=START, rules=RULES)


def only(snapshot: Snapshot) -> Workload:
    (workload,) = snapshot.workloads
    return workload


def test_pods_are_grouped_under_their_root() -> None:
    workload = only(assembled(view_of(serve={"pods": 3})))
    assert workload.root.ref == "deployment/team-a/serve"
    assert [pod.record.name for pod in workload.pods] == ["serve-0", "serve-1", "serve-2"]
    assert (workload.lever, workload.obstacle, workload.gpus) == ("Deployment", None, 3)


def test_allocated_gpus_are_those_of_all_live_pods() -> None:
    view = view_of(a={"gpus": 4}, b={"kind": "Pod", "gpus": 2}, c={"pods": [{"phase": "Failed"}]})
    assert assembled(view).allocated_gpus == 6


def test_a_paused_root_without_pods_is_still_there() -> None:
    paused = {"pods": [], "owner": {"halted": True}, "book": {"phase": "Paused"}}
    workload = only(assembled(view_of(nb=paused | {"kind": "Notebook"})))
    assert (workload.root.kind, workload.pods, workload.book.phase) == (
        "Notebook",
        (),
        Phase.PAUSED,
    )


def test_a_watched_root_without_pods_is_nobodys_business() -> None:
    nothing = {"pods": [], "book": {"phase": "Watching"}}
    assert assembled(view_of(serve=nothing)).workloads == ()


def test_a_book_whose_root_is_gone_is_dropped() -> None:
    paused = {"pods": [], "owner": {"halted": True}, "book": {"phase": "Paused"}}
    view = view_of(serve=paused)
    assert assembled(replace(view, owners={})).workloads == ()


def test_a_book_about_another_uid_is_about_another_workload() -> None:
    view = view_of(serve={"book": {"phase": "Warned", "confirmations": 2}})
    (kept,) = view.books.values()
    assert only(assembled(view)).book == kept.book
    elsewhere = replace(view, books={"uid-of-before": kept})
    assert only(assembled(elsewhere)).book == Book()


def test_a_book_that_borrows_a_uid_is_not_believed() -> None:
    """Whoever may create a GPUWorkload in one namespace may not speak for another."""
    view = view_of(serve={"gpus": 1})
    (root,) = (one.root for one in assembled(view).workloads)
    forged = Bookkeeping(
        root=replace(root, namespace="team-evil"), intent=Intent(exempt=True), book=Book(gpus=9)
    )
    workload = only(assembled(replace(view, books={root.uid: forged})))
    assert (workload.book, workload.intent, workload.vetoes) == (Book(), Intent(), ())


def test_the_weightiest_wish_comes_first() -> None:
    told = {
        "intent": {"keep_until": "1h"},
        "owner": {
            "annotations": {"gpu-pruner.io/hold": "true", "gpu-pruner.io/exempt": "perhaps"},
            "labels": {"gpu-pruner.io/exempt": "true"},
        },
        "namespace": "kube-system",
    }
    assert [one.reason for one in only(assembled(view_of(serve=told))).vetoes] == [
        Reason.PROTECTED_NAMESPACE,
        Reason.EXEMPT,
        Reason.MALFORMED_EXEMPTION,
        Reason.KEPT,
        Reason.HELD,
    ]


def test_the_keep_that_reaches_farthest_counts() -> None:
    annotations = {
        "gpu-pruner.io/ack-until": "2026-01-01T15:00:00Z",
        "gpu-pruner.io/ack-by": "sam",
    }
    told = {"intent": {"keep_until": "1h", "keep_by": "jo"}, "owner": {"annotations": annotations}}
    (veto,) = only(assembled(view_of(serve=told))).vetoes
    assert (veto.until, veto.asked_until) == (moment("3h"), None)
    assert veto.detail.startswith("kept by sam by gpu-pruner.io/ack-until")


def test_a_keep_beyond_the_cap_ends_at_the_cap() -> None:
    told = {"intent": {"keep_until": "100d", "keep_reason": "training\n<!channel>"}}
    (veto,) = only(assembled(view_of(serve=told))).vetoes
    assert (veto.until, veto.asked_until) == (moment("24h"), moment("100d"))
    assert "training\ufffd<!channel>" in veto.detail


def test_devices_that_nobody_holds_are_named() -> None:
    world = World({"serve": {"gpus": 1}}, loose=[{"uuid": "GPU-spare", "labels": "none"}])
    snapshot = Story(world).snapshot(START)
    assert snapshot.unattributed == ("GPU-spare",)
    assert [str(one.device) for one in snapshot.loose] == ["GPU-spare"]

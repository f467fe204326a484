from __future__ import annotations

from dataclasses import replace

import pytest
from support.acting import (
    BOOK,
    DEPLOYMENT,
    NOTEBOOK,
    SPACE,
    STATEFUL_SET,
    World,
    a_root,
    assert_untouched,
)
from support.manual_clock import NOON
from support.memory_cluster import Json, tree

from gpu_pruner.errors import ClusterError
from gpu_pruner.kube.gpuworkloads import manifest_for, name_for
from gpu_pruner.kube.resources import GPUWORKLOADS, NAMESPACES
from gpu_pruner.model.annotations import ACK_BY, ACK_UNTIL, EXEMPT, HOLD, NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.orders import PauseOrder, Result
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.workload import RootRef
from gpu_pruner.resolve.pauses import decode


@pytest.mark.parametrize("root", [DEPLOYMENT, STATEFUL_SET])
async def test_a_pause_takes_the_size_and_remembers_it_in_one_patch(root: RootRef) -> None:
    world = World(root)
    world.has(a_root(root))
    book = await world.has_book()

    outcome = await world.actor.pause(world.order(), book, verified_at=NOON, max_age_seconds=15)

    assert (outcome.action, outcome.result) == ("pause", Result.DONE)
    assert outcome.detail == "being paused; it had 3 replicas"
    assert world.wrote() == [
        ("patch", "gpuworkloads", "status"),
        ("patch", world.resource.plural, ""),
    ]
    assert world.replicas == 0
    record = decode(str(world.annotation(PAUSED)))
    assert record is not None
    assert (record.replicas, record.uid, record.generation) == (3, root.uid, 7)
    assert (record.decision, record.by, record.at) == ("d-1", "gpu-pruner", NOON)
    assert world.annotation("owner-note") == "mine"


async def test_the_patch_carries_uid_and_resource_version_of_what_was_read() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    version = tree(world.live["metadata"])["resourceVersion"]
    await world.actor.pause(world.order(), await world.has_book())
    sent = tree(world.cluster.writes[-1].body["metadata"])
    assert (sent["uid"], sent["resourceVersion"]) == ("uid-d", version)


async def test_the_book_says_pausing_with_the_record_before_the_lever_is_pulled() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    world.cluster.failures["patch", "deployments"] = ClusterError("the connection broke")

    outcome = await world.actor.pause(world.order(), book)

    assert outcome.result is Result.FAILED
    assert outcome.detail == "the connection broke"
    now = world.bookkeeping.book
    assert (now.phase, now.paused_at) == (Phase.PAUSING, NOON)
    assert now.pause is not None
    assert now.pause.replicas == 3
    assert now.warned_at == BOOK.warned_at


async def test_the_record_on_the_object_and_in_the_book_are_equal() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    assert decode(str(world.annotation(PAUSED))) == world.bookkeeping.book.pause


async def test_a_notebook_is_paused_by_its_platforms_own_annotation() -> None:
    world = World(NOTEBOOK)
    world.has(a_root(NOTEBOOK))
    outcome = await world.actor.pause(world.order(), await world.has_book())
    assert outcome.result is Result.DONE
    assert world.annotation(NOTEBOOK_STOPPED) == "2026-01-31T12:00:00Z"
    record = decode(str(world.annotation(PAUSED)))
    assert record is not None
    assert record.replicas is None


@pytest.mark.parametrize(
    ("annotations", "says"),
    [
        ({EXEMPT: "true"}, EXEMPT),
        ({EXEMPT: "soon"}, EXEMPT),
        ({HOLD: "true"}, HOLD),
    ],
)
async def test_a_wish_written_on_the_object_meanwhile_is_refused(
    annotations: dict[str, str], says: str
) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT, annotations=annotations))
    book = await world.has_book()
    before = world.live
    outcome = await world.actor.pause(world.order(), book)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.REFUSED
    assert says in outcome.detail


@pytest.mark.parametrize(
    ("intent", "says"),
    [
        ({"exempt": True}, "exempted"),
        ({"keepUntil": "2026-01-31T13:00:00Z", "keepBy": "ada"}, "2026-01-31T13:00:00Z by ada"),
        ({"keepUntil": "tomorrow"}, "exempted"),
    ],
)
async def test_a_wish_that_arrives_between_decision_and_act_is_refused(
    intent: dict[str, Json], says: str
) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    before = world.live
    world.says(intent)
    outcome = await world.actor.pause(world.order(), book)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.REFUSED
    assert says in outcome.detail
    assert world.wrote() == []


async def test_a_release_that_is_taken_back_between_decision_and_act_pauses_nothing() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    released: dict[str, Json] = {"release": True, "releaseAt": "2026-01-31T11:59:00Z"}
    book = await world.has_book(intent=released)
    before, order = world.live, world.order(decided_on=world.knew())
    world.says({"release": False})
    outcome = await world.actor.pause(order, book)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.REFUSED
    assert "taken back" in outcome.detail


async def test_a_wish_that_the_decision_knew_of_is_the_decisions_business() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book(intent={"keepUntil": "2026-03-31T13:00:00Z"})  # beyond any cap
    outcome = await world.actor.pause(world.order(decided_on=world.knew()), book)
    assert outcome.result is Result.DONE


async def test_a_keep_that_is_over_does_not_refuse_a_persons_order() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.has_book(intent={"keepUntil": "2026-01-31T11:59:59Z"})
    assert (await world.actor.pause(world.order(by="ada"))).result is Result.DONE


async def test_any_other_change_of_the_book_means_decide_again() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    before = world.live
    world.says({"release": True})
    outcome = await world.actor.pause(world.order(), book)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.CONFLICT


async def test_a_deleted_book_means_decide_again() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    before = world.live
    world.cluster.remove(GPUWORKLOADS, SPACE, name_for(DEPLOYMENT))
    outcome = await world.actor.pause(world.order(), book)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.CONFLICT


async def test_a_keep_that_arrives_while_the_book_is_written_stops_the_pause() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    before = world.live
    world.cluster.before_patch["gpuworkloads"] = lambda: world.says({"exempt": True})
    outcome = await world.actor.pause(world.order(), book)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.CONFLICT


async def test_a_lever_object_that_changes_under_the_patch_is_left_alone() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    world.cluster.before_patch["deployments"] = world.touched
    outcome = await world.actor.pause(world.order(), book)
    assert outcome.result is Result.CONFLICT
    assert world.replicas == 3
    assert world.annotation(PAUSED) is None
    assert world.bookkeeping.book.phase is Phase.PAUSING


async def test_pausing_twice_is_refused_and_the_first_record_stays() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    await world.actor.pause(world.order(), await world.has_book())
    before = world.live
    again = await world.actor.pause(world.order(decision_id="d-2"), world.bookkeeping.book)
    assert_untouched(world, before, again)
    assert "paused already, since 2026-01-31T12:00:00Z" in again.detail


@pytest.mark.parametrize(
    ("root", "body", "says"),
    [
        (DEPLOYMENT, a_root(DEPLOYMENT, replicas=0), "already at zero replicas, and not by us"),
        (
            STATEFUL_SET,
            a_root(
                STATEFUL_SET,
                spec={"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}},
            ),
            "would delete its volume claims",
        ),
        (
            NOTEBOOK,
            a_root(NOTEBOOK, annotations={NOTEBOOK_STOPPED: "2026-01-30T08:00:00Z"}),
            "already stopped, and not by us",
        ),
        (
            NOTEBOOK,
            a_root(NOTEBOOK, annotations={NOTEBOOK_STOPPED: "odh-notebook-controller-lock"}),
            "start-up lock",
        ),
    ],
)
async def test_what_must_not_be_paused_is_refused_with_the_reason(
    root: RootRef, body: dict[str, Json], says: str
) -> None:
    world = World(root)
    world.has(body)
    book = await world.has_book()
    before = world.live
    outcome = await world.actor.pause(world.order(), book)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.REFUSED
    assert says in outcome.detail
    assert world.bookkeeping.book.phase is Phase.WARNED


async def test_an_object_that_is_being_deleted_is_refused() -> None:
    world = World()
    body = a_root(DEPLOYMENT)
    tree(body["metadata"])["deletionTimestamp"] = "2026-01-31T11:59:00Z"
    world.has(body)
    outcome = await world.actor.pause(world.order(), await world.has_book())
    assert (outcome.result, outcome.detail) == (Result.REFUSED, "it is being deleted")


async def test_another_object_of_the_same_name_is_never_touched() -> None:
    world = World()
    world.has(a_root(replace(DEPLOYMENT, uid="uid-other")))
    book = await world.has_book()
    before = world.live
    for outcome in (
        await world.actor.pause(world.order(), book),
        await world.actor.restore(DEPLOYMENT, by="gpu-pruner", why=""),
    ):
        assert_untouched(world, before, outcome)
        assert "has taken its place" in outcome.detail


async def test_a_root_that_is_gone_or_has_no_lever_is_refused() -> None:
    world = World()
    gone = await world.actor.pause(world.order())
    assert (gone.result, gone.detail) == (
        Result.REFUSED,
        "deployment/team-a/server does not exist any more",
    )
    other = RootRef("Deployment", SPACE, "server", "example.org")
    refused = await world.actor.pause(PauseOrder(root=other, decision_id="d", why=""))
    assert refused.result is Result.REFUSED
    assert "these can: Deployment, InferenceService, " in refused.detail


@pytest.mark.parametrize("age", [15.5, -15.5])
async def test_evidence_that_is_too_old_or_from_the_future_is_refused(age: float) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    before = world.live
    outcome = await world.actor.pause(
        world.order(), book, verified_at=NOON - age, max_age_seconds=15
    )
    assert_untouched(world, before, outcome)
    assert world.wrote() == []


async def test_evidence_that_ages_while_the_book_is_written_is_refused() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()

    def slow_answer() -> None:
        world.clock.at += 20

    world.cluster.before_patch["gpuworkloads"] = slow_answer
    before = world.live
    outcome = await world.actor.pause(world.order(), book, verified_at=NOON, max_age_seconds=15)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.REFUSED


@pytest.mark.parametrize("root", [DEPLOYMENT, STATEFUL_SET, NOTEBOOK])
async def test_a_dry_run_says_what_it_would_do_and_writes_nothing(root: RootRef) -> None:
    world = World(root, mode=Mode.DRY_RUN)
    world.has(a_root(root))
    book = await world.has_book()
    before = world.live
    outcome = await world.actor.pause(world.order(), book)
    assert outcome.result is Result.DRY_RUN
    assert_untouched(world, before, outcome)
    assert world.wrote() == []


async def test_a_person_pauses_by_name_and_the_controller_can_know_of_it() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    order = world.order(by="ada", decision_id="manual-1")
    order = replace(order, root=replace(DEPLOYMENT, uid=""))
    outcome = await world.actor.pause(order)
    assert outcome.result is Result.DONE
    known = world.bookkeeping
    assert known.root == DEPLOYMENT
    assert known.book.phase is Phase.PAUSING
    assert known.book.pause is not None
    assert known.book.pause.by == "ada"
    stored = world.cluster.stored(GPUWORKLOADS, SPACE, name_for(DEPLOYMENT))
    owner = tree(stored["metadata"])["ownerReferences"]
    assert owner == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "server", "uid": "uid-d"}
    ]


async def test_without_the_crd_a_person_can_still_pause_and_is_told() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    world.cluster.missing_kinds.add("gpuworkloads")
    outcome = await world.actor.pause(world.order(by="ada"))
    assert outcome.result is Result.DONE
    assert "kubectl apply -k deploy/crds" in outcome.detail
    assert world.replicas == 0
    restored = await world.actor.restore(DEPLOYMENT, by="ada", why="needed")
    assert restored.result is Result.DONE
    assert world.replicas == 3


async def test_an_answer_without_preconditions_is_never_acted_on() -> None:
    world = World()
    world.has(a_root(replace(DEPLOYMENT, uid="")))
    outcome = await world.actor.pause(world.order())
    assert outcome.result is Result.FAILED
    assert world.wrote() == []


async def test_a_book_about_another_object_is_never_written_over() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    world.says(
        {"rootRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "y"}}
    )
    before = world.live
    outcome = await world.actor.pause(world.order(), book)
    assert_untouched(world, before, outcome)
    assert "is about another object" in outcome.detail
    assert world.wrote() == []


UNTIL = "2026-01-31T14:00:00Z"


@pytest.mark.parametrize(
    ("annotations", "says"),
    [
        ({ACK_UNTIL: UNTIL, ACK_BY: "jo"}, f"kept until {UNTIL}"),
        ({ACK_UNTIL: "tomorrow"}, "not a time"),
    ],
)
async def test_the_rust_tools_keep_counts_up_to_the_last_moment(
    annotations: dict[str, str], says: str
) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT, annotations=annotations))
    book = await world.has_book()
    before = world.live
    outcome = await world.actor.pause(world.order(decided_on=world.knew()), book)
    assert_untouched(world, before, outcome)
    assert says in outcome.detail
    weighed = world.order(decided_on=world.knew(annotations=annotations))
    assert (await world.actor.pause(weighed, book)).result is Result.DONE


@pytest.mark.parametrize("by", ["gpu-pruner", "ada"])
@pytest.mark.parametrize("key", [EXEMPT, HOLD])
async def test_a_wish_on_the_namespace_is_read_right_before_the_act(by: str, key: str) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    space: dict[str, Json] = {"name": SPACE, "uid": "uid-space", "labels": {key: "true"}}
    world.cluster.put(NAMESPACES, {"metadata": space})
    before = world.live
    outcome = await world.actor.pause(world.order(by=by), book if by == "gpu-pruner" else None)
    assert_untouched(world, before, outcome)
    assert f"{key}=true on namespace {SPACE}" in outcome.detail


async def test_a_namespace_that_cannot_be_read_may_hold_a_wish() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    world.cluster.failures["get", "namespaces"] = ClusterError("no answer")
    outcome = await world.actor.pause(world.order(), book)
    assert (outcome.result, outcome.detail) == (Result.FAILED, "no answer")
    assert world.wrote() == []


async def test_an_exemption_in_the_pod_template_counts_before_any_pod_has_it() -> None:
    world = World()
    template: dict[str, Json] = {"metadata": {"annotations": {EXEMPT: "true"}}}
    world.has(a_root(DEPLOYMENT, spec={"template": template}))
    before = world.live
    for book in (await world.has_book(), None):
        outcome = await world.actor.pause(world.order(), book)
        assert_untouched(world, before, outcome)
        assert "on the pod template of server" in outcome.detail


@pytest.mark.parametrize("by", ["gpu-pruner", "ada"])
async def test_a_keep_on_a_second_gpuworkload_of_the_root_counts(by: str) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    book = await world.has_book()
    knew = world.knew() if by == "gpu-pruner" else None
    second = dict(manifest_for(DEPLOYMENT))
    spec = {**tree(second["spec"]), "keepUntil": UNTIL, "keepBy": "jo"}
    meta: dict[str, Json] = {"name": "mine", "namespace": SPACE, "uid": "uid-2"}
    world.cluster.put(GPUWORKLOADS, {**second, "metadata": meta, "spec": spec})
    before = world.live
    order = world.order(by=by, decided_on=knew)
    outcome = await world.actor.pause(order, book if knew else None)
    assert_untouched(world, before, outcome)
    assert outcome.detail == f"it is kept until {UNTIL} by jo"


async def test_a_root_that_was_scaled_since_the_decision_is_decided_again() -> None:
    world = World()
    world.has(a_root(DEPLOYMENT, replicas=9))
    book = await world.has_book()
    before = world.live
    outcome = await world.actor.pause(world.order(decided_on=world.knew(generation=6)), book)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.CONFLICT
    assert "generation 6, now 7" in outcome.detail


@pytest.mark.parametrize(
    "book",
    [
        replace(BOOK, phase=Phase.WATCHING, warned_at=None, warned_via=()),
        replace(BOOK, warned_via=()),
        replace(BOOK, warned_at=None),
    ],
)
async def test_a_book_that_says_of_no_warning_is_no_ground_for_a_pause(book: Book) -> None:
    world = World()
    world.has(a_root(DEPLOYMENT))
    stored = await world.has_book(book)
    before = world.live
    outcome = await world.actor.pause(world.order(), stored)
    assert_untouched(world, before, outcome)
    assert outcome.result is Result.REFUSED
    assert "does not say" in outcome.detail


async def test_nobody_pauses_in_a_protected_namespace() -> None:
    root = RootRef("Deployment", "kube-system", "dns", "apps", "uid-p")
    world = World(root)
    world.has(a_root(root))
    outcome = await world.actor.pause(world.order(by="ada"))
    assert outcome.result is Result.REFUSED
    assert "namespace kube-system is protected" in outcome.detail
    assert world.wrote() == []


async def test_what_another_object_controls_is_not_paused_under_it() -> None:
    world = World(STATEFUL_SET)
    body = a_root(STATEFUL_SET)
    tree(body["metadata"])["ownerReferences"] = [
        {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "name": "nb", "controller": True}
    ]
    world.has(body)
    before = world.live
    outcome = await world.actor.pause(world.order(by="ada"))
    assert_untouched(world, before, outcome)
    assert "belongs to Notebook nb" in outcome.detail

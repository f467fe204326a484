"""The whole line for every kind: paused by its own lever, gone, and back as it was.

One run for all. The controllers of other people's kinds are played by `support.operators`.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml
from support.audit import Entry
from support.between import Answer, Between
from support.custom_kinds import install_kinds
from support.lab import Lab
from support.lever_objects import (
    DEPLOYMENT,
    INFERENCE_SERVICE,
    JOB,
    JOB_SET,
    KUEUE_WORKLOAD,
    LEADER_WORKER_SET,
    LLM_INFERENCE_SERVICE,
    NOTEBOOK,
    PYTORCH_JOB,
    RAY_CLUSTER,
    REPLICA_SET,
    ROLLOUT,
    SCALED_OBJECT,
    STATEFUL_SET,
    TRAIN_JOB,
    WORKSPACE,
)
from support.product import BASE, OUR_NAMESPACE, OURS, Product, Thing, a_world, record, right, until

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.sim.tree import JsonObject, elements, mapping, text, texts, with_value, without
from gpu_pruner.sim.world import Node, Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(600)]

NODES = tuple(Node(name=f"node-{one}") for one in (1, 2, 3, 4))
NOTICE_SECONDS = "25"
"""So long that everybody is warned before the first is paused."""

_TWO = ("spec", "replicas")
_GROUP = ("spec", "leaderWorkerTemplate", "size")
UNHELD = with_value(
    with_value(SCALED_OBJECT, ("metadata", "annotations"), to={"team": "vision"}),
    ("spec", "scaleTargetRef", "name"),
    to="scaledobject",
)

PAUSABLE: Mapping[str, tuple[JsonObject, int]] = {
    "Deployment": (with_value(DEPLOYMENT, _TWO, to=2), 2),
    "StatefulSet": (with_value(STATEFUL_SET, _TWO, to=2), 2),
    "ReplicaSet": (with_value(REPLICA_SET, _TWO, to=2), 2),
    "Rollout": (with_value(ROLLOUT, _TWO, to=2), 2),
    "LeaderWorkerSet": (
        with_value(with_value(LEADER_WORKER_SET, _TWO, to=2), _GROUP, to=2),
        4,
    ),
    "Notebook": (NOTEBOOK, 1),
    "Workspace": (WORKSPACE, 1),
    "InferenceService": (without(INFERENCE_SERVICE, ("status",)), 2),
    "LLMInferenceService": (LLM_INFERENCE_SERVICE, 2),
}
"""By kind: an object, and how many pods come of it."""

WARN_ONLY: Mapping[str, tuple[JsonObject, int]] = {
    "Job": (JOB, 1),
    "JobSet": (JOB_SET, 1),
    "TrainJob": (TRAIN_JOB, 1),
    "RayCluster": (RAY_CLUSTER, 1),
    "PyTorchJob": (PYTORCH_JOB, 1),
}


@dataclass(frozen=True)
class Run:
    """What there was to see."""

    refs: Mapping[str, str]
    """By kind."""
    before: Mapping[str, set[str]]
    """uids of pods, by kind."""
    warned: Mapping[str, set[str]]
    paused: Mapping[str, set[str]]
    specs_before: Mapping[str, JsonObject]
    specs_after: Mapping[str, JsonObject]
    notes_after: Mapping[str, dict[str, str]]
    after: Mapping[str, set[str]]
    reasons: Mapping[str, str]
    writes: Sequence[Entry]
    """To workloads, until everything was paused."""
    asked: Sequence[Entry]
    """All that we asked of the API server."""

    def levers(self, kind: str) -> list[Entry]:
        """Return what we wrote to the objects that were made for a kind."""
        name = kind.lower()
        places = [(one.object_ref.name, one) for one in self.writes]
        return [one for place, one in places if place == name or place.startswith(f"{name}-")]


def named(kind: str, body: JsonObject, namespace: str) -> JsonObject:
    """Return an example with a name of its own; all of them share a namespace."""
    meta = mapping(body, "metadata") | {"namespace": namespace, "name": kind.lower()}
    return body | {"metadata": meta}


@pytest.fixture(scope="module")
def run(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    install_kinds(lab)
    # So that the Lease is made in this run too, whatever ran before.
    lab.kubectl("delete", "leases", "--all", "-n", OUR_NAMESPACE, "--ignore-not-found")
    team = lab.namespace()
    things = [
        Thing(named(kind, body, team), pods)
        for kind, (body, pods) in (PAUSABLE | WARN_ONLY).items()
    ]
    refs = {text(one.body, "kind"): one.ref for one in things}
    target = Workload(kind="Deployment", namespace=team, name="scaledobject", replicas=2)
    refs["ScaledObject"] = f"deployment/{team}/scaledobject"
    things.append(Thing(named("ScaledObject", UNHELD, team)))
    world = a_world(target, nodes=NODES)
    with Product(lab, world, tmp_path_factory.mktemp("kinds"), things=things) as product:
        with Between(lab) as between:
            lose_a_book(between, team)
            told = play(product, refs, between.kubeconfig(product.kubeconfig))
        pause_by_hand(product, team, [refs[kind] for kind in WARN_ONLY])
        yield replace(told, asked=tuple(lab.audited(OURS)))


def lose_a_book(between: Between, team: str) -> None:
    """Let the first book after the first warning be lost: the warning is then repeated."""
    warning = between.before("POST", f"/namespaces/{team}/events", lambda: None)
    lost: list[str] = []

    def lose() -> Answer | None:
        if not warning.done or lost:
            return None
        lost.append("")
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR)

    between.before("PATCH", "/status", lose, times=sys.maxsize)


def pause_by_hand(product: Product, team: str, refs: Sequence[str]) -> None:
    """Pause with our account what the controller leaves alone, and a job that Kueue admitted."""
    job = named("admitted", JOB, team)
    product.lab.kubectl("create", "-f", "-", stdin=json.dumps(job))
    meta = mapping(product.object(f"job/{team}/admitted"), "metadata")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "admitted", "controller": True}
    workload = named("admitted", KUEUE_WORKLOAD, team)
    owners = [owner | {"uid": text(meta, "uid")}]
    workload = with_value(workload, ("metadata", "ownerReferences"), to=owners)
    product.lab.kubectl("create", "-f", "-", stdin=json.dumps(workload))
    for ref in (*refs, f"job/{team}/admitted"):
        product.by_hand("pause", ref, kubeconfig=product.kubeconfig)


def uids(product: Product, refs: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the uids of pods, by kind."""
    pods = [mapping(one, "metadata") for one in product.pods()]
    return {
        kind: {text(one, "uid") for one in pods if text(one, "name").startswith(f"{kind.lower()}-")}
        for kind in refs
    }


def a_person(lab: Lab, team: str) -> str:
    """Return the token of somebody who may change GPUWorkloads in a namespace."""
    lab.kubectl("create", "serviceaccount", "jo", "-n", team)
    verbs = ("--verb=get,create,patch", "--resource=gpuworkloads.gpu-pruner.io")
    lab.kubectl("create", "role", "keeper", "-n", team, *verbs)
    whom = ("--role=keeper", f"--serviceaccount={team}:jo")
    lab.kubectl("create", "rolebinding", "keeper", "-n", team, *whom)
    return lab.kubectl("create", "token", "jo", "-n", team).strip()


def play(product: Product, refs: Mapping[str, str], kubeconfig: Path) -> Run:
    """Let everything be paused that can be, and give it all back."""

    pausable = [ref for kind, ref in refs.items() if kind not in WARN_ONLY]
    before = uids(product, refs)
    specs = {kind: mapping(product.object(ref), "spec") for kind, ref in refs.items()}
    with product.controller(
        "--ack-grace-period", NOTICE_SECONDS, kubeconfig=kubeconfig
    ) as controller:

        def states() -> set[str]:
            rows = elements(controller.get("/api/v1/workloads"), "workloads")
            return {text(one, "state") for one in rows if text(one, "ref") in pausable}

        controller.until(lambda: states() == {"Warned"})
        assert product.workload_writes() == []
        warned = uids(product, refs)
        controller.until(lambda: states() == {"Paused"})
        rows = elements(controller.get("/api/v1/workloads"), "workloads")
        reasons = {text(one, "ref"): text(one, "reason") for one in rows}
        paused = uids(product, refs)
        writes = tuple(product.workload_writes())
        for ref in pausable:
            product.by_hand("resume", ref)
        controller.until(lambda: states() == {"Watching"})
        until(lambda: product.ready() == product.wanted)
        kept = controller.post(
            f"/api/v1/workloads/{refs['Deployment']}/keep",
            {"for": "4h", "reason": "a demonstration"},
            token=a_person(product.lab, product.team),
        )
        assert text(kept, "by").endswith(":jo"), kept
    found = {kind: product.object(ref) for kind, ref in refs.items()}
    return Run(
        refs=refs,
        before=before,
        warned=warned,
        paused=paused,
        specs_before=specs,
        specs_after={kind: mapping(one, "spec") for kind, one in found.items()},
        notes_after={kind: texts(one, "metadata", "annotations") for kind, one in found.items()},
        after=uids(product, refs),
        reasons={kind: reasons.get(ref, "") for kind, ref in refs.items()},
        writes=writes,
        asked=(),
    )


@pytest.mark.parametrize("kind", [*PAUSABLE, "ScaledObject"])
def test_it_is_paused_by_one_write_and_comes_back_as_it_was(run: Run, kind: str) -> None:
    assert run.reasons[kind] == "Paused"
    assert run.paused[kind] == set()
    [pause] = run.levers(kind)
    assert (pause.verb, pause.response_status.code) == ("patch", 200)
    assert record(pause)["lever"] == kind
    assert len(run.after[kind]) == len(run.before[kind]) > 0
    assert run.specs_after[kind] == run.specs_before[kind]
    assert PAUSED not in run.notes_after[kind]


@pytest.mark.parametrize("kind", [*PAUSABLE, *WARN_ONLY, "ScaledObject"])
def test_what_we_write_before_the_pause_changes_no_pod(run: Run, kind: str) -> None:
    assert run.before[kind]
    assert run.warned[kind] == run.before[kind]


@pytest.mark.parametrize("kind", WARN_ONLY)
def test_what_would_lose_its_work_is_told_and_kept(run: Run, kind: str) -> None:
    assert run.reasons[kind] == "WarnOnly"
    assert run.levers(kind) == []
    assert run.paused[kind] == run.before[kind]


def test_of_nothing_but_levers_something_was_written(run: Run) -> None:
    written = sorted(json.dumps(one.told) for one in run.writes)
    assert len(written) == len(PAUSABLE) + 1, written


def test_no_right_is_granted_that_is_not_used_and_none_is_missing(run: Run) -> None:
    used = {right(one) for one in run.asked if one.response_status.code != 403}

    assert granted() - used == set()
    assert {right(one) for one in run.asked if one.response_status.code == 403} == set()
    assert used - granted() == set()


def granted() -> set[tuple[str, str, str]]:
    """Return the rights in the roles that we ship."""
    roles = yaml.safe_load_all((BASE / "rbac.yaml").read_text())
    rules = [rule for role in roles for rule in role.get("rules", ())]
    return {
        one
        for rule in rules
        for one in itertools.product(rule["verbs"], rule["apiGroups"], rule["resources"])
    }


def test_a_warning_whose_book_was_lost_is_brought_up_to_date_and_not_doubled(run: Run) -> None:
    told = [one for one in run.asked if one.object_ref.resource == "events"]
    made = [one for one in told if one.verb == "create" and one.response_status.code == 201]
    again = [one for one in told if one.verb == "patch"]
    warnings = [one for one in made if text(one.request_object, "reason") == "GpuIdleWarning"]

    assert len(again) == 1
    assert len(warnings) == len(PAUSABLE) + len(WARN_ONLY) + 1  # and what KEDA scales

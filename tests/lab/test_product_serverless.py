"""An InferenceService on Knative, in a real cluster: five owners above each pod.

One run for two of them: one of a KServe that honours the stop annotation, and one of an older
KServe, which can only be drained. The controllers are played by `support.knative`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from support.audit import Entry
from support.custom_kinds import install_kinds
from support.knative import MODE
from support.lab import Lab
from support.lever_objects import pod_spec
from support.product import Product, Thing, a_world, record, until

from gpu_pruner.kube.resources import KNATIVE_REVISIONS
from gpu_pruner.model.annotations import KSERVE_STOP, PAUSED
from gpu_pruner.sim.tree import JsonObject, elements, mapping, text, texts

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]

MODES = {"modern": "Knative", "older": "Serverless"}
SIZES = {"modern": 1, "older": 2}


@dataclass(frozen=True)
class Seen:
    """What there was at one moment, by service."""

    pods: Mapping[str, set[str]]
    revisions: Mapping[str, set[str]]
    objects: Mapping[str, JsonObject]


@dataclass(frozen=True)
class Run:
    """What there was to see."""

    before: Seen
    warned: Seen
    paused: Seen
    after: Seen
    roots: frozenset[str]
    """References of everything that the controller spoke of."""
    writes: Sequence[Entry]
    """To workloads, until both were paused."""
    all_writes: Sequence[Entry]

    def lever(self, name: str) -> Entry:
        """Return the only write to a service until it was paused."""
        [found] = [one for one in self.writes if one.object_ref.name == name]
        return found


def a_service(team: str, name: str) -> Thing:
    meta = {"name": name, "namespace": team, "annotations": {MODE: MODES[name], "team": "vision"}}
    predictor = pod_spec() | {"minReplicas": SIZES[name]}
    body: JsonObject = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": meta,
        "spec": {"predictor": predictor},
    }
    return Thing(body, SIZES[name])


def look(product: Product, team: str) -> Seen:
    """Look at the pods, the Revisions and the services."""

    def of(name: str, bodies: Sequence[JsonObject]) -> set[str]:
        metas = [mapping(one, "metadata") for one in bodies]
        return {text(one, "uid") for one in metas if text(one, "name").startswith(f"{name}-")}

    revisions = elements(product.get(KNATIVE_REVISIONS.path(namespace=team)), "items")
    pods = product.pods(team)
    return Seen(
        {name: of(name, pods) for name in MODES},
        {name: of(name, revisions) for name in MODES},
        {name: product.object(f"inferenceservice/{team}/{name}") for name in MODES},
    )


@pytest.fixture(scope="module")
def run(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    install_kinds(lab)
    team, directory = lab.namespace(), tmp_path_factory.mktemp("serverless")
    things = [a_service(team, name) for name in MODES]
    refs = [one.ref for one in things]
    with Product(lab, a_world(), directory, things=things) as product:
        before = look(product, team)
        with product.controller("--ack-grace-period", "12") as controller:

            def states() -> set[str]:
                return {controller.state(one) for one in refs}

            controller.until(lambda: states() == {"Warned"})
            assert product.workload_writes() == []
            warned = look(product, team)
            rows = elements(controller.get("/api/v1/workloads"), "workloads")
            roots = frozenset(text(one, "ref") for one in rows)
            controller.until(lambda: states() == {"Paused"})
            paused, writes = look(product, team), tuple(product.workload_writes())
            for one in refs:
                product.by_hand("resume", one)
            controller.until(lambda: states() == {"Watching"})
            until(lambda: product.ready(team) == product.wanted)
        yield Run(
            before,
            warned,
            paused,
            look(product, team),
            roots,
            writes,
            tuple(product.workload_writes()),
        )


def test_the_root_of_five_owners_is_the_inference_service(run: Run) -> None:
    assert {one.partition("/")[0] for one in run.roots} == {"inferenceservice"}
    assert len(run.roots) == len(MODES)


@pytest.mark.parametrize("name", MODES)
def test_what_we_write_before_the_pause_makes_no_new_revision_and_no_new_pod(
    run: Run, name: str
) -> None:
    assert len(run.before.pods[name]) == SIZES[name]
    assert len(run.before.revisions[name]) == 1
    assert run.warned.pods[name] == run.before.pods[name]
    assert run.warned.revisions[name] == run.before.revisions[name]


def test_a_service_whose_kserve_knows_how_is_stopped(run: Run) -> None:
    pause = run.lever("modern")
    notes = texts(pause.request_object, "metadata", "annotations")
    assert (pause.verb, pause.object_ref.resource) == ("patch", "inferenceservices")
    assert notes[KSERVE_STOP] == "true"
    assert "spec" not in pause.request_object
    assert run.paused.revisions["modern"] == set()


def test_a_service_of_an_older_kserve_is_drained(run: Run) -> None:
    pause = run.lever("older")
    notes = texts(pause.request_object, "metadata", "annotations")
    assert (pause.verb, pause.object_ref.resource) == ("patch", "inferenceservices")
    assert mapping(pause.request_object, "spec") == {"predictor": {"minReplicas": 0}}
    assert KSERVE_STOP not in notes
    assert record(pause)["replicas"] == SIZES["older"]


@pytest.mark.parametrize("name", MODES)
def test_its_pods_are_gone_and_it_comes_back_as_it_was(run: Run, name: str) -> None:
    before, after = run.before.objects[name], run.after.objects[name]
    assert run.paused.pods[name] == set()
    assert len(run.after.pods[name]) == SIZES[name]
    assert mapping(after, "spec") == mapping(before, "spec")
    assert texts(after, "metadata", "annotations") == texts(before, "metadata", "annotations")
    assert PAUSED not in texts(after, "metadata", "annotations")


def test_nothing_else_was_written(run: Run) -> None:
    assert sorted(one.told for one in run.all_writes) == sorted(one.told for one in run.writes)
    assert len(run.writes) == len(MODES)

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest
from support.caller import Answer
from support.manual_clock import NOON
from support.simulated import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NOTEBOOKS,
    PODS,
    SMALL_WORLD,
    Simulation,
)

from gpu_pruner.model.units import parse_rfc3339
from gpu_pruner.sim.patches import JSON_PATCH, STRATEGIC
from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, number, text, texts

SERVE = f"{DEPLOYMENTS}/serve"
THINGS = "/apis/things.example/v1/namespaces/team-a/things"
CRD: JsonObject = {
    "metadata": {"name": "things.things.example"},
    "spec": {
        "group": "things.example",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Due", "type": "date", "jsonPath": ".status.due"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["owner"],
                                "properties": {
                                    "owner": {
                                        "type": "string",
                                        "maxLength": 8,
                                        "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
                                    },
                                    "size": {"type": "integer"},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "phase": {"type": "string", "enum": ["New", "Old"]},
                                    "due": {"type": "string", "format": "date-time"},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
async def custom() -> AsyncIterator[Simulation]:
    """Has a custom kind, and one object of it."""
    async for one in Simulation.of(SMALL_WORLD, crds=(CRD,)):
        answer = await one.caller.post(
            THINGS,
            {
                "apiVersion": "things.example/v1",
                "kind": "Thing",
                "metadata": {"name": "one"},
                "spec": {"owner": "me", "size": 3},
            },
        )
        assert answer.status == HTTPStatus.CREATED
        yield one


def refused(answer: Answer) -> tuple[int, str]:
    assert answer.body["kind"] == "Status"
    assert answer.body["code"] == answer.status
    return answer.status, answer.reason


CONFLICT = (HTTPStatus.CONFLICT, "Conflict")
INVALID = (HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid")


async def test_a_create_is_stamped_by_the_server(simulation: Simulation) -> None:
    answer = await simulation.caller.post(CONFIG_MAPS, {"metadata": {"name": "one", "uid": "mine"}})
    assert answer.status == HTTPStatus.CREATED
    assert text(answer.body, "metadata", "uid") not in {"", "mine"}
    assert text(answer.body, "metadata", "namespace") == "team-a"
    assert parse_rfc3339(text(answer.body, "metadata", "creationTimestamp")) == NOON


async def test_a_name_can_be_generated_and_taken_once(simulation: Simulation) -> None:
    body: JsonObject = {"metadata": {"generateName": "one-"}}
    first = await simulation.caller.post(CONFIG_MAPS, body)
    second = await simulation.caller.post(CONFIG_MAPS, body)
    names = {text(one.body, "metadata", "name") for one in (first, second)}
    assert len(names) == 2
    assert all(name.startswith("one-") for name in names)
    again = await simulation.caller.post(CONFIG_MAPS, {"metadata": {"name": names.pop()}})
    assert refused(again) == (HTTPStatus.CONFLICT, "AlreadyExists")


async def test_a_namespace_must_exist(simulation: Simulation) -> None:
    path = "/api/v1/namespaces/absent/configmaps"
    answer = await simulation.caller.post(path, {"metadata": {"name": "one"}})
    assert refused(answer) == (HTTPStatus.NOT_FOUND, "NotFound")


async def test_an_event_lives_in_the_namespace_of_what_it_is_about(simulation: Simulation) -> None:
    path = "/api/v1/namespaces/team-a/events"
    event: JsonObject = {"metadata": {"name": "one"}, "involvedObject": {"namespace": "default"}}
    assert refused(await simulation.caller.post(path, event)) == INVALID


async def test_a_stale_version_is_a_conflict_and_changes_nothing(simulation: Simulation) -> None:
    stale = (await simulation.caller.get(SERVE)).version
    await simulation.caller.patch(SERVE, {"metadata": {"labels": {"a": "b"}}})
    patch = {"metadata": {"resourceVersion": stale}, "spec": {"replicas": 0}}
    answer = await simulation.caller.patch(SERVE, patch)
    assert refused(answer) == CONFLICT
    assert simulation.replicas("Deployment", "serve") == 2


async def test_the_current_version_and_uid_are_accepted(simulation: Simulation) -> None:
    now = await simulation.caller.get(SERVE)
    metadata = {"resourceVersion": now.version, "uid": text(now.body, "metadata", "uid")}
    answer = await simulation.caller.patch(SERVE, {"metadata": metadata, "spec": {"replicas": 0}})
    assert answer.status == HTTPStatus.OK
    assert simulation.replicas("Deployment", "serve") == 0


async def test_another_uid_in_a_patch_is_invalid(simulation: Simulation) -> None:
    patch = {"metadata": {"uid": "another"}, "spec": {"replicas": 0}}
    assert refused(await simulation.caller.patch(SERVE, patch)) == INVALID
    assert simulation.replicas("Deployment", "serve") == 2


async def test_a_stale_version_is_seen_before_another_uid(simulation: Simulation) -> None:
    stale = (await simulation.caller.get(SERVE)).version
    await simulation.caller.patch(SERVE, {"metadata": {"labels": {"a": "b"}}})
    patch = {"metadata": {"uid": "another", "resourceVersion": stale}}
    assert refused(await simulation.caller.patch(SERVE, patch)) == CONFLICT


async def test_another_uid_in_a_replacement_or_deletion_is_a_conflict(
    simulation: Simulation,
) -> None:
    put = await simulation.caller.put(SERVE, {"metadata": {"name": "serve", "uid": "another"}})
    assert refused(put) == CONFLICT
    deletion: JsonObject = {"preconditions": {"uid": "another"}}
    assert refused(await simulation.caller.delete(SERVE, deletion)) == CONFLICT
    assert simulation.replicas("Deployment", "serve") == 2


async def test_the_main_resource_cannot_write_status(simulation: Simulation) -> None:
    patch = {"metadata": {"labels": {"a": "b"}}, "status": {"replicas": 99}}
    answer = await simulation.caller.patch(SERVE, patch)
    assert number(answer.body, "status", "replicas") == 2
    assert texts(answer.body, "metadata", "labels")["a"] == "b"


async def test_the_status_resource_writes_nothing_else(custom: Simulation) -> None:
    patch: JsonObject = {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"size": 9},
        "status": {"phase": "Old"},
    }
    await custom.caller.patch(f"{THINGS}/one/status", patch)
    thing = (await custom.caller.get(f"{THINGS}/one")).body
    assert text(thing, "status", "phase") == "Old"
    assert number(thing, "spec", "size") == 3
    assert "annotations" not in mapping(thing, "metadata")
    assert number(thing, "metadata", "generation") == 1


async def test_generation_counts_changes_of_what_is_wanted(custom: Simulation) -> None:
    path = f"{THINGS}/one"
    await custom.caller.patch(path, {"metadata": {"labels": {"a": "b"}}})
    assert number((await custom.caller.get(path)).body, "metadata", "generation") == 1
    await custom.caller.patch(path, {"spec": {"size": 4}})
    assert number((await custom.caller.get(path)).body, "metadata", "generation") == 2


async def test_generation_of_a_deployment_counts_annotations_too(simulation: Simulation) -> None:
    await simulation.caller.patch(SERVE, {"metadata": {"labels": {"a": "b"}}})
    assert number((await simulation.caller.get(SERVE)).body, "metadata", "generation") == 1
    await simulation.caller.patch(SERVE, {"metadata": {"annotations": {"a": "b"}}})
    await simulation.clock.settle()
    serve = (await simulation.caller.get(SERVE)).body
    assert number(serve, "metadata", "generation") == 2
    assert number(serve, "status", "observedGeneration") == 2


async def test_a_write_that_changes_nothing_makes_no_version(simulation: Simulation) -> None:
    before = (await simulation.caller.get(SERVE)).version
    answer = await simulation.caller.patch(SERVE, {"spec": {"replicas": 2}})
    assert (answer.status, answer.version) == (HTTPStatus.OK, before)


async def test_a_dry_run_answers_and_stores_nothing(simulation: Simulation) -> None:
    answer = await simulation.caller.patch(f"{SERVE}?dryRun=All", {"spec": {"replicas": 0}})
    assert child(answer.body, "spec", "replicas") == 0
    created = await simulation.caller.post(
        f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "one"}}
    )
    assert created.status == HTTPStatus.CREATED
    await simulation.caller.delete(f"{SERVE}?dryRun=All")
    assert simulation.replicas("Deployment", "serve") == 2
    assert (await simulation.caller.get(f"{CONFIG_MAPS}/one")).status == HTTPStatus.NOT_FOUND


async def test_null_in_a_merge_patch_removes(simulation: Simulation) -> None:
    path = f"{NOTEBOOKS}/notebook-1"
    await simulation.caller.patch(path, {"metadata": {"annotations": {"a": "b", "c": "d"}}})
    answer = await simulation.caller.patch(path, {"metadata": {"annotations": {"a": None}}})
    assert texts(answer.body, "metadata", "annotations") == {"c": "d"}


async def test_a_custom_kind_takes_no_strategic_merge_patch(simulation: Simulation) -> None:
    path = f"{NOTEBOOKS}/notebook-1"
    answer = await simulation.caller.patch(path, {"metadata": {"labels": {}}}, kind=STRATEGIC)
    assert refused(answer) == (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType")
    built_in = await simulation.caller.patch(SERVE, {"spec": {"replicas": 1}}, kind=STRATEGIC)
    assert built_in.status == HTTPStatus.OK


async def test_a_json_patch_tests_before_it_writes(simulation: Simulation) -> None:
    size = {"op": "replace", "path": "/spec/replicas", "value": 0}
    wrong = [{"op": "test", "path": "/metadata/name", "value": "another"}, size]
    assert refused(await simulation.caller.patch(SERVE, wrong, kind=JSON_PATCH)) == INVALID
    right = [
        {"op": "test", "path": "/metadata/name", "value": "serve"},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/gpu-pruner.io~1paused", "value": "x"},
        {"op": "remove", "path": "/metadata/labels/app"},
        {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "side"}},
        size,
    ]
    answer = await simulation.caller.patch(SERVE, right, kind=JSON_PATCH)
    assert answer.status == HTTPStatus.OK
    assert texts(answer.body, "metadata", "annotations") == {"gpu-pruner.io/paused": "x"}
    assert texts(answer.body, "metadata", "labels") == {}
    containers = elements(answer.body, "spec", "template", "spec", "containers")
    assert [text(one, "name") for one in containers] == ["main", "side"]
    assert child(answer.body, "spec", "replicas") == 0


async def test_the_scale_resource_drops_what_is_no_size(simulation: Simulation) -> None:
    patch = {"metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 0}}
    answer = await simulation.caller.patch(f"{SERVE}/scale", patch)
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("Scale", "autoscaling/v1")
    serve = (await simulation.caller.get(SERVE)).body
    assert child(serve, "spec", "replicas") == 0
    assert texts(serve, "metadata", "annotations") == {}


async def test_the_scale_resource_checks_the_version(simulation: Simulation) -> None:
    stale = (await simulation.caller.get(f"{SERVE}/scale")).version
    await simulation.caller.patch(SERVE, {"metadata": {"labels": {"a": "b"}}})
    patch = {"metadata": {"resourceVersion": stale}, "spec": {"replicas": 0}}
    assert refused(await simulation.caller.patch(f"{SERVE}/scale", patch)) == CONFLICT
    assert simulation.replicas("Deployment", "serve") == 2


async def test_a_finalizer_keeps_what_was_deleted(simulation: Simulation) -> None:
    path = f"{CONFIG_MAPS}/one"
    metadata: JsonObject = {"name": "one", "finalizers": ["example.com/wait"]}
    await simulation.caller.post(CONFIG_MAPS, {"metadata": metadata})
    await simulation.caller.delete(path)
    assert text((await simulation.caller.get(path)).body, "metadata", "deletionTimestamp")
    await simulation.caller.patch(path, {"metadata": {"finalizers": None}})
    assert (await simulation.caller.get(path)).status == HTTPStatus.NOT_FOUND


async def test_requests_of_a_container_follow_its_limits(simulation: Simulation) -> None:
    limits = {"nvidia.com/gpu": "1"}
    container = {"name": "main", "resources": {"limits": limits}}
    body: JsonObject = {"metadata": {"name": "bare"}, "spec": {"containers": [container]}}
    answer = await simulation.caller.post(PODS, body)
    resources = child(elements(answer.body, "spec", "containers")[0], "resources")
    assert resources == {"limits": limits, "requests": limits}


async def test_a_body_that_is_no_object_is_a_bad_request(simulation: Simulation) -> None:
    patched = await simulation.caller.patch(SERVE, ["list"])
    posted = await simulation.caller.send("POST", DEPLOYMENTS, body="text")
    assert {patched.status, posted.status} == {HTTPStatus.BAD_REQUEST}


async def test_a_custom_kind_exists_while_its_definition_does(simulation: Simulation) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await simulation.caller.get(THINGS)).body == {}
    await simulation.caller.post(definitions, CRD)
    assert (await simulation.caller.get(THINGS)).body["kind"] == "ThingList"
    definition = await simulation.caller.get(f"{definitions}/things.things.example")
    conditions = elements(definition.body, "status", "conditions")
    assert ("Established", "True") in [(text(o, "type"), text(o, "status")) for o in conditions]
    await simulation.caller.delete(f"{definitions}/things.things.example")
    assert (await simulation.caller.get(THINGS)).body == {}


async def test_unknown_fields_of_a_custom_kind_are_dropped(custom: Simulation) -> None:
    answer = await custom.caller.patch(f"{THINGS}/one", {"spec": {"misspelt": 1, "size": 5}})
    assert child(answer.body, "spec") == {"owner": "me", "size": 5}


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"spec": {"size": "many"}}, "spec.size"),
        ({"spec": {"size": True}}, "spec.size"),
        ({"spec": {"owner": None}}, "spec.owner"),
        ({"spec": {"owner": "you"}}, "spec.owner"),
        ({"spec": {"owner": "too-long-by-far"}}, "spec.owner"),
    ],
)
async def test_a_custom_object_must_fit_its_schema(
    custom: Simulation, patch: JsonObject, field: str
) -> None:
    answer = await custom.caller.patch(f"{THINGS}/one", patch)
    assert refused(answer) == INVALID
    assert elements(answer.body, "details", "causes")[0]["field"] == field


@pytest.mark.parametrize("status", [{"phase": "Odd"}, {"due": "soon"}, {"due": "2026-01-31T10:00"}])
async def test_a_custom_status_must_fit_its_schema(custom: Simulation, status: JsonObject) -> None:
    answer = await custom.caller.patch(f"{THINGS}/one/status", {"status": status})
    assert refused(answer) == INVALID


async def test_columns_of_a_custom_kind_are_printed(custom: Simulation) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    due = {"status": {"due": "2026-01-31T11:58:30Z"}}
    await custom.caller.patch(f"{THINGS}/one/status", due)
    answer = await custom.caller.get(THINGS, accept=table)
    assert elements(answer.body, "rows")[0]["cells"] == ["one", 3, "90s"]
    later = {"status": {"due": "2026-01-31T12:58:30Z"}}
    await custom.caller.patch(f"{THINGS}/one/status", later)
    answer = await custom.caller.get(THINGS, accept=table)
    assert elements(answer.body, "rows")[0]["cells"] == ["one", 3, "<invalid>"]

"""Custom kinds: what a CRD's schema does to what is written, and how its objects are shown."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

import pytest
import yaml
from support.bodies import deployment, thing
from support.caller import Answer
from support.servers import Server, installed

from gpu_pruner.kube.gpuworkloads import manifest_for, name_for
from gpu_pruner.model.workload import RootRef
from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, text

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
OURS = Path(__file__).parents[2] / "deploy" / "crds" / "gpuworkloads.yaml"


def fields(answer: Answer) -> list[str]:
    return [text(one, "field") for one in elements(answer.body, "details", "causes")]


def with_spec(**spec: object) -> JsonObject:
    return thing("one") | {"spec": {"owner": "me"} | spec}


async def test_a_new_kind_is_established(server: Server, things: str) -> None:
    crd = await server.caller.get(f"{CRDS}/things.contract.example")

    assert text(crd.body, "status", "acceptedNames", "kind") == "Thing"
    conditions = {text(c, "type"): c for c in elements(crd.body, "status", "conditions")}
    assert {"NamesAccepted", "Established"} <= set(conditions)
    assert text(conditions["Established"], "status") == "True"


async def test_defaults_are_filled_in_and_unknown_fields_dropped(
    server: Server, things: str
) -> None:
    body = with_spec(unknown=1, tags={"a": "b"}, free={"any": {"thing": 1}})

    answer = await server.caller.post(things, body | {"stray": True})

    assert answer.body["spec"] == {
        "owner": "me",
        "color": "blue",
        "tags": {"a": "b"},
        "free": {"any": {"thing": 1}},
    }
    assert "stray" not in answer.body


async def test_an_unknown_field_is_warned_of_or_refused(server: Server, things: str) -> None:
    await server.caller.post(things, thing("two"))
    body = with_spec(unknown=1)
    patch: JsonObject = {"spec": {"unknown": 1}}

    strict = await server.caller.post(f"{things}?fieldValidation=Strict", body)
    patched = await server.caller.patch(f"{things}/two?fieldValidation=Strict", patch)
    silent = await server.caller.patch(f"{things}/two?fieldValidation=Ignore", patch)
    warned = await server.caller.post(things, body)

    assert (strict.status, strict.reason) == (400, "BadRequest")
    assert 'unknown field "spec.unknown"' in text(strict.body, "message")
    assert (patched.status, patched.reason) == (422, "Invalid")
    assert (silent.status, "Warning" in silent.headers) == (200, False)
    assert warned.status == HTTPStatus.CREATED
    assert warned.headers["Warning"] == '299 - "unknown field \\"spec.unknown\\""'


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"size": "3"}, "spec.size"),
        ({"size": -1}, "spec.size"),
        ({"size": 10}, "spec.size"),
        ({"size": True}, "spec.size"),
        ({"owner": "far too long"}, "spec.owner"),
        ({"color": "green"}, "spec.color"),
        ({"name": "a"}, "spec.name"),
        ({"name": "UPPER"}, "spec.name"),
        ({"until": "tomorrow"}, "spec.until"),
        ({"tags": {"a": 1}}, "spec.tags.a"),
        ({"tags": ["a"]}, "spec.tags"),
        ({"free": 1}, "spec.free"),
    ],
)
async def test_a_value_that_breaks_the_schema(
    server: Server, things: str, spec: JsonObject, field: str
) -> None:
    await server.caller.post(things, thing("two"))

    made = await server.caller.post(things, with_spec(**spec))
    patched = await server.caller.patch(f"{things}/two", {"spec": spec})

    assert (made.status, made.reason) == (422, "Invalid")
    assert (patched.status, patched.reason) == (422, "Invalid")
    assert field in fields(made)
    assert field in fields(patched)


async def test_a_field_that_is_required(server: Server, things: str) -> None:
    await server.caller.post(things, thing("two"))

    made = await server.caller.post(things, thing("one") | {"spec": {}})
    patched = await server.caller.patch(f"{things}/two", {"spec": {"owner": None}})

    assert (made.status, patched.status) == (422, 422)
    assert "spec.owner" in fields(made)
    assert "spec.owner" in fields(patched)


async def test_a_field_that_may_not_change(server: Server, things: str) -> None:
    await server.caller.post(things, thing("one"))

    answer = await server.caller.patch(f"{things}/one", {"spec": {"owner": "you"}})

    assert (answer.status, fields(answer)) == (422, ["spec.owner"])


async def test_null_is_kept_only_where_it_is_allowed(server: Server, things: str) -> None:
    answer = await server.caller.post(things, with_spec(until=None))

    assert answer.status == HTTPStatus.CREATED
    assert child(answer.body, "spec") == {"owner": "me", "color": "blue", "until": None}


async def test_a_body_must_say_what_it_is(server: Server, things: str) -> None:
    nameless = {key: one for key, one in thing("one").items() if key not in {"kind", "apiVersion"}}

    answer = await server.caller.post(things, nameless)

    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_it_is_shown_in_its_columns(server: Server, things: str) -> None:
    await server.caller.post(things, with_spec(size=3))

    answer = await server.caller.get(things, accept=TABLE)

    assert (answer.body["kind"], answer.body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    columns = elements(answer.body, "columnDefinitions")
    assert [(one["name"], one["type"], one["priority"]) for one in columns] == [
        ("Name", "string", 0),
        ("Owner", "string", 0),
        ("Size", "integer", 1),
        ("Age", "date", 0),
    ]
    (row,) = elements(answer.body, "rows")
    cells = row["cells"]
    assert isinstance(cells, list)
    assert cells[:3] == ["one", "me", 3]
    assert str(cells[3]).endswith("s")
    assert text(row, "object", "kind") == "PartialObjectMetadata"


async def test_a_custom_kind_can_be_scaled(server: Server, things: str) -> None:
    await server.caller.post(things, with_spec(size=3))
    await server.caller.patch(f"{things}/one/status", {"status": {"size": 2}})
    path = f"{things}/one/scale"

    before = await server.caller.get(path)
    after = await server.caller.patch(path, {"spec": {"replicas": 0}})

    assert (before.body["kind"], before.body["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (before.body["spec"], before.body["status"]) == ({"replicas": 3}, {"replicas": 2})
    assert child(after.body, "spec", "replicas") in {0, None}
    whole = await server.caller.get(f"{things}/one")
    assert child(whole.body, "spec", "size") == 0


async def test_a_kind_that_is_removed_is_gone(server: Server, thing_crd: JsonObject) -> None:
    name = f"gone-{server.namespace}.example"
    spec = mapping(thing_crd, "spec") | {"group": name}
    crd = thing_crd | {"metadata": {"name": f"things.{name}"}, "spec": spec}
    await installed(server.caller, crd)
    path = server.path("things", group=f"{name}/v1")
    body = thing("one") | {"apiVersion": f"{name}/v1"}
    assert (await server.caller.post(path, body)).status == HTTPStatus.CREATED

    await server.caller.delete(f"{CRDS}/things.{name}")

    await server.until_gone(f"{CRDS}/things.{name}")
    await server.until_gone(path)


async def test_our_own_kind_is_accepted_as_we_write_it(server: Server) -> None:
    await installed(server.caller, yaml.safe_load(OURS.read_text("utf-8")))
    owner = await server.caller.post(server.deployments, deployment("train"))
    root = RootRef("Deployment", server.namespace, "train", group="apps", uid=owner.uid)
    path = server.path("gpuworkloads", group="gpu-pruner.io/v1alpha1")

    made = await server.caller.post(f"{path}?fieldValidation=Strict", manifest_for(root))
    moved = await server.caller.patch(
        f"{path}/{name_for(root)}", {"spec": {"rootRef": {"uid": "another"}}}
    )

    assert (made.status, made.name) == (HTTPStatus.CREATED, name_for(root))
    assert (moved.status, moved.reason) == (422, "Invalid")

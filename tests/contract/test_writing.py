"""Create, update, patch and delete: what the server fills in, refuses and leaves alone."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from support.bodies import deployment, event, thing
from support.caller import Answer
from support.servers import Server

from gpu_pruner.sim.patches import JSON_PATCH, STRATEGIC
from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, number, text, texts

ANNOTATED: JsonObject = {"metadata": {"annotations": {"example/note": "x", "example/other": "y"}}}


def fields(answer: Answer) -> list[str]:
    """Return the fields that a refusal is about."""
    return [text(one, "field") for one in elements(answer.body, "details", "causes")]


@pytest.fixture
async def path(server: Server) -> str:
    """Return the path of a new Deployment."""
    answer = await server.caller.post(server.deployments, deployment())
    assert answer.status == HTTPStatus.CREATED
    return f"{server.deployments}/server"


async def test_a_new_object_gets_an_identity(server: Server) -> None:
    body = deployment()
    body["status"] = {"replicas": 7}

    answer = await server.caller.post(server.deployments, body)

    assert answer.status == HTTPStatus.CREATED
    metadata = mapping(answer.body, "metadata")
    assert (metadata["name"], metadata["namespace"]) == ("server", server.namespace)
    assert len(answer.uid) == 36
    assert answer.version.isdecimal()
    assert text(metadata, "creationTimestamp").endswith("Z")
    assert metadata["generation"] == 1
    assert number(answer.body, "status", "replicas") == 0


async def test_a_name_is_made_where_a_prefix_is_given(server: Server) -> None:
    answers = [
        await server.caller.post(server.config_maps, {"metadata": {"generateName": "made-"}})
        for _ in range(2)
    ]

    assert all(one.name.startswith("made-") and len(one.name) == 10 for one in answers)
    assert answers[0].name != answers[1].name


@pytest.mark.parametrize(
    ("metadata", "status", "field"),
    [
        ({}, 422, "metadata.name"),
        ({"name": "Upper"}, 422, "metadata.name"),
        ({"name": "a/b"}, 422, "metadata.name"),
        ({"name": "x" * 254}, 422, "metadata.name"),
        ({"name": "one", "namespace": "other"}, 400, None),
        ({"name": "one", "labels": {"a b": "c"}}, 422, "metadata.labels"),
        ({"name": "one", "labels": {"a": "x" * 64}}, 422, "metadata.labels"),
        ({"name": "one", "labels": {"a": 1}}, 400, None),
        ({"name": "one", "annotations": {"a": 1}}, 400, None),
        ({"name": "one", "annotations": {"a b": "c"}}, 422, "metadata.annotations"),
        (
            {"name": "one", "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x"}]},
            422,
            "metadata.ownerReferences.uid",
        ),
        ({"name": "one", "resourceVersion": "5"}, 500, None),
    ],
)
async def test_metadata_that_cannot_be(
    server: Server, metadata: JsonObject, status: int, field: str | None
) -> None:
    answer = await server.caller.post(server.config_maps, {"metadata": metadata})

    assert answer.status == status
    assert fields(answer) == ([field] if field else [])


async def test_a_body_of_another_kind_is_refused(server: Server) -> None:
    body = deployment() | {"kind": "StatefulSet", "apiVersion": "apps/v1"}

    answer = await server.caller.post(server.deployments, body)

    assert (answer.status, answer.reason) == (HTTPStatus.BAD_REQUEST, "BadRequest")


async def test_a_merge_patch_merges_and_null_removes(server: Server, path: str) -> None:
    await server.caller.patch(path, ANNOTATED)

    answer = await server.caller.patch(path, {"metadata": {"annotations": {"example/note": None}}})

    found = texts(answer.body, "metadata", "annotations")
    assert found.get("example/other") == "y"
    assert "example/note" not in found
    assert number(answer.body, "spec", "replicas") == 1


async def test_what_is_empty_is_left_out(server: Server) -> None:
    path = f"{server.config_maps}/one"
    await server.caller.post(server.config_maps, {"metadata": {"name": "one"}})
    await server.caller.patch(path, ANNOTATED)

    nothing = {"example/note": None, "example/other": None}
    answer = await server.caller.patch(path, {"metadata": {"annotations": nothing}})

    assert child(answer.body, "metadata", "annotations") is None


async def test_a_patch_that_changes_nothing_makes_no_version(server: Server) -> None:
    made = await server.caller.post(server.config_maps, {"metadata": {"name": "one"}})

    answer = await server.caller.patch(f"{server.config_maps}/one", {"data": None})

    assert answer.version == made.version


async def test_null_brings_back_the_default(server: Server, path: str) -> None:
    await server.caller.patch(path, {"spec": {"replicas": 3}})

    answer = await server.caller.patch(path, {"spec": {"replicas": None}})

    assert number(answer.body, "spec", "replicas") == 1


@pytest.mark.parametrize(
    ("patch", "status", "field"),
    [
        ({"metadata": {"resourceVersion": "1"}}, 409, None),
        ({"metadata": {"uid": "another"}}, 422, "metadata.uid"),
        ({"metadata": {"uid": "another", "resourceVersion": "1"}}, 409, None),
        ({"metadata": {"name": "another"}}, 400, None),
        ({"metadata": {"namespace": "another"}}, 400, None),
        ({"spec": {"replicas": -1}}, 422, "spec.replicas"),
        ({"spec": {"replicas": "many"}}, 422, "patch"),
        ({"metadata": {"annotations": {"a": 1}}}, 422, "patch"),
    ],
)
async def test_a_patch_that_is_refused_changes_nothing(
    server: Server, path: str, patch: JsonObject, status: int, field: str | None
) -> None:
    body = patch | {"spec": mapping(patch, "spec") | {"paused": True}}

    answer = await server.caller.patch(path, body)

    assert answer.status == status
    assert field is None or field in fields(answer)
    assert child((await server.caller.get(path)).body, "spec", "paused") is None


async def test_right_preconditions_hold(server: Server, path: str) -> None:
    while True:
        now = await server.caller.get(path)
        condition: JsonObject = {"uid": now.uid, "resourceVersion": now.version}
        answer = await server.caller.patch(path, {"metadata": condition, "spec": {"replicas": 0}})
        if answer.status != HTTPStatus.CONFLICT:  # the controllers write, too
            break

    assert answer.status == HTTPStatus.OK
    assert number(answer.body, "spec", "replicas", default=-1) == 0
    assert number(answer.body, "metadata", "generation") == 2
    assert int(answer.version) > int(now.version)


async def test_what_the_server_owns_cannot_be_patched(server: Server) -> None:
    made = await server.caller.post(server.config_maps, {"metadata": {"name": "one"}})
    wanted = {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 9}

    answer = await server.caller.patch(f"{server.config_maps}/one", {"metadata": wanted})

    assert (answer.status, answer.version) == (HTTPStatus.OK, made.version)
    assert "generation" not in mapping(answer.body, "metadata")


async def test_generation_counts_what_is_desired(server: Server, things: str) -> None:
    await server.caller.post(things, thing("one"))
    path = f"{things}/one"

    noted = await server.caller.patch(path, ANNOTATED)
    sized = await server.caller.patch(path, {"spec": {"size": 2}})
    told = await server.caller.patch(f"{path}/status", {"status": {"phase": "New"}})

    seen = [number(one.body, "metadata", "generation") for one in (noted, sized, told)]
    assert seen == [1, 2, 2]


@pytest.mark.parametrize("kind", ["deployments", "things"])
async def test_status_and_the_rest_are_two_things(server: Server, things: str, kind: str) -> None:
    root, body = (things, thing("one")) if kind == "things" else (server.deployments, deployment())
    made = await server.caller.post(root, body)
    path = f"{root}/{made.name}"
    both: JsonObject = {
        "status": {"size": 7, "replicas": 7},
        "spec": {"size": 5, "paused": True},
    }

    main = await server.caller.patch(path, both | {"metadata": {"labels": {"by": "main"}}})
    status = await server.caller.patch(
        f"{path}/status", both | {"spec": {"size": 6}, "metadata": {"labels": {"by": "status"}}}
    )

    field = "size" if kind == "things" else "replicas"
    assert child(main.body, "status", field) != 7
    assert child(status.body, "status", field) == 7
    assert child(status.body, "spec", "size") in {5, None}
    assert texts(status.body, "metadata", "labels") == {"by": "main"}


async def test_annotations_by_the_status_subresource(server: Server, things: str) -> None:
    """Of a built-in kind they are kept, of a custom one they are not."""
    await server.caller.post(server.deployments, deployment())
    await server.caller.post(things, thing("one"))

    built_in = await server.caller.patch(f"{server.deployments}/server/status", ANNOTATED)
    custom = await server.caller.patch(f"{things}/one/status", ANNOTATED)

    assert texts(built_in.body, "metadata", "annotations").get("example/note") == "x"
    assert texts(custom.body, "metadata", "annotations") == {}


async def test_a_put_replaces(server: Server) -> None:
    body: JsonObject = {"metadata": {"name": "one", "labels": {"a": "b"}}, "data": {"a": "b"}}
    made = await server.caller.post(server.config_maps, body)

    answer = await server.caller.put(
        f"{server.config_maps}/one", {"metadata": {"name": "one"}, "data": {"c": "d"}}
    )

    assert answer.status == HTTPStatus.OK
    assert (answer.uid, answer.body["data"]) == (made.uid, {"c": "d"})
    assert child(answer.body, "metadata", "labels") is None


async def test_a_put_names_the_object_of_its_path(server: Server, path: str) -> None:
    other = await server.caller.put(path, deployment("other"))
    none = await server.caller.put(f"{server.deployments}/none", deployment("none"))
    alien = deployment()
    alien["metadata"] = {"name": "server", "uid": "another"}

    assert (other.status, none.status) == (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)
    assert (await server.caller.put(path, alien)).status == HTTPStatus.CONFLICT


async def test_a_put_of_a_custom_object_needs_its_version(server: Server, things: str) -> None:
    made = await server.caller.post(things, thing("one"))
    path = f"{things}/one"

    without = await server.caller.put(path, thing("one"))
    body = made.body | {"spec": {"owner": "me", "size": 4}}
    with_it = await server.caller.put(path, body)
    again = await server.caller.put(path, body)

    assert (without.status, fields(without)) == (422, ["metadata.resourceVersion"])
    assert (with_it.status, again.status) == (200, 409)


async def test_a_dry_run_stores_nothing(server: Server) -> None:
    body: JsonObject = {"metadata": {"name": "one"}, "data": {"a": "b"}}
    path = f"{server.config_maps}/one"
    would = await server.caller.post(f"{server.config_maps}?dryRun=All", body)
    assert (would.status, would.name) == (HTTPStatus.CREATED, "one")
    assert (await server.caller.get(path)).status == HTTPStatus.NOT_FOUND
    made = await server.caller.post(server.config_maps, body)

    patched = await server.caller.patch(f"{path}?dryRun=All", {"data": {"a": "c"}})
    deleted = await server.caller.delete(f"{path}?dryRun=All")

    assert patched.body["data"] == {"a": "c"}
    assert deleted.status == HTTPStatus.OK
    now = await server.caller.get(path)
    assert (now.version, now.body["data"]) == (made.version, {"a": "b"})


async def test_an_unknown_wish_is_invalid(server: Server) -> None:
    body: JsonObject = {"metadata": {"name": "one"}}

    for query in ("dryRun=Some", "fieldValidation=Some"):
        answer = await server.caller.post(f"{server.config_maps}?{query}", body)
        assert (answer.status, fields(answer)) == (422, [query.partition("=")[0]])


async def test_a_strategic_merge_patch_is_for_built_in_kinds(
    server: Server, path: str, things: str
) -> None:
    await server.caller.post(things, thing("one"))

    built_in = await server.caller.patch(path, {"spec": {"replicas": 0}}, kind=STRATEGIC)
    custom = await server.caller.patch(f"{things}/one", {"spec": {"size": 0}}, kind=STRATEGIC)

    assert number(built_in.body, "spec", "replicas", default=-1) == 0
    assert (custom.status, custom.reason) == (415, "UnsupportedMediaType")


async def test_a_json_patch_may_test_first(server: Server, path: str) -> None:
    change: JsonObject = {"op": "replace", "path": "/spec/replicas", "value": 0}
    right: JsonObject = {"op": "test", "path": "/spec/replicas", "value": 1}

    wrong = await server.caller.patch(path, [right | {"value": 2}, change], kind=JSON_PATCH)
    good = await server.caller.patch(path, [right, change], kind=JSON_PATCH)
    nowhere = await server.caller.patch(path, [change | {"path": "/none/x"}], kind=JSON_PATCH)

    assert (wrong.status, wrong.reason) == (422, "Invalid")
    assert (good.status, number(good.body, "spec", "replicas", default=-1)) == (200, 0)
    assert nowhere.status == 422


@pytest.mark.parametrize(
    ("kind", "body"), [("application/merge-patch+json", [1]), (JSON_PATCH, {"op": "test"})]
)
async def test_a_patch_of_the_wrong_shape(
    server: Server, path: str, kind: str, body: object
) -> None:
    answer = await server.caller.patch(path, body, kind=kind)

    assert (answer.status, answer.reason) == (HTTPStatus.BAD_REQUEST, "BadRequest")


async def test_a_delete_with_wrong_preconditions_deletes_nothing(server: Server) -> None:
    made = await server.caller.post(server.config_maps, {"metadata": {"name": "one"}})
    path = f"{server.config_maps}/one"

    other = await server.caller.delete(path, {"preconditions": {"uid": "another"}})
    old = await server.caller.delete(path, {"preconditions": {"resourceVersion": "1"}})

    assert {(one.status, one.reason) for one in (other, old)} == {(409, "Conflict")}
    right: JsonObject = {"uid": made.uid, "resourceVersion": made.version}
    assert (await server.caller.delete(path, {"preconditions": right})).status == HTTPStatus.OK
    assert (await server.caller.get(path)).status == HTTPStatus.NOT_FOUND


async def test_a_finalizer_holds_an_object_back(server: Server) -> None:
    path = f"{server.config_maps}/one"
    held: JsonObject = {"name": "one", "finalizers": ["example.com/hold"]}
    await server.caller.post(server.config_maps, {"metadata": held})

    answer = await server.caller.delete(path)

    assert (answer.status, answer.body["kind"]) == (HTTPStatus.OK, "ConfigMap")
    assert text(answer.body, "metadata", "deletionTimestamp")
    await server.caller.patch(path, {"metadata": {"finalizers": None}})
    assert (await server.caller.get(path)).status == HTTPStatus.NOT_FOUND


async def test_events_are_created_and_counted(server: Server) -> None:
    events = server.path("events")
    made = await server.caller.post(events, event("one", namespace=server.namespace))
    elsewhere = await server.caller.post(events, event("two", namespace="other"))

    counted = await server.caller.patch(f"{events}/one", {"count": 2})

    assert made.status == HTTPStatus.CREATED
    assert (elsewhere.status, fields(elsewhere)) == (422, ["involvedObject.namespace"])
    assert counted.body["count"] == 2
    wanted = f"{events}?fieldSelector=involvedObject.name%3Done,reason%3DIdle"
    assert [text(one, "message") for one in (await server.caller.get(wanted)).items] == [
        "It is idle."
    ]


async def test_dependents_go_with_their_owner(server: Server) -> None:
    owner = await server.caller.post(server.config_maps, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
    owned: JsonObject = {"name": "owned", "ownerReferences": [reference]}
    await server.caller.post(server.config_maps, {"metadata": owned})

    await server.caller.delete(f"{server.config_maps}/owner")

    await server.until_gone(f"{server.config_maps}/owned")


async def test_an_owner_waits_for_its_dependents_in_the_foreground(server: Server) -> None:
    owner = await server.caller.post(server.config_maps, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
    owned: JsonObject = {"name": "owned", "ownerReferences": [reference]}
    await server.caller.post(server.config_maps, {"metadata": owned})

    in_front: JsonObject = {"propagationPolicy": "Foreground"}
    answer = await server.caller.delete(f"{server.config_maps}/owner", in_front)

    assert (answer.status, answer.body["kind"]) == (HTTPStatus.OK, "ConfigMap")
    assert child(answer.body, "metadata", "finalizers") == ["foregroundDeletion"]
    await server.until_gone(f"{server.config_maps}/owner")
    assert (await server.caller.get(f"{server.config_maps}/owned")).status == HTTPStatus.NOT_FOUND


async def test_dependents_stay_where_they_are_orphaned(server: Server) -> None:
    owner = await server.caller.post(server.config_maps, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
    owned: JsonObject = {"name": "owned", "ownerReferences": [reference]}
    await server.caller.post(server.config_maps, {"metadata": owned})

    await server.caller.delete(f"{server.config_maps}/owner", {"propagationPolicy": "Orphan"})

    await server.until_gone(f"{server.config_maps}/owner")
    left = await server.caller.get(f"{server.config_maps}/owned")
    assert (left.status, elements(left.body, "metadata", "ownerReferences")) == (200, [])

"""Get and list: shapes, selectors, pages, and what is left of an object's metadata alone."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from urllib.parse import quote

import pytest
from support.bodies import event, thing
from support.servers import Server

from gpu_pruner.sim.tree import JsonObject, child, number, text, texts

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


def names(items: list[JsonObject]) -> list[str]:
    return [text(one, "metadata", "name") for one in items]


async def make(server: Server, *wanted: str, **labels: str) -> None:
    for name in wanted:
        body: JsonObject = {"metadata": {"name": name, "labels": labels}, "data": {"a": "b"}}
        answer = await server.caller.post(server.config_maps, body)
        assert answer.status == HTTPStatus.CREATED


async def test_an_object_says_its_kind(server: Server) -> None:
    await make(server, "one", color="red")

    answer = await server.caller.get(f"{server.config_maps}/one")

    assert answer.status == HTTPStatus.OK
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Date"].endswith("GMT")
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMap", "v1")
    assert child(answer.body, "metadata", "namespace") == server.namespace
    assert texts(answer.body, "metadata", "labels") == {"color": "red"}
    assert answer.version.isdecimal()
    assert len(answer.uid) == 36


async def test_a_list_of_a_built_in_kind_says_the_kind_once(server: Server) -> None:
    await make(server, "one")

    answer = await server.caller.get(f"{server.config_maps}?labelSelector=")

    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert answer.version.isdecimal()
    assert "continue" not in child(answer.body, "metadata")
    assert all("kind" not in one and "apiVersion" not in one for one in answer.items)


async def test_each_item_of_a_custom_kind_says_its_kind(server: Server, things: str) -> None:
    await server.caller.post(things, thing("one"))

    answer = await server.caller.get(things)

    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ThingList", "contract.example/v1")
    assert [(one["kind"], one["apiVersion"]) for one in answer.items] == [
        ("Thing", "contract.example/v1")
    ]


async def test_an_empty_list_has_no_items_but_says_so(server: Server) -> None:
    answer = await server.caller.get(server.deployments)

    assert answer.status == HTTPStatus.OK
    assert answer.body["items"] == []


async def test_a_list_of_all_namespaces_is_ordered_by_namespace_and_name(server: Server) -> None:
    await make(server, "two", "one")

    answer = await server.caller.get("/api/v1/configmaps")

    keys = [
        (text(one, "metadata", "namespace"), text(one, "metadata", "name")) for one in answer.items
    ]
    assert keys == sorted(keys)
    assert {(server.namespace, "one"), (server.namespace, "two")} <= set(keys)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("color=red", ["red"]),
        ("color==red", ["red"]),
        ("color!=red", ["blue", "plain"]),
        ("color in (red, blue)", ["blue", "red"]),
        ("color notin (red)", ["blue", "plain"]),
        ("color", ["blue", "red"]),
        ("!color,!kubernetes.io/x", ["plain"]),
        ("color,color!=blue", ["red"]),
    ],
)
async def test_labels_select(server: Server, selector: str, expected: list[str]) -> None:
    await make(server, "red", color="red")
    await make(server, "blue", color="blue")
    await make(server, "plain")

    answer = await server.caller.get(f"{server.config_maps}?labelSelector={quote(selector)}")

    assert [one for one in names(answer.items) if one != "kube-root-ca.crt"] == expected


async def test_fields_select(server: Server) -> None:
    await make(server, "one", "two")

    answer = await server.caller.get(f"{server.config_maps}?fieldSelector=metadata.name%3Done")

    assert names(answer.items) == ["one"]


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=" + quote("a in b"),
        "fieldSelector=" + quote("data.a=b"),
        "fieldSelector=" + quote("status.phase=Running"),
        "limit=many",
        "continue=nonsense",
    ],
)
async def test_a_query_that_cannot_be_carried_out_is_bad(server: Server, query: str) -> None:
    answer = await server.caller.get(f"{server.config_maps}?{query}")

    assert (answer.status, answer.reason) == (HTTPStatus.BAD_REQUEST, "BadRequest")


async def test_pages_show_one_state(server: Server) -> None:
    await make(server, *(f"page-{number}" for number in range(5)))
    own = "fieldSelector=" + quote("metadata.name!=kube-root-ca.crt")
    first = await server.caller.get(f"{server.config_maps}?limit=2&{own}")
    await make(server, "page-00")
    await server.caller.delete(f"{server.config_maps}/page-4")

    token = quote(text(first.body, "metadata", "continue"))
    second = await server.caller.get(f"{server.config_maps}?limit=2&{own}&continue={token}")
    token = quote(text(second.body, "metadata", "continue"))
    third = await server.caller.get(f"{server.config_maps}?limit=2&{own}&continue={token}")

    seen = [names(one.items) for one in (first, second, third)]
    assert seen == [["page-0", "page-1"], ["page-2", "page-3"], ["page-4"]]
    assert first.version == second.version == third.version
    assert "continue" not in child(third.body, "metadata")
    assert not any("remainingItemCount" in child(one.body, "metadata") for one in (first, second))


async def test_a_list_without_selectors_counts_what_remains(server: Server) -> None:
    await server.caller.post(f"{server.config_maps}", {"metadata": {"name": "one"}})
    for name in ("a", "b", "c"):
        await server.caller.post(server.path("events"), event(name, namespace=server.namespace))

    answer = await server.caller.get(f"{server.path('events')}?limit=1")

    assert number(answer.body, "metadata", "remainingItemCount") == 2


async def test_a_forgotten_list_is_expired(server: Server) -> None:
    await make(server, "one", "two", "three")
    first = await server.caller.get(f"{server.config_maps}?limit=1")
    await server.forget_history()

    token = quote(text(first.body, "metadata", "continue"))
    path = f"{server.config_maps}?limit=1&continue={token}"
    async with asyncio.timeout(60):  # the real server notices within 15 seconds
        while (answer := await server.caller.get(path)).status == HTTPStatus.OK:
            await asyncio.sleep(0.5)

    assert (answer.status, answer.reason) == (HTTPStatus.GONE, "Expired")


@pytest.mark.parametrize("kind", ["configmaps", "things"])
async def test_metadata_alone_can_be_had(server: Server, things: str, kind: str) -> None:
    await make(server, "one", color="red")
    await server.caller.post(things, thing("one", color="red"))
    path = things if kind == "things" else server.config_maps
    whole = await server.caller.get(f"{path}/one")

    one = await server.caller.get(f"{path}/one", accept=PARTIAL)
    all_ = await server.caller.get(f"{path}?labelSelector=color%3Dred", accept=PARTIAL_LIST)

    expected = {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": whole.body["metadata"],
    }
    assert one.body == expected
    assert all_.body["kind"] == "PartialObjectMetadataList"
    assert all_.body["apiVersion"] == "meta.k8s.io/v1"
    assert all_.items == [expected]

"""Who is told: the ladder, rung by rung."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.story import told_rules
from support.telling_time import START
from support.world import World

from gpu_pruner.model.audience import Address, AddressKind, Audience, Contact, Directory
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.model.signals import Period
from gpu_pruner.resolve.assemble import Reading, assemble
from gpu_pruner.resolve.audience import contact_of

RULES = told_rules()
READING = Reading(
    period=Period.ending(START, length=RULES.window_seconds, step_seconds=60),
    scrape_interval_seconds=30.0,
)
OWNER = "gpu-pruner.io/owner"
MENTIONS = "gpu-pruner.io/slack-mentions"
CREATOR = "notebooks.kubeflow.org/creator"
EVERYBODY_ELSE = Directory(channel="#gpu")


def named(*names: str, channel: str = "") -> Contact:
    return Contact(tuple(Address(AddressKind.NAME, one) for one in names), channel)


def of_view(view: ClusterView, directory: Directory) -> Audience:
    rules = replace(RULES, directory=directory)
    (workload,) = assemble(view, READING, now=START, rules=rules).workloads
    return workload.audience


def told(
    *,
    root: dict[str, str] | None = None,
    pods: list[dict[str, str]] | None = None,
    namespace: dict[str, str] | None = None,
    directory: Directory = EVERYBODY_ELSE,
    kind: str = "Notebook",
) -> Audience:
    spec: dict[str, Any] = {"kind": kind, "owner": {"annotations": root or {}}}
    spec["pods"] = [
        {"gpus": 1, "name": f"serve-{number}", "annotations": one}
        for number, one in enumerate(pods or [{}])
    ]
    spaces = {"team-a": {"annotations": namespace}} if namespace else {}
    return of_view(World({"serve": spec}, namespaces=spaces).view(), directory)


def found(audience: Audience) -> list[tuple[str, str]]:
    return [(one.address.text, one.found) for one in audience.people]


LADDER: list[tuple[dict[str, Any], str, str]] = [
    ({"root": {OWNER: "root"}}, "root", f"{OWNER} on Notebook serve"),
    ({"pods": [{OWNER: "pod"}]}, "pod", f"{OWNER} on pod serve-0"),
    ({"root": {CREATOR: "creator"}}, "creator", f"{CREATOR} on Notebook serve"),
    ({"namespace": {OWNER: "space"}}, "space", f"{OWNER} on namespace team-a"),
    ({"namespace": {"owner": "profile"}}, "profile", "owner on namespace team-a"),
    (
        {"directory": Directory(namespaces={"team-a": named("map")})},
        "map",
        "team-a in the setting audience.namespaces",
    ),
]


@pytest.mark.parametrize("rung", range(len(LADDER)))
def test_the_highest_rung_counts(rung: int) -> None:
    given: dict[str, Any] = {}
    for one, _, _ in reversed(LADDER[rung:]):
        for key, value in one.items():
            given[key] = given[key] | value if isinstance(given.get(key), dict) else value
    _, name, place = LADDER[rung]
    assert found(told(**given)) == [(name, place)]


@pytest.mark.parametrize(
    "key",
    ["opendatahub.io/username", "notebooks.kubeflow.org/creator",
     "notebooks.kubeflow.org/created-by"],
)  # fmt: skip
def test_what_platforms_write(key: str) -> None:
    assert found(told(root={key: "alice@example.com"})) == [
        ("alice@example.com", f"{key} on Notebook serve")
    ]


def test_owner_and_mentions_of_one_place_are_both_told() -> None:
    audience = told(root={MENTIONS: "<@U0123ABCD>", OWNER: "alice@example.com"})
    assert audience.names == "alice@example.com, U0123ABCD"


def test_pods_of_several_people() -> None:
    first, second = {OWNER: "bob"}, {OWNER: "alice, bob"}
    assert found(told(pods=[first, second])) == [
        ("bob", f"{OWNER} on pod serve-0"),
        ("alice", f"{OWNER} on pod serve-1"),
    ]


def test_the_order_of_the_pods_does_not_matter() -> None:
    view = World({"serve": {"pods": [{"annotations": {OWNER: one}} for one in "abcdefg"]}}).view()
    turned = replace(view, pods=tuple(reversed(view.pods)))
    assert of_view(view, EVERYBODY_ELSE) == of_view(turned, EVERYBODY_ELSE)


def test_more_people_than_are_told_is_said() -> None:
    audience = told(root={OWNER: "a1, b1, c1"}, pods=[{OWNER: "d1"}])
    assert audience.names == "a1, b1, c1"
    audience = told(pods=[{OWNER: "a1, b1, c1"}, {OWNER: "c1, d1, e1, f1, g1"}])
    assert audience.names == "a1, b1, c1, d1, e1"
    assert audience.unread == ("2 more people are named than the 5 who are told",)


def test_the_user_of_a_jupyterhub_server() -> None:
    view = World({"nb": {"kind": "Pod"}}).view()
    (pod,) = view.pods
    server = ServerName(pod.namespace, "alice", "gpu")
    audience = of_view(replace(view, pods=(replace(pod, server=server),)), EVERYBODY_ELSE)
    assert found(audience) == [("alice", "the user of the JupyterHub server alice/gpu")]


def test_nobody_is_named() -> None:
    assert told(directory=Directory()) == Audience()


def test_the_channel_of_everybody_else() -> None:
    channel = told().channel
    assert channel is not None
    assert (channel.name, channel.found) == ("#gpu", "the setting audience.channel")


def test_the_channel_of_a_namespace_stands_beside_its_people() -> None:
    directory = Directory(namespaces={"team-": named("map", channel="#team-a")}, channel="#gpu")
    audience = told(root={OWNER: "alice"}, directory=directory)
    assert audience.names == "alice"
    assert audience.channel is not None
    assert audience.channel.name == "#team-a"
    assert audience.channel.found == "team- in the setting audience.namespaces"


def test_a_user_cannot_write_to_a_channel() -> None:
    audience = told(root={OWNER: "#general"})
    assert audience.people == ()
    assert audience.channel is not None
    assert audience.channel.name == "#gpu"
    (clause,) = audience.unread
    assert clause == f"{OWNER} on Notebook serve names the channel #general: only the settings do"


def test_an_unreadable_owner_is_told_and_the_next_rung_counts() -> None:
    audience = told(root={OWNER: "<!channel>"}, namespace={"owner": "alice@example.com"})
    assert audience.names == "alice@example.com"
    assert audience.unread == (f"{OWNER} on Notebook serve says <!channel>, which is nobody",)


def test_a_service_account_is_nobody_to_tell() -> None:
    audience = told(
        root={"notebooks.kubeflow.org/created-by": "system:serviceaccount:team-a:pipeline"},
        namespace={"owner": "alice@example.com"},
    )
    assert audience.names == "alice@example.com"


@pytest.mark.parametrize(
    ("namespace", "key"),
    [
        ("team-a", "team-a"),
        ("team-a-dev", "team-a-"),
        ("team-b", "team-"),
        ("alice-dev", "alice"),
        ("alice", "alice"),
        ("bob-dev", "bob-"),
        ("alicent", None),
        ("team", None),
        ("team-x-1", "team-"),
        ("carol", None),
    ],
)
def test_which_entry_of_the_map_counts(namespace: str, key: str | None) -> None:
    keys = ("team-a", "team-a-", "team-", "alice", "bob", "bob-")
    directory = Directory(namespaces={one: named(one) for one in keys})
    entry = contact_of(namespace, directory)
    assert (None if entry is None else entry[0]) == key

"""Whatever is written on a workload, it addresses few people, never everybody, and no channel."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from strategies import HOSTILE_TEXT
from support.story import told_rules
from support.telling_time import START
from support.world import World

from gpu_pruner.model.audience import Address, AddressKind, Audience, Contact, Directory
from gpu_pruner.model.signals import Period
from gpu_pruner.resolve.addresses import MOST_PEOPLE, addresses
from gpu_pruner.resolve.assemble import Reading, assemble
from gpu_pruner.resolve.audience import contact_of

RULES = told_rules()
READING = Reading(
    period=Period.ending(START, length=RULES.window_seconds, step_seconds=60),
    scrape_interval_seconds=30.0,
)
KEYS = (
    "gpu-pruner.io/owner",
    "gpu-pruner.io/slack-mentions",
    "opendatahub.io/username",
    "notebooks.kubeflow.org/creator",
    "notebooks.kubeflow.org/created-by",
    "owner",
)
PIECES = (
    "alice@example.com", "<@U0123ABCD>", "<!subteam^S0123ABCD>", "<!channel>", "<!here|x>", "@here",
    "@everyone", "#general", "<#C0123ABCD>", "<https://example.com|x>", "bob", "@", "<", ">", "|",
    ",", ";", "\n", " ", "\u202e", "\x07", "&lt;", "*", "`", "system:serviceaccount:a:b",
)  # fmt: skip
WRITTEN = (
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
    | st.lists(st.sampled_from((*PIECES, *"cdefgh")), max_size=30).map(",".join)
    | HOSTILE_TEXT
)
NOTES = st.dictionaries(st.sampled_from(KEYS), WRITTEN, max_size=4)
NAME = re.compile(r"[\w][\w.+:@ -]*")
EVERYBODY = re.compile(r"(^|@)(here|channel|everyone)\b", re.IGNORECASE)


def decided(
    *, root: dict[str, str], pod: dict[str, str], space: dict[str, str], directory: Directory
) -> Audience:
    spec: dict[str, Any] = {
        "kind": "Notebook",
        "owner": {"annotations": root},
        "pods": [{"gpus": 1, "annotations": pod}],
    }
    view = World({"serve": spec}, namespaces={"team-a": {"annotations": space}}).view()
    rules = told_rules({"directory": directory})
    (workload,) = assemble(view, READING, now=START, rules=rules).workloads
    return workload.audience


def assert_safe(address: Address) -> None:
    text = address.text
    assert 0 < len(text) <= 254
    assert text.isprintable()
    assert not set(text) & set("<>|&!#`*,;\"'\\/()")
    match address.kind:
        case AddressKind.NAME:
            assert NAME.fullmatch(text)
            assert not EVERYBODY.search(text)
        case AddressKind.EMAIL:
            assert text.count("@") == 1
        case AddressKind.SLACK_USER:
            assert re.fullmatch(r"[UW][A-Z0-9]+", text)
        case AddressKind.SLACK_GROUP:
            assert re.fullmatch(r"S[A-Z0-9]+", text)


@given(WRITTEN)
def test_every_address_is_safe(text: str) -> None:
    told = addresses(text)
    assert len(told.people) <= MOST_PEOPLE
    for one in told.people:
        assert_safe(one)
    for channel in told.channels:
        assert re.fullmatch(r"#[\w-]+|[CG][A-Z0-9]+", channel)


@given(NOTES, NOTES, NOTES)
def test_no_annotation_addresses_more_than_a_few_people(
    root: dict[str, str], pod: dict[str, str], space: dict[str, str]
) -> None:
    audience = decided(root=root, pod=pod, space=space, directory=Directory(channel="#gpu"))
    assert len(audience.people) <= MOST_PEOPLE
    assert audience.channel is not None
    assert audience.channel.name == "#gpu"
    for one in audience.people:
        assert_safe(one.address)
        assert one.found.isprintable()
    assert all(clause.isprintable() and len(clause) < 200 for clause in audience.unread)


@given(NOTES, NOTES)
def test_who_is_named_on_the_root_is_told_whatever_is_written_elsewhere(
    pod: dict[str, str], space: dict[str, str]
) -> None:
    entry = Contact((Address(AddressKind.NAME, "map"),), "#map")
    directory = Directory(namespaces={"team-a": entry})
    root = {"gpu-pruner.io/owner": "alice@example.com"}
    audience = decided(root=root, pod=pod, space=space, directory=directory)
    assert audience.names == "alice@example.com"


@given(
    st.lists(st.from_regex(r"[ab]{1,2}(-[ab]?){0,3}", fullmatch=True), max_size=6, unique=True),
    st.from_regex(r"[ab]{1,2}(-[ab]{1,2}){0,3}", fullmatch=True),
)
def test_the_longest_beginning_counts(keys: list[str], namespace: str) -> None:
    directory = Directory(
        namespaces={key: Contact((Address(AddressKind.NAME, key),)) for key in keys}
    )
    begins = {
        key
        for key in keys
        if (key.endswith("-") and namespace.startswith(key))
        or ("-" not in key and namespace.startswith(f"{key}-"))
    }
    entry = contact_of(namespace, directory)
    if namespace in keys:
        assert entry is not None
        assert entry[0] == namespace
    elif not begins:
        assert entry is None
    else:
        assert entry is not None
        assert len(entry[0]) == max(map(len, begins))

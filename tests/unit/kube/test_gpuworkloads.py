"""A GPUWorkload is named, made, patched and read back without loss, whatever is in it."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_pruner.errors import ClusterError
from gpu_pruner.kube.bookkeeping import Reading, merged, read, to_bookkeeping, unreadable
from gpu_pruner.kube.gpuworkloads import (
    GPUWorkload,
    GPUWorkloadStatus,
    PauseStatus,
    manifest_for,
    name_for,
    status_patch,
    whole_seconds,
)
from gpu_pruner.kube.wire import Meta, OwnerReference
from gpu_pruner.model.book import Book, PauseRecord, Phase
from gpu_pruner.model.cluster import Bookkeeping
from gpu_pruner.model.workload import Intent, Release, RootRef

ROOT = RootRef("Deployment", "team-a", "train", "apps", "0a1b2c3d-4e5f-6789-abcd-ef0123456789")
SPEC = {
    "rootRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "uid": ROOT.uid}
}

moments = st.none() | st.floats(min_value=0, max_value=4e9)
words = st.text(max_size=20)
pauses = st.builds(
    PauseRecord,
    lever=words,
    replicas=st.none() | st.integers(0, 1000),
    uid=words,
    generation=st.integers(0, 2**40),
    at=st.floats(min_value=0, max_value=4e9),
    decision=words,
    why=words,
    by=words,
)
books = st.builds(
    Book,
    phase=st.sampled_from(Phase),
    verdict=st.sampled_from(["", "active", "idle", "unknown"]),
    reason=words,
    message=words,
    gpus=st.integers(0, 10_000),
    confirmations=st.integers(0, 10_000),
    idle_since=moments,
    nominated_at=moments,
    warned_at=moments,
    warned_via=st.lists(words, max_size=3).map(tuple),
    warned_mode=words,
    pause_at=moments,
    frozen_since=moments,
    paused_at=moments,
    pause=st.none() | pauses,
    long_keep_until=moments,
    long_keep_read_at=moments,
    counted_wrong=words,
)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


def stored(spec: object = SPEC, status: object = None, **meta: object) -> GPUWorkload:
    body: dict[str, object] = {"metadata": {"name": "w", "namespace": "team-a", **meta}}
    body["spec"] = spec
    if status is not None:
        body["status"] = status
    return msgspec.json.decode(json.dumps(body), type=GPUWorkload)


def understood(reading: Reading) -> Bookkeeping:
    assert reading.bookkeeping is not None
    return reading.bookkeeping


def test_the_name_says_kind_name_and_incarnation() -> None:
    assert name_for(ROOT) == "deployment-train-0a1b2c3d"


@pytest.mark.parametrize("name", ["x" * 253, "a." * 100 + "b", "-" * 5 + "a", "n" * 43 + "." + "m"])
def test_a_name_of_any_length_makes_a_valid_one(name: str) -> None:
    made = name_for(replace(ROOT, name=name))
    assert len(made) <= 63
    assert made.startswith("deployment-")
    assert made.endswith("-0a1b2c3d")
    assert ".-" not in made


def test_a_root_without_uid_or_known_kind_gets_no_object() -> None:
    with pytest.raises(ClusterError, match="has no uid"):
        name_for(replace(ROOT, uid=""))
    with pytest.raises(ClusterError, match="no API version is known for Deployment other.io"):
        manifest_for(replace(ROOT, group="other.io"))


def test_a_new_object_belongs_to_its_root_and_does_not_block_its_deletion() -> None:
    made = manifest_for(ROOT)
    assert made["spec"] == SPEC
    assert made["apiVersion"] == "gpu-pruner.io/v1alpha1"
    assert made["metadata"] == {
        "name": "deployment-train-0a1b2c3d",
        "namespace": "team-a",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "uid": ROOT.uid}
        ],
    }


def test_a_status_patch_clears_what_is_unset_and_names_the_version_it_builds_on() -> None:
    patch = status_patch(Book(phase=Phase.WARNED, pause_at=0.6, resource_version="12"))
    assert patch["metadata"] == {"resourceVersion": "12"}
    status = patch["status"]
    assert isinstance(status, dict)
    assert status["phase"] == "Warned"
    assert status["pauseAt"] == "1970-01-01T00:00:01Z"
    assert status["pause"] is None
    assert status["idleSince"] is None
    assert "metadata" not in status_patch(Book())


def test_every_field_of_a_book_is_a_field_of_the_status() -> None:
    kept = {one.name for one in fields(Book)} - {"resource_version", "object_name"}
    assert kept == set(GPUWorkloadStatus.__struct_fields__)
    assert {one.name for one in fields(PauseRecord)} == set(PauseStatus.__struct_fields__)


@given(book=books)
def test_a_book_survives_being_written_and_read_back(book: Book) -> None:
    body = json.loads(json.dumps(status_patch(book)))
    back = understood(read(stored(status=body["status"], resourceVersion="3"))).book
    assert back == replace(whole_seconds(book), object_name="w", resource_version="3")
    assert whole_seconds(back) == back


@given(spec=anything, status=anything)
def test_no_content_makes_reading_fail(spec: object, status: object) -> None:
    reading = read(stored(spec=spec, status=status))
    assert reading.bookkeeping is None
    assert reading.problems


@given(status=anything.filter(lambda content: content not in ({}, None)))
def test_no_status_makes_reading_fail_or_loses_a_wish(status: object) -> None:
    found = understood(read(stored(spec={**SPEC, "exempt": True}, status={"pause": status})))
    assert found.intent.exempt
    assert found.book.phase is Phase.WATCHING


@pytest.mark.parametrize(
    "status",
    [
        "text",
        {"phase": "Gone"},
        {"phase": "Paused", "pauseAt": "tomorrow"},
        {"phase": "Paused", "pauseAt": "2026-01-31T12:00:00"},
        {"phase": "Paused", "gpus": "eight"},
        {"phase": "Paused", "pause": {}},
    ],
)
def test_an_unreadable_status_is_a_blank_book_and_is_reported(status: object) -> None:
    reading = read(stored(status=status, resourceVersion="9"))
    assert understood(reading).book == Book(object_name="w", resource_version="9")
    assert "nothing is remembered" in reading.problems[0]


def test_wishes_are_read() -> None:
    spec = {
        **SPEC,
        "keepUntil": "2026-01-31T12:00:00Z",
        "keepBy": "ana",
        "keepReason": "demo",
        "exempt": True,
        "exemptUntil": "2026-02-01T12:00:00Z",
        "exemptBy": "bob",
        "exemptReason": "a course",
        "release": True,
        "releaseAt": "2026-01-31T11:00:00Z",
        "releaseBy": "ada",
        "releaseReason": "done",
        "unknown": [1],
    }
    assert understood(read(stored(spec=spec))).intent == Intent(
        keep_until=1_769_860_800.0,
        keep_by="ana",
        keep_reason="demo",
        exempt=True,
        exempt_until=1_769_947_200.0,
        exempt_by="bob",
        exempt_reason="a course",
        release=Release(at=1_769_857_200.0, by="ada", reason="done"),
    )


@pytest.mark.parametrize("moment", [None, "now", "2026-01-31T12:00:00"])
def test_a_release_whose_moment_cannot_be_told_releases_nothing_and_is_reported(
    moment: str | None,
) -> None:
    reading = read(stored(spec={**SPEC, "release": True, "releaseAt": moment}))
    assert understood(reading).intent == Intent()
    [problem] = reading.problems
    assert "not released" in problem


@pytest.mark.parametrize(
    "wish",
    [
        {"keepUntil": "soon"},
        {"keepUntil": "2026-01-31T12:00:00"},
        {"keepUntil": 7},
        {"exempt": "yes"},
        {"exempt": True, "exemptUntil": "tomorrow"},
        {"exempt": False, "exemptUntil": "2026-01-31T12:00:00"},
        {"release": "yes"},
        {"keepBy": []},
    ],
)
def test_a_wish_that_cannot_be_read_is_an_exemption_with_its_reason(
    wish: dict[str, object],
) -> None:
    reading = read(stored(spec={**SPEC, **wish}))
    assert understood(reading).intent.exempt
    assert "exempt" in understood(reading).intent.keep_reason
    assert reading.problems == (understood(reading).intent.keep_reason,)


def test_without_a_spec_the_owner_reference_still_tells_the_root() -> None:
    owner = OwnerReference("apps/v1", "Deployment", "train", ROOT.uid)
    meta = Meta(name="w", namespace="team-a", owner_references=(owner,))
    found = unreadable(meta)
    assert found is not None
    assert found.root == ROOT
    assert found.intent.exempt
    assert unreadable(Meta(name="w")) is None


def test_a_root_reference_with_empty_parts_is_none() -> None:
    assert to_bookkeeping(stored(spec={"rootRef": {**SPEC["rootRef"], "uid": ""}})) is None


def test_two_objects_about_one_root_lose_nobodys_keep() -> None:
    book = Book(phase=Phase.WARNED)
    released = Intent(keep_until=5.0, release=Release(at=1.0))
    first = Bookkeeping(root=ROOT, intent=released, book=book)
    second = Bookkeeping(root=ROOT, intent=Intent(keep_until=9.0, keep_by="ana", exempt=True))
    both = merged(first, second)
    assert both.book == book
    assert both.intent == Intent(keep_until=9.0, keep_by="ana", exempt=True)


def test_of_two_exemptions_of_one_root_the_longer_one_counts_and_of_two_releases_the_earlier() -> (
    None
):
    short = Intent(exempt=True, exempt_until=5.0, exempt_by="ana", release=Release(at=2.0))
    for_good = Intent(exempt=True, exempt_by="bob", release=Release(at=1.0))
    for one, other in ((short, for_good), (for_good, short)):
        both = merged(Bookkeeping(root=ROOT, intent=one), Bookkeeping(root=ROOT, intent=other))
        assert both.intent == for_good


COMPLAINT = {
    "wrongPause": "d-1",
    "wrongAt": "2026-01-31T12:00:00Z",
    "wrongBy": "ada",
    "wrongReason": "it was training",
}


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        ({"wrongAt": None}, "wrongPause is set without wrongAt"),
        ({"wrongAt": "yesterday"}, "'yesterday' is not a time"),
        ({"wrongPausedAt": "noon"}, "'noon' is not a time"),
    ],
)
def test_a_complaint_that_cannot_be_read_is_none_and_exempts_nothing(
    odd: dict[str, str | None], says: str
) -> None:
    reading = read(stored(SPEC | COMPLAINT | odd))
    intent = understood(reading).intent
    assert (intent.complaint, intent.exempt) == (None, False)
    assert says in reading.problems[0]


def test_of_two_objects_the_later_complaint_holds() -> None:
    one = understood(read(stored(SPEC | COMPLAINT)))
    two = understood(read(stored(SPEC | COMPLAINT | {"wrongAt": "2026-01-31T13:00:00Z"})))
    none = understood(read(stored()))
    assert merged(one, two).intent.complaint == two.intent.complaint
    assert merged(two, one).intent.complaint == two.intent.complaint
    assert merged(none, one).intent.complaint == one.intent.complaint
    assert merged(one, none).intent.complaint == one.intent.complaint

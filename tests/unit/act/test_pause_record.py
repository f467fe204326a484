from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some
from support.manual_clock import NOON

from gpu_pruner.act.pause_record import encode
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.units import rfc3339
from gpu_pruner.resolve.pauses import MAX_BYTES, decode

RECORD = PauseRecord(
    lever="Deployment",
    replicas=3,
    uid="uid-d",
    generation=7,
    at=NOON,
    decision="d-1",
    why="No GPU work on 4 of 4 GPUs since 11:02.",
)


def changed(**fields: object) -> str:
    return json.dumps({**json.loads(encode(RECORD)), **fields})


def test_a_record_reads_back_as_it_was_written() -> None:
    assert decode(encode(RECORD)) == RECORD


def test_people_can_read_it() -> None:
    text = encode(RECORD)
    assert '"replicas":3' in text
    assert '"at":"2026-01-31T12:00:00Z"' in text
    assert "\n" not in text


def test_the_longest_record_that_is_written_can_be_read() -> None:
    long = PauseRecord(
        lever="Deployment",
        replicas=3,
        uid="u" * 36,
        generation=7,
        at=NOON,
        decision="d",
        why="\N{GRINNING FACE}" * 5000,
        by="\N{GRINNING FACE}" * 5000,
    )
    text = encode(long)
    assert len(text.encode()) < MAX_BYTES
    assert decode(text) is not None


def test_fields_of_a_later_version_are_no_obstacle() -> None:
    assert decode(changed(minReplicas=1)) == RECORD


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "true",
        "null",
        "[]",
        "{}",
        "{" * 2000,
        "[" * 4000,
        '{"a":' * 700,
        changed(replicas=0),
        changed(replicas=-1),
        changed(replicas=True),
        changed(replicas="3"),
        changed(replicas=3.5),
        changed(replicas=2**31),
        changed(replicas=10**400),
        changed(at="yesterday"),
        changed(at="2026-01-31T12:00:00"),
        changed(at="9999-12-31T23:59:59-23:59"),
        changed(at="0001-01-01T00:00:00+23:59"),
        changed(at=12),
        changed(uid=None),
        changed(lever=["Deployment"]),
        changed(why="x" * MAX_BYTES),
        encode(RECORD)[:-1],
        "\ud800",
    ],
)
def test_what_cannot_be_read_is_no_record(text: str | None) -> None:
    assert decode(text) is None


@given(some.text(max_size=200))
def test_random_text_is_no_record_and_no_error(text: str) -> None:
    assert decode(text) is None


FIELDS = some.sampled_from(["lever", "replicas", "uid", "at", "why", "x"])
TIMES = some.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
VALUES = some.one_of(
    some.none(), some.booleans(), some.integers(), some.floats(), some.text(), TIMES
)


@given(some.dictionaries(FIELDS, VALUES))
def test_any_object_is_read_or_is_no_record(fields: dict[str, object]) -> None:
    record = decode(changed(**fields))
    if record is not None:
        assert record.replicas is None or record.replicas > 0
        assert rfc3339(record.at)

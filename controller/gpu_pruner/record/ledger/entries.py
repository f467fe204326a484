"""What the ledger holds, as values: one `Batch` per cycle, stored whole or not at all.

A batch is stored at most once, by its cycle's id, however often it is tried: that is what makes
everything else simple. Text is made fit for every database when it enters here, for names and
annotations are written by strangers. `record.ledger.scribe` makes batches; `database` stores them;
`spool` keeps those that could not be stored.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.model.units import Seconds, Timestamp

LONGEST_TEXT = 4096
"""Characters of any one text; messages have some hundreds."""


def fit(text: str) -> str:
    """Return a text as every database takes it: no NUL, no half of a pair, not endless.

    >>> fit("a" + chr(0) + "b")
    'a?b'
    """
    clean = text[:LONGEST_TEXT].replace("\x00", "?")
    return clean.encode("utf-8", "replace").decode("utf-8")


class Who(msgspec.Struct, frozen=True, array_like=True):
    """Which workload an entry is about."""

    kind: str
    namespace: str
    name: str
    api_group: str
    root_uid: str
    owner: str
    """The people who are told about it (`model.audience`), in one line; empty where nobody is."""


class DecisionEntry(msgspec.Struct, frozen=True, array_like=True):
    """A workload that stands elsewhere than before, and why."""

    who: Who
    at: Timestamp
    decision_id: str
    phase: str
    verdict: str
    reason: str
    was: str
    """Phase, verdict and reason before, with slashes; empty where this process knew of none."""
    action: str
    message: str
    gpus: int
    evidence: str
    """JSON: a list with the evidence of each device."""
    former: str
    """JSON: the pause record, with everything that would be given back; empty without a pause."""


class ActionEntry(msgspec.Struct, frozen=True, array_like=True):
    """An order, and how it ended."""

    who: Who
    at: Timestamp
    decision_id: str
    action: str
    result: str
    detail: str
    message: str
    gpus: int
    evidence: str
    former: str


class GpuTime(msgspec.Struct, frozen=True, array_like=True):
    """GPU seconds of one workload within one hour."""

    who: Who
    hour: int
    """Begin of the hour, Unix seconds."""
    model: str
    """As telemetry tells it, with the profile of a slice; empty where nothing tells."""
    state: str
    """active, idle, unknown, or paused: GPUs that it held before its pause."""
    seconds: Seconds
    """GPUs times seconds."""


class FalsePositive(msgspec.Struct, frozen=True, array_like=True):
    """A pause that somebody called wrong."""

    who: Who
    decision_id: str
    """Of the pause; with the root's uid it is what makes this entry one and the same."""
    at: Timestamp
    """When it was called wrong."""
    paused_at: Timestamp | None
    by: str
    """Who called it wrong."""
    reason: str
    evidence: str
    """The sentence that the pause rested on."""


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Everything of one cycle."""

    cycle_id: str
    """Unique among all cycles of all replicas."""
    started_at: Timestamp
    finished_at: Timestamp
    workloads: int
    failure: str
    breakers: tuple[str, ...]
    decisions: tuple[DecisionEntry, ...] = ()
    actions: tuple[ActionEntry, ...] = ()
    gpu_time: tuple[GpuTime, ...] = ()
    false_positives: tuple[FalsePositive, ...] = ()


_decoder = msgspec.json.Decoder(Batch)


def encoded(batch: Batch) -> bytes:
    """Return a batch as JSON."""
    return msgspec.json.encode(batch)


def decoded(text: bytes) -> Batch:
    """Return a batch from JSON.

    Raises:
        msgspec.MsgspecError: it is not one.
    """
    return _decoder.decode(text)

"""The pause record as text: the annotation `gpu-pruner.io/paused` on the lever object.

Answers: what was taken from this object, so that anybody can give it back. Reading is hostile
input, since everybody who may edit the object may edit its annotations: what cannot be read is no
record, never an error. Called by the levers (writing) and `act.actor` (reading).
"""

from __future__ import annotations

import msgspec

from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.units import parse_rfc3339, rfc3339

MAX_BYTES = 4096
"""Longest text that is read; ours stay far below it."""

MAX_WHY = 512
"""Longest sentence that is written, in characters: an annotation is no place for a log."""

MAX_BY = 128
"""Longest name that is written, in characters."""

MAX_REPLICAS = 2**31 - 1
"""Source: ``spec.replicas`` is an int32."""


class _Wire(msgspec.Struct, frozen=True, kw_only=True):
    lever: str
    replicas: int | None = None
    uid: str
    generation: int = 0
    at: str
    decision: str = ""
    why: str = ""
    by: str = ""
    name: str | msgspec.UnsetType = msgspec.UNSET
    former: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


def encode(record: PauseRecord) -> str:
    """Write a record as JSON on one line.

    Times are RFC 3339 to the second, because people read this with kubectl.
    """
    wire = _Wire(
        lever=record.lever,
        replicas=record.replicas,
        uid=record.uid,
        generation=record.generation,
        at=rfc3339(record.at),
        decision=record.decision,
        why=record.why[:MAX_WHY],
        by=record.by[:MAX_BY],
        name=record.name or msgspec.UNSET,
        former=dict(record.former) or msgspec.UNSET,
    )
    return msgspec.json.encode(wire).decode()


def decode(text: str | None) -> PauseRecord | None:
    """Read a record, or return None for anything that is not one.

    Args:
        text: the annotation's value; None where it is not set.
    """
    if text is None or len(text) > MAX_BYTES:
        return None
    try:
        wire = msgspec.json.decode(text, type=_Wire)
        moment = parse_rfc3339(wire.at)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None
    if wire.replicas is not None and not 0 < wire.replicas <= MAX_REPLICAS:
        return None
    return PauseRecord(
        lever=wire.lever,
        replicas=wire.replicas,
        uid=wire.uid,
        generation=wire.generation,
        at=moment,
        decision=wire.decision,
        why=wire.why,
        by=wire.by,
        name=wire.name or "",
        former=wire.former or {},
    )

"""The pause record as text: the annotation `gpu-pruner.io/paused` on the lever object.

Answers what is written there, so that anybody can give back what was taken. `resolve.pauses` reads
it. Called by the levers.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.units import rfc3339
from gpu_pruner.resolve.pauses import WrittenRecord

MAX_WHY = 512
"""Longest sentence that is written, in characters: an annotation is no place for a log."""

MAX_BY = 128
"""Longest name that is written, in characters."""


def encode(record: PauseRecord) -> str:
    """Write a record as JSON on one line.

    Times are RFC 3339 to the second, because people read this with kubectl.
    """
    wire = WrittenRecord(
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

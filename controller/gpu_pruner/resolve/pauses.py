"""Pauses as they are read off the objects that they were written on.

It answers which pause of ours an object is under. Everybody who may edit an object may edit its
annotations: what cannot be read is no record, never an error, and a record that others may have
written is none of ours. `assemble` and `decide` ask about owners, `act` about live objects.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.units import parse_rfc3339
from gpu_pruner.model.workload import OwnerObject

MAX_BYTES = 4096
"""Longest text that is read; ours stay far below it."""

MAX_REPLICAS = 2**31 - 1
"""Source: ``spec.replicas`` is an int32."""


class WrittenRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A pause record as it stands in the annotation `gpu-pruner.io/paused`."""

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


def decode(text: str | None) -> PauseRecord | None:
    """Read a record, or return None for anything that is not one.

    Args:
        text: the annotation's value; None where it is not set.
    """
    if text is None or len(text) > MAX_BYTES:
        return None
    try:
        wire = msgspec.json.decode(text, type=WrittenRecord)
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


def pause_on(owner: OwnerObject) -> PauseRecord | None:
    """Return the record of the pause of ours that a root is under now; None where it is under none.

    Three things have to agree: its desired state says: no pods; the record is about the very object
    that it stands on; and the API server names us as who wrote both (`OwnerObject.paused_by_us`).
    """
    if not (owner.halted and owner.paused_by_us):
        return None
    record = decode(owner.annotations.get(PAUSED))
    if record is None or record.uid != (owner.governor_uid or owner.root.uid):
        return None
    return record

"""What people wrote on their workloads, read as hostile input.

It answers which vetoes and which keep the labels and annotations of a root, its pods and its
namespace ask for. It never raises on what it reads, and never reads an unreadable wish as "no
wish": who wrote an exemption believes that they are protected. `assemble` calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from gpu_pruner.model.annotations import ACK_BY, ACK_UNTIL, EXEMPT, HOLD
from gpu_pruner.model.units import Timestamp, parse_rfc3339
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import Veto

_SHOWN = 40
"""How many characters of somebody's value are repeated in a sentence."""


@dataclass(frozen=True, slots=True)
class Source:
    """Labels or annotations of one object, with the words that name it."""

    place: str
    """For example ``namespace team-a``."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    def values(self, key: str) -> tuple[str, ...]:
        """Return the values of a key: the label's first, then the annotation's."""
        return tuple(kept[key] for kept in (self.labels, self.annotations) if key in kept)


@dataclass(frozen=True, slots=True)
class AnnotatedKeep:
    """The Rust tool's keep: annotations on the root."""

    until: Timestamp
    by: str


def exemptions(sources: Iterable[Source], *, now: Timestamp) -> tuple[Veto, ...]:
    """Return the exemptions that these objects ask for.

    Args:
        sources: root, namespace and pods; a label and an annotation count alike.
        now: Unix seconds; an exemption until a time that has passed is none.

    Returns:
        One veto per object and value, in the order of the sources. ``true`` exempts, ``false``
        does not, an RFC 3339 time with its offset exempts until then, and anything else exempts
        as malformed.
    """
    return tuple(
        veto
        for source in sources
        for value in source.values(EXEMPT)
        if (veto := _exemption(value, source.place, now=now)) is not None
    )


def _exemption(value: str, place: str, *, now: Timestamp) -> Veto | None:
    word = value.strip().lower()
    if word == "false":
        return None
    told = f"{EXEMPT}={shown(value)} on {place}"
    if word == "true":
        return Veto(reason=Reason.EXEMPT, detail=told)
    until = _time(value)
    if until is None:
        return Veto(
            reason=Reason.MALFORMED_EXEMPTION,
            detail=f"{told} is neither true, false nor a time with its offset",
        )
    return Veto(reason=Reason.EXEMPT, detail=told, until=until) if until > now else None


def holds(sources: Iterable[Source]) -> tuple[Veto, ...]:
    """Return the holds on these objects. Every value but ``false`` holds."""
    return tuple(
        Veto(reason=Reason.HELD, detail=f"{HOLD}={shown(value)} on {source.place}")
        for source in sources
        for value in source.values(HOLD)
        if value.strip().lower() != "false"
    )


def annotated_keep(source: Source) -> AnnotatedKeep | Veto | None:
    """Read the Rust tool's keep.

    Returns:
        The keep; or, where its time cannot be read (the Rust tool then ignored it silently), a
        veto that honours and reports it; or None where there is no keep.
    """
    written = source.annotations.get(ACK_UNTIL)
    if written is None:
        return None
    until = _time(written)
    if until is None:
        return Veto(
            reason=Reason.MALFORMED_EXEMPTION,
            detail=f"{ACK_UNTIL}={shown(written)} on {source.place} is not a time with its offset",
        )
    return AnnotatedKeep(until, source.annotations.get(ACK_BY, ""))


class _Record(msgspec.Struct, frozen=True):
    """What identifies a pause record; `act` reads the rest of it."""

    uid: str
    decision: str = ""


def is_record_of(text: str | None, *, uid: str, decision: str | None) -> bool:
    """Whether a pause record is of this very pause, and not of an earlier or another object's.

    Args:
        text: value of the annotation; None where it is not set.
        uid: of the object that it stands on.
        decision: id of the pause's decision; None where it is not known.
    """
    if text is None:
        return False
    try:
        record = msgspec.json.decode(text, type=_Record)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return record.uid == uid and decision in (None, record.decision)


def shown(text: str) -> str:
    """Return somebody's text as it may stand in a sentence: short, printable, on one line."""
    printable = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return printable if len(printable) <= _SHOWN else f"{printable[:_SHOWN]}…"


def _time(text: str) -> Timestamp | None:
    """Read a time, or return None where the text is not one."""
    try:
        return parse_rfc3339(text.strip())
    except (ValueError, OverflowError):
        return None

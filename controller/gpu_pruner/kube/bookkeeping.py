"""From a stored `GPUWorkload` to `model.cluster.Bookkeeping`.

Anybody with the right to edit the object can put anything into it, so reading never raises: a
status that cannot be read is a blank book, which only makes the workload start anew, and a wish
that cannot be read is honoured as an exemption, because missing data never leads to a pause. For
the same reason a release that cannot be read is none.
`observe.cluster` and `act` call it. It writes and logs nothing; it hands out what was odd.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

import msgspec

from gpu_pruner.kube.gpuworkload_spec import GPUWorkloadSpec, RootReference
from gpu_pruner.kube.gpuworkloads import GPUWorkload, GPUWorkloadStatus, PauseStatus
from gpu_pruner.kube.resources import group_of
from gpu_pruner.kube.wire import Meta
from gpu_pruner.model.book import Book, PauseRecord, Phase
from gpu_pruner.model.cluster import Bookkeeping
from gpu_pruner.model.units import Timestamp, parse_rfc3339
from gpu_pruner.model.workload import Complaint, Intent, Release, RootRef


class _RootOnly(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    root_ref: RootReference


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a GPUWorkload says, and what of it could not be understood."""

    bookkeeping: Bookkeeping | None
    """None where not even the root can be told."""
    problems: tuple[str, ...] = ()
    """Sentences for the operator."""


def to_bookkeeping(stored: GPUWorkload) -> Bookkeeping | None:
    """Return what a GPUWorkload says; None where not even its root can be told."""
    return read(stored).bookkeeping


def read(stored: GPUWorkload) -> Reading:
    """Read a GPUWorkload, whatever it holds."""
    meta = stored.metadata
    root = _root(stored)
    if root is None:
        return Reading(bookkeeping=None, problems=("spec.rootRef cannot be read: ignored",))
    intent, odd_intent = _intent(stored.spec)
    book, odd_book = _book(stored.status)
    found = Bookkeeping(
        root=root,
        intent=intent,
        book=replace(book, resource_version=meta.resource_version, object_name=meta.name),
    )
    return Reading(bookkeeping=found, problems=(*odd_intent, *odd_book))


def unreadable(meta: Meta) -> Bookkeeping | None:
    """Return the bookkeeping of an object of which only the metadata could be read."""
    return to_bookkeeping(GPUWorkload(metadata=meta))


def merged(one: Bookkeeping, other: Bookkeeping) -> Bookkeeping:
    """Return one bookkeeping for two objects about the same root: the first's book, both wishes.

    Nobody loses a keep because somebody created a second object.
    """
    first, second = one.intent, other.intent
    keeper = max(first, second, key=lambda intent: intent.keep_until or float("-inf"))
    intent = replace(
        keeper,
        keep_reason=keeper.keep_reason or first.keep_reason or second.keep_reason,
        release=_earlier(first.release, second.release),
        complaint=_later(first.complaint, second.complaint),
        **_exemption(first, second),
    )
    return replace(one, intent=intent)


class _Exemption(TypedDict, total=False):
    exempt: bool
    exempt_until: Timestamp | None
    exempt_by: str
    exempt_reason: str


def _exemption(*intents: Intent) -> _Exemption:
    """Return the exemption that reaches farthest, as fields of an intent."""
    exempt = [one for one in intents if one.exempt]
    if not exempt:
        return {"exempt": False}
    last = max(
        exempt, key=lambda one: float("inf") if one.exempt_until is None else one.exempt_until
    )
    return {
        "exempt": True,
        "exempt_until": last.exempt_until,
        "exempt_by": last.exempt_by,
        "exempt_reason": last.exempt_reason,
    }


def _earlier(first: Release | None, second: Release | None) -> Release | None:
    """Return the earlier release; none where one of the objects has none."""
    if first is None or second is None:
        return None
    return min(first, second, key=lambda one: one.at)


def _later(first: Complaint | None, second: Complaint | None) -> Complaint | None:
    """Return the complaint that was made last."""
    made = [one for one in (first, second) if one is not None]
    return max(made, key=lambda one: one.at, default=None)


def _root(stored: GPUWorkload) -> RootRef | None:
    """Return the root from the spec, else from the owner reference that we put there."""
    namespace = stored.metadata.namespace
    try:
        ref = msgspec.json.decode(stored.spec, type=_RootOnly).root_ref
    except (msgspec.DecodeError, UnicodeDecodeError):
        owners = stored.metadata.owner_references or ()
        if len(owners) != 1:
            return None
        ref = RootReference(owners[0].api_version, owners[0].kind, owners[0].name, owners[0].uid)
    if not (ref.kind and ref.name and ref.uid):
        return None
    return RootRef(ref.kind, namespace, ref.name, group_of(ref.api_version), ref.uid)


def _intent(spec: msgspec.Raw) -> tuple[Intent, tuple[str, ...]]:
    """Return what people want; an unreadable wish is an exemption."""
    try:
        wish = msgspec.json.decode(spec, type=GPUWorkloadSpec)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _exempt(f"spec cannot be read, so it is exempt: {str(error)[:120]}")
    try:
        keep_until = _moment(wish.keep_until)
    except ValueError:
        return _exempt(f"keepUntil {wish.keep_until!r:.60} is not a time, so it is exempt")
    try:
        exempt_until = _moment(wish.exempt_until)
    except ValueError:
        return _exempt(f"exemptUntil {wish.exempt_until!r:.60} is not a time, so it is exempt")
    release, odd_release = _release(wish)
    complaint, odd_complaint = _complaint(wish)
    intent = Intent(
        keep_until=keep_until,
        keep_by=wish.keep_by or "",
        keep_reason=wish.keep_reason or "",
        exempt=wish.exempt is True,
        exempt_until=exempt_until,
        exempt_by=wish.exempt_by or "",
        exempt_reason=wish.exempt_reason or "",
        release=release,
        complaint=complaint,
    )
    return intent, (*odd_release, *odd_complaint)


def _release(wish: GPUWorkloadSpec) -> tuple[Release | None, tuple[str, ...]]:
    """Return a release; one whose moment cannot be told is none, for nobody knows whom it meant."""
    if wish.release is not True:
        return None, ()
    try:
        at = _moment(wish.release_at)
    except ValueError:
        return None, (f"releaseAt {wish.release_at!r:.60} is not a time, so it is not released",)
    if at is None:
        return None, ("release is set without releaseAt, so it is not released",)
    return Release(at=at, by=wish.release_by or "", reason=wish.release_reason or ""), ()


def _complaint(wish: GPUWorkloadSpec) -> tuple[Complaint | None, tuple[str, ...]]:
    """Return a complaint; one of which nobody knows what it is about, or when it was made, is none.

    It keeps nothing from being paused: that is what the exemption beside it is for.
    """
    if not wish.wrong_pause:
        return None, ()
    try:
        at, paused_at = _moment(wish.wrong_at), _moment(wish.wrong_paused_at)
    except ValueError as error:
        return None, (f"wrongAt or wrongPausedAt: {error}, so no pause is called wrong",)
    if at is None:
        return None, ("wrongPause is set without wrongAt, so no pause is called wrong",)
    complaint = Complaint(
        pause=wish.wrong_pause,
        at=at,
        by=wish.wrong_by or "",
        reason=wish.wrong_reason or "",
        evidence=wish.wrong_evidence or "",
        paused_at=paused_at,
    )
    return complaint, ()


def _exempt(problem: str) -> tuple[Intent, tuple[str, ...]]:
    return Intent(exempt=True, keep_reason=problem), (problem,)


def _book(status: msgspec.Raw) -> tuple[Book, tuple[str, ...]]:
    """Return what we remember; an unreadable status is a blank book."""
    if not bytes(status):
        return Book(), ()
    try:
        return _to_book(msgspec.json.decode(status, type=GPUWorkloadStatus)), ()
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return Book(), (f"status cannot be read, so nothing is remembered: {str(error)[:120]}",)


def _to_book(status: GPUWorkloadStatus) -> Book:
    """Raises ValueError for a time that is none."""
    return Book(
        phase=status.phase or Phase.WATCHING,
        verdict=status.verdict.value if status.verdict else "",
        reason=status.reason or "",
        message=status.message or "",
        gpus=status.gpus or 0,
        confirmations=status.confirmations or 0,
        idle_since=_moment(status.idle_since),
        nominated_at=_moment(status.nominated_at),
        warned_at=_moment(status.warned_at),
        warned_via=status.warned_via or (),
        warned_mode=status.warned_mode or "",
        pause_at=_moment(status.pause_at),
        frozen_since=_moment(status.frozen_since),
        paused_at=_moment(status.paused_at),
        pause=_to_pause(status.pause) if status.pause else None,
        long_keep_until=_moment(status.long_keep_until),
        long_keep_read_at=_moment(status.long_keep_read_at),
        alerts_in=status.alerts_in or (),
        reverted_by=status.reverted_by or "",
        contested_by=status.contested_by or "",
        contested_until=_moment(status.contested_until),
        counted_wrong=status.counted_wrong or "",
    )


def _to_pause(pause: PauseStatus) -> PauseRecord:
    return PauseRecord(
        lever=pause.lever,
        replicas=pause.replicas,
        uid=pause.uid,
        generation=pause.generation,
        at=parse_rfc3339(pause.at),
        decision=pause.decision,
        why=pause.why,
        by=pause.by,
        name=pause.name or "",
        former=pause.former or {},
    )


def _moment(text: str | None) -> Timestamp | None:
    return None if text is None else float(round(parse_rfc3339(text)))

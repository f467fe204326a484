"""The last checks before an act, each a reason to leave everything as it is.

Answers, as a sentence, why a pause or a restore must not happen now. Pure: what is checked was
read a moment ago by `act.actor`, which also raises the sentence. Decides nothing in favour of an
act.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from gpu_pruner.act.levers import Lever
from gpu_pruner.act.live import annotation
from gpu_pruner.act.pause_record import decode
from gpu_pruner.errors import ActionRefused
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.commands import resume_command
from gpu_pruner.model.units import Seconds, Timestamp, rfc3339
from gpu_pruner.model.workload import Intent, RootRef
from gpu_pruner.resolve.annotations import Source, exemptions, holds


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old the evidence may be at the moment of the act."""

    verified_at: Timestamp | None
    """When it was measured; None where nobody asks, as for a person's own order."""
    max_age_seconds: Seconds | None

    def check(self, now: Timestamp) -> None:
        """Pass, or refuse.

        Raises:
            ActionRefused: the evidence is older than allowed, or from the future.
        """
        if self.verified_at is None or self.max_age_seconds is None:
            return
        age = now - self.verified_at
        if abs(age) > self.max_age_seconds:
            raise ActionRefused(
                f"the last full-window check is {age:.0f} s old, "
                f"more than the {self.max_age_seconds:.0f} s allowed; it will be made again"
            )


def record_on(lever: Lever, live: Owner) -> PauseRecord | None:
    """Return the pause record on the lever object, if it is one and is about this object."""
    record = decode(annotation(live, PAUSED))
    return record if serves(record, lever, live) else None


def serves(record: PauseRecord | None, lever: Lever, live: Owner) -> TypeGuard[PauseRecord]:
    """Return whether a record is about this very object and says enough to restore it."""
    if record is None or (record.uid, record.lever) != (live.metadata.uid, lever.kind):
        return False
    return lever.can_restore(record)


def live_refusal(root: RootRef, lever: Lever, live: Owner, *, now: Timestamp) -> str:
    """Return why the object must not be paused as it is now; empty where it may."""
    if live.metadata.deletion_timestamp:
        return "it is being deleted"
    record = record_on(lever, live)
    if record and lever.is_paused(live):
        return (
            f"it is paused already, since {rfc3339(record.at)}; "
            f"bring it back with: gpu-pruner resume {root.ref}"
        )
    return _wish_refusal(root, live, now=now) or lever.obstacle(live)


def _wish_refusal(root: RootRef, live: Owner, *, now: Timestamp) -> str:
    """Return what is written on the object itself against a pause; empty where nothing is."""
    meta = live.metadata
    source = Source(f"{root.kind} {root.name}", meta.labels or {}, meta.annotations or {})
    vetoes = (*exemptions((source,), now=now), *holds((source,)))
    return vetoes[0].detail if vetoes else ""


def intent_refusal(intent: Intent, *, now: Timestamp) -> str:
    """Return which wish of people forbids a pause now; empty where none does."""
    if intent.exempt:
        return "somebody exempted it (spec.exempt of its GPUWorkload)"
    if intent.keep_until is not None and intent.keep_until > now:
        whose = f" by {intent.keep_by[:64]}" if intent.keep_by else ""
        return f"it is kept until {rfc3339(intent.keep_until)}{whose}"
    return ""


def nothing_to_restore(root: RootRef) -> str:
    """Return why a paused object cannot be given back, with the way that is left."""
    return (
        "it is at zero and there is no record of its former size, so it was not paused by us or "
        f"the record was removed; start it with: {resume_command(root, replicas=None)}"
    )

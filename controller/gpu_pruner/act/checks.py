"""The last checks before an act, each a reason to leave everything as it is.

Answers, as a sentence, why a pause or a restore must not happen now. Pure: what is checked was
read a moment ago by `act.actor`, which also raises the sentence. Decides nothing in favour of an
act.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from gpu_pruner.act.lever import Lever
from gpu_pruner.act.live import annotation
from gpu_pruner.errors import ActionRefused
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import Book, PauseRecord, Phase
from gpu_pruner.model.commands import resume_command
from gpu_pruner.model.units import Seconds, Timestamp, rfc3339
from gpu_pruner.model.workload import OwnerObject, RootRef
from gpu_pruner.resolve.pauses import decode

_LONGEST_VALUE = 256
"""Of an annotation that a pause replaces: the pause record has to hold it."""


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


def root_refusal(top: Owner) -> str:
    """Return why a root must not be paused, whatever its lever; empty where it may."""
    if top.metadata.deletion_timestamp:
        return "it is being deleted"
    above = top.metadata.controller
    if above is not None:
        return f"it belongs to {above.kind} {above.name}, which would put back what we change"
    return ""


def lever_refusal(root: RootRef, lever: Lever, live: Owner) -> str:
    """Return why the lever object must not be changed as it is now; empty where it may."""
    record = record_on(lever, live)
    if record and lever.is_paused(live) and lever.is_pause_of(live, record):
        return (
            f"it is paused already, since {rfc3339(record.at)}; "
            f"bring it back with: gpu-pruner resume {root.ref}"
        )
    if obstacle := lever.obstacle(live):
        return obstacle
    if any(len(value) > _LONGEST_VALUE for value in lever.former(live).values()):
        return "an annotation that a pause would replace is too long to be remembered"
    return ""


def changed_since(decided_on: OwnerObject | None, live: Owner) -> str:
    """Return how an object differs from the one that was decided on; empty where it is the same.

    Its generation tells: it counts the changes of what is wanted, and no change of the status.
    """
    known, now = decided_on.generation if decided_on else 0, live.metadata.generation or 0
    if not known or known == now:
        return ""
    return f"it was changed since the decision (generation {known}, now {now})"


def untold(book: Book) -> str:
    """Return why the book is no ground for a pause: it must say that somebody was warned."""
    if book.phase is not Phase.WARNED or book.warned_at is None:
        return f"its GPUWorkload does not say that it was warned (phase {book.phase.value})"
    return "" if book.warned_via else "its GPUWorkload does not say who was reached by the warning"


def nothing_to_restore(root: RootRef) -> str:
    """Return why a paused object cannot be given back, with the way that is left."""
    return (
        "it is at zero and there is no record of its former size: it was not paused by us, the "
        "record was removed, or somebody stopped it again after a restart; "
        f"start it with: {resume_command(root, pause=None)}"
    )


def no_record(root: RootRef) -> str:
    """Return why nothing can be said of a pause."""
    return (
        f"there is no record of a pause of ours on {root.ref}: it was never paused, or it is over "
        f"and settled; keep it with: gpu-pruner exempt {root.ref}"
    )

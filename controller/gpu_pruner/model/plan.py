"""What a cycle decided: one `Decision` per workload, in the order in which they are carried out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from gpu_pruner.model.book import Book
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period
from gpu_pruner.model.snapshot import Breaker, Workload
from gpu_pruner.model.units import Timestamp
from gpu_pruner.model.verdict import Reason, Verdict


class Action(StrEnum):
    """The one thing to do for a workload in this cycle, beside writing its book."""

    NONE = "none"
    VERIFY = "verify"
    """Measure its devices over `Decision.verify` and plan again; only in a first plan."""
    WARN = "warn"
    """Tell the owner; the book is written only if the warning was delivered."""
    REMIND = "remind"
    CANCEL = "cancel"
    """Tell the owner that the warning is void."""
    PAUSE = "pause"
    RESTORE = "restore"
    """A keep came during the pause: give it back."""


class DeviceFinding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One device's verdict with the evidence that it rests on.

    A Struct, because a plan makes one for every device of the cluster.
    """

    evidence: DeviceEvidence
    verdict: Verdict
    reason: Reason
    detail: str
    """For example ``engine peak 0.412 at 14:02`` or ``18 of 35 minutes seen``."""


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was decided for one workload, and why, in one sentence.

    A Struct, because a plan makes one for every workload of the cluster.
    """

    workload: Workload
    verdict: Verdict
    reason: Reason
    message: str
    """One sentence with the evidence; the same for everybody."""
    book: Book
    """The book after this cycle; written when it differs from `workload.book`."""
    action: Action = Action.NONE
    verify: Period | None = None
    """What to measure, where `action` is VERIFY."""
    window: Period | None = None
    """The judged window at the end of `verify`, where that reaches back further."""
    decision_id: str = ""
    """Same root, warning and deadline give the same id: a crash makes no second decision."""
    findings: tuple[DeviceFinding, ...] = ()
    idle_since: Timestamp | None = None
    verified_at: Timestamp | None = None
    """When the verification that this rests on was made; None where it rests on the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole cycle's decisions."""

    at: Timestamp
    decisions: tuple[Decision, ...]
    """Sorted by root; those with an action in the order of their deadlines among themselves."""
    breakers: tuple[Breaker, ...] = ()

    def with_action(self, action: Action) -> tuple[Decision, ...]:
        """Return the decisions that ask for one action, in order."""
        return tuple(one for one in self.decisions if one.action is action)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A full-window measurement of one root's devices, made at one moment."""

    at: Timestamp
    evidence: tuple[DeviceEvidence, ...] = ()
    """Over the whole period that was asked for."""
    recent: tuple[DeviceEvidence, ...] = ()
    """The same over the judged window at its end, where the period reaches back further."""
    failure: str = ""
    """Why the measurement could not be made; it then refuses this root only."""

    def of(self, device: DeviceId) -> DeviceEvidence | None:
        """Return one device's evidence, or None where the measurement has none."""
        return next((one for one in self.evidence if one.device == device), None)

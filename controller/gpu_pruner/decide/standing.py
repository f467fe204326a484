"""Where one workload stands in one cycle, and the step that it takes from there.

The values that the state machine (`clock` before the act, `settling` after it) is written in. They
are Structs, because a plan of ten thousand workloads makes some ten thousand of each.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from gpu_pruner.decide.budget import Budget, size
from gpu_pruner.decide.device import Yardstick
from gpu_pruner.decide.idle import Judgement, judge_workload
from gpu_pruner.decide.wording import Why, with_rule
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.plan import Action, Verification
from gpu_pruner.model.rules import Mode, Rules
from gpu_pruner.model.signals import DeviceEvidence, Period
from gpu_pruner.model.snapshot import Breaker, Workload
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import Veto


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one workload does in this cycle."""

    book: Book
    verdict: Verdict
    reason: Reason
    message: str
    judgement: Judgement
    """What verdict and findings rest on: the verification's where there is one, else the screen's.
    """
    action: Action = Action.NONE
    verify: Period | None = None
    window: Period | None = None
    verified_at: Timestamp | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One workload with everything that its next step depends on."""

    workload: Workload
    judgement: Judgement
    """By the screen."""
    yardstick: Yardstick
    step_seconds: Seconds
    budget: Budget
    breaker: Breaker | None = None
    """The first open breaker."""
    verification: Verification | None = None
    unattended_since: Timestamp | None = None
    """Since when nobody looked after the clock of its warning; None where it was looked after."""

    @property
    def frozen_since(self) -> Timestamp | None:
        """Return since when the clock of the warning stands still; None where it runs."""
        moments = (self.book.frozen_since, self.unattended_since)
        return min((one for one in moments if one is not None), default=None)

    @property
    def book(self) -> Book:
        """Return what is remembered."""
        return self.workload.book

    @property
    def rules(self) -> Rules:
        """Return the rules of this cycle."""
        return self.yardstick.rules

    @property
    def now(self) -> Timestamp:
        """Return the moment of this cycle."""
        return self.yardstick.at

    @property
    def mode(self) -> Mode:
        """Return the mode for this workload: one that is only warned rehearses for ever."""
        return Mode.DRY_RUN if self.workload.warn_only else self.rules.mode

    @property
    def halted(self) -> bool:
        """Whether the root's desired state says: no pods."""
        return self.workload.owner is not None and self.workload.owner.halted

    @property
    def veto(self) -> Veto | None:
        """Return the veto that keeps the workload; a hold only stops its clock."""
        for one in self.workload.vetoes:
            if one.reason is not Reason.HELD:
                return one
        return None

    @property
    def hold(self) -> Veto | None:
        """Return the hold, if one is set."""
        for one in self.workload.vetoes:
            if one.reason is Reason.HELD:
                return one
        return None

    def stay(self, why: Why, *, book: Book | None = None) -> Step:
        """Stay in the phase; the book stays as it is, unless another one is given."""
        return self.enter(self.book.phase, why, book=book)

    def enter(
        self,
        phase: Phase,
        why: Why,
        *,
        action: Action = Action.NONE,
        book: Book | None = None,
    ) -> Step:
        """Go to a phase with the book otherwise as it is, or with the given one.

        Going back to `WATCHING` clears the book, but for what outlives a warning: the moment of the
        last pause, which the hourly budget counts, the keep that the cap counts from, who took a
        pause back, which pause is counted as wrong, and the alerts that are still open.
        """
        told = self.book if book is None else book
        if phase is Phase.WATCHING and told.phase is not Phase.WATCHING:
            told = Book(
                paused_at=told.paused_at,
                long_keep_until=told.long_keep_until,
                long_keep_read_at=told.long_keep_read_at,
                alerts_in=told.alerts_in,
                reverted_by=told.reverted_by,
                contested_by=told.contested_by,
                contested_until=told.contested_until,
                counted_wrong=told.counted_wrong,
                resource_version=told.resource_version,
                object_name=told.object_name,
            )
        elif phase is not told.phase:
            told = replace(told, phase=phase)
        return Step(
            book=told,
            verdict=self.judgement.verdict,
            reason=why[0],
            message=why[1],
            judgement=self.judgement,
            action=action,
        )

    def look(self) -> Check:
        """Look at the measurement over the judged window."""
        return self.check(self.judgement.window_seconds)

    def examined(self) -> Standing:
        """Return the same with the measurement believed in the screen's place, in every phase.

        A cycle believes the screen until it wants to warn or to act. Whoever asks wants the truth.
        A measurement that failed says that nothing is known.
        """
        check = self.look()
        if check.judgement is not None:
            return msgspec.structs.replace(self, judgement=check.judgement)
        if not check.failure:
            return self
        unknown = msgspec.structs.replace(
            self.judgement,
            verdict=Verdict.UNKNOWN,
            reason=Reason.VERIFY_FAILED,
            message=with_rule(Reason.VERIFY_FAILED, check.failure),
            idle_since=None,
        )
        return msgspec.structs.replace(self, judgement=unknown)

    def check(self, length: Seconds) -> Check:
        """Look at the full-window measurement of this root's devices.

        A period longer than the window has to be free of work and of doubt, but may have a hole
        before the window: while nothing was seen the clock stood still, so that nothing rests on
        that time.

        Args:
            length: seconds up to now that it has to reach back; at least the window.
        """
        made, now = self.verification, self.now
        period = Period.ending(now, length=length, step_seconds=self.step_seconds)
        if made is None or now - made.at > self.rules.verify_max_age_seconds:
            window = Period.ending(
                now, length=self.judgement.window_seconds, step_seconds=self.step_seconds
            )
            return Check(wanted=period, window=window if window != period else None)
        if made.failure:
            return Check(failure=made.failure)
        if any(one.period.first > period.first for one in made.evidence):
            return Check(failure="the measurement does not reach back far enough")
        judgement = self._judged(made.evidence)
        if judgement.reason is Reason.LOW_COVERAGE and made.recent:
            judgement = self._judged(made.recent)
        return Check(judgement=judgement, at=made.at)

    def _judged(self, evidence: tuple[DeviceEvidence, ...]) -> Judgement:
        measured = {one.device: one for one in evidence}
        return judge_workload(self.workload, self.yardstick, measured=measured)


class Check(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a full-window measurement: exactly one of the three."""

    wanted: Period | None = None
    """It is still to be made, over this period."""
    window: Period | None = None
    """The judged window at the end of that period, where it reaches back further."""
    failure: str = ""
    """Why it could not be made."""
    judgement: Judgement | None = None
    """What it says."""
    at: Timestamp | None = None
    """When it was made."""


_WISHES = frozenset(
    {
        Reason.EXEMPT,
        Reason.MALFORMED_EXEMPTION,
        Reason.KEPT,
        Reason.CONTESTED,
        Reason.HELD,
        Reason.PROTECTED_NAMESPACE,
    }
)

_WISH_WORDS = frozenset(one.value for one in _WISHES)


def written(standing: Standing, step: Step) -> Book:
    """Return the book after a step: the old one, unless there is something to remember.

    A workload that was never nominated has no book, and gets none for being active. A book that is
    back at `WATCHING` follows what people wish, but not every change of the evidence.
    """
    new = _with_complaint(standing, _with_keep(standing, step.book))
    reason = Reason.WARNED if step.reason is Reason.WARNING else step.reason
    is_old = new is standing.book or new == standing.book
    if is_old and not _is_news(standing, reason):
        return standing.book
    return replace(
        new,
        verdict=step.verdict.value,
        reason=reason.value,
        message=step.message,
        gpus=size(standing.workload),
    )


def _is_news(standing: Standing, reason: Reason) -> bool:
    """Whether a reason alone is worth a write; one breaker is not, for every workload."""
    old = standing.book
    if reason.value == old.reason or standing.breaker is not None:
        return False
    if old.phase is not Phase.WATCHING:
        return True
    return bool(old.resource_version) and (reason in _WISHES or old.reason in _WISH_WORDS)


def _with_keep(standing: Standing, book: Book) -> Book:
    """Remember when a keep beyond the cap was first read, because the cap counts from there."""
    for kept in standing.workload.vetoes:
        if kept.asked_until is not None and kept.until is not None:
            break
    else:
        return book
    read_at = kept.until - standing.rules.keep_cap_seconds
    if book.long_keep_read_at is not None and abs(book.long_keep_read_at - read_at) < 1.0:
        return book
    return replace(book, long_keep_until=kept.asked_until, long_keep_read_at=read_at)


def _with_complaint(standing: Standing, book: Book) -> Book:
    """Remember that a pause was called wrong; the cycle that writes so is the one that counts."""
    said = standing.workload.intent.complaint
    if said is None or said.pause == book.counted_wrong:
        return book
    return replace(book, counted_wrong=said.pause)

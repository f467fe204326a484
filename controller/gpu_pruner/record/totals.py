"""Counters over the life of this process: what one cycle adds to each of them.

Answers: how often, how many, since the start. Never decides and never reads a clock; everything
comes from the `CycleReport`. Called by `record.board`; read by `record.metrics` and
`record.statistics`. Decisions are the plan's; acts count only with their outcome.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gpu_pruner.model.book import Phase
from gpu_pruner.model.orders import Result
from gpu_pruner.model.plan import Action, Decision
from gpu_pruner.model.units import HOUR, Seconds, Timestamp
from gpu_pruner.model.verdict import Reason
from gpu_pruner.record.report import CycleReport

PAUSE = "pause"
"""`Outcome.action` of a pause."""

LONGEST_GAP_SECONDS: Seconds = HOUR
"""Time between two cycles that is still counted as GPU time. Cycles are minutes apart; a longer gap
means that this process stood still, and what happened then is left out rather than guessed."""

STATISTICS_SECONDS: Seconds = 30 * 86_400.0
"""How long the moment of a scale-down is remembered: the longest window of the statistics."""

DURATION_BOUNDS: tuple[Seconds, ...] = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the cycle-duration buckets; the last is a whole cycle at its default length."""

_BY_PEOPLE = frozenset({Reason.KEPT, Reason.EXEMPT, Reason.MALFORMED_EXEMPTION})
_HOLDS_NO_GPU = frozenset({Phase.PAUSED})


def gpu_state(decision: Decision) -> tuple[str, int]:
    """Return the state that a workload's GPU time counts under, and how many GPUs.

    Returns:
        ``paused`` with the GPUs that it held before the pause, else its verdict with the GPUs
        that its live pods request.
    """
    if decision.book.phase in _HOLDS_NO_GPU:
        return "paused", decision.book.gpus
    return decision.verdict.value, decision.workload.gpus


def is_kept(decision: Decision, *, now: Timestamp) -> bool:
    """Return whether somebody's keep is in force on the workload."""
    until = decision.workload.intent.keep_until
    return (until is not None and until > now) or any(
        veto.reason is Reason.KEPT for veto in decision.workload.vetoes
    )


@dataclass(slots=True)
class Totals:
    """Counters since the start of the process. Only `add` changes them."""

    cycles: int = 0
    cycle_failures: int = 0
    query_successes: int = 0
    query_failures: int = 0
    candidates: int = 0
    """Pods of idle workloads, summed over cycles."""
    due: int = 0
    """Workloads whose deadline passed with the evidence intact, also in dry run."""
    keeps: int = 0
    """Keeps that were seen to appear or to be prolonged."""
    prevented: int = 0
    """Warnings and pauses that a keep or an exemption ended."""
    false_positives: int = 0
    """Pauses that somebody called wrong."""
    decisions: Counter[str] = field(default_factory=Counter)
    """By reason."""
    actions: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By action and result."""
    scales: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Pauses that were carried out, by root kind and namespace."""
    messages: Counter[tuple[str, str]] = field(default_factory=Counter)
    message_failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind and channel; channel ``none`` where nobody was reached."""
    gpu_seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    """By state and namespace."""
    durations: Counter[Seconds] = field(default_factory=Counter)
    """Cycles by the bucket's upper bound that they fell into; infinity holds the rest."""
    duration_seconds: Seconds = 0.0
    scaled_at: list[Timestamp] = field(default_factory=list)
    """Moments of the pauses of the last 30 days, ascending."""
    _keeps_seen: dict[str, Timestamp] | None = field(default=None, init=False)
    _due_seen: set[str] = field(default_factory=set, init=False)
    _wrong_seen: set[tuple[str, str]] = field(default_factory=set, init=False)
    """Root uid and pause of what was called wrong and is counted here."""

    def add(self, report: CycleReport, *, since: Timestamp | None) -> None:
        """Count one cycle.

        Args:
            report: the finished cycle.
            since: when the cycle before it started; None for the first.
        """
        self.cycles += 1
        self.cycle_failures += bool(report.failure)
        self.query_successes += report.counts.query_successes
        self.query_failures += report.counts.query_failures
        self._add_duration(report.duration_seconds)
        if not report.leading:
            self._keeps_seen = None  # what happens meanwhile is the leader's to count
            return
        self._add_outcomes(report)
        if report.plan is None:
            return
        for decision in report.plan.decisions:
            self.decisions[decision.reason.value] += 1
        self.candidates += sum(len(one.workload.pods) for one in report.idle())
        self._add_due(report.plan.decisions)
        self._add_people(report.plan.decisions, now=report.plan.at)
        self._add_complaints(report.plan.decisions)
        if since is not None:
            self._add_gpu_time(report.plan.decisions, elapsed=report.started_at - since)

    def _add_duration(self, seconds: Seconds) -> None:
        bound = next((one for one in DURATION_BOUNDS if seconds <= one), float("inf"))
        self.durations[bound] += 1
        self.duration_seconds += seconds

    def _add_outcomes(self, report: CycleReport) -> None:
        for outcome in report.outcomes:
            self.actions[outcome.action, outcome.result.value] += 1
            if outcome.action == PAUSE and outcome.result is Result.DONE:
                self.scales[outcome.root.kind, outcome.root.namespace] += 1
                self.scaled_at.append(report.finished_at)
        oldest = report.finished_at - STATISTICS_SECONDS
        self.scaled_at = [moment for moment in self.scaled_at if moment >= oldest]
        for delivery in report.deliveries:
            for channel in delivery.via or (() if delivery.is_repeat else ("none",)):
                self.messages[delivery.kind.value, channel] += 1
            for failure in delivery.failures:
                self.message_failures[delivery.kind.value, failure.channel] += 1

    def _add_due(self, decisions: tuple[Decision, ...]) -> None:
        """Count each passed deadline once, though a dry run or a refusal shows it again and again.

        One that was refused and now waits for its next turn is still the same.
        """
        due = {
            one.workload.root.uid
            for one in decisions
            if one.action is Action.PAUSE
            or one.book.phase is Phase.WOULD_PAUSE
            or (one.reason is Reason.OVER_BUDGET and one.workload.root.uid in self._due_seen)
        }
        self.due += len(due - self._due_seen)
        self._due_seen = due

    def _add_people(self, decisions: tuple[Decision, ...], *, now: Timestamp) -> None:
        """Count keeps and what they prevented; those in force at the start are not news."""
        seen = {
            one.workload.root.uid: until
            for one in decisions
            if (until := one.workload.intent.keep_until) is not None and until > now
        }
        before = self._keeps_seen
        if before is not None:
            self.keeps += sum(until > before.get(uid, 0.0) for uid, until in seen.items())
        self._keeps_seen = seen
        self.prevented += sum(
            (one.action is Action.RESTORE and one.reason is not Reason.REFUSED)
            or (one.action is Action.CANCEL and one.reason in _BY_PEOPLE)
            for one in decisions
        )

    def _add_complaints(self, decisions: tuple[Decision, ...]) -> None:
        """Count what was called wrong in the cycle that writes down that it was heard.

        That is kept in the GPUWorkload, so that no other process counts it again, and none misses
        what was said while no controller ran.
        """
        heard = {
            (one.workload.root.uid, one.book.counted_wrong)
            for one in decisions
            if one.book.counted_wrong and one.book.counted_wrong != one.workload.book.counted_wrong
        }
        self.false_positives += len(heard - self._wrong_seen)
        self._wrong_seen |= heard

    def _add_gpu_time(self, decisions: tuple[Decision, ...], *, elapsed: Seconds) -> None:
        if not 0 < elapsed <= LONGEST_GAP_SECONDS:
            return
        for decision in decisions:
            state, gpus = gpu_state(decision)
            if gpus:
                key = (state, decision.workload.root.namespace)
                self.gpu_seconds[key] = self.gpu_seconds.get(key, 0.0) + gpus * elapsed

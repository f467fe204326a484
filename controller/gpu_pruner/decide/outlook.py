"""What comes next for a workload, and what would make it come out otherwise.

It answers, from a decision and nothing else, the next moment that matters with what happens then,
and the sentences on what would change the verdict. It never decides, and promises nothing that the
clock does not: times are the earliest ones. `record.explanation` calls it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpu_pruner.decide.device import needed_seconds
from gpu_pruner.decide.idle import counts_from
from gpu_pruner.decide.remedies import REMEDIES
from gpu_pruner.decide.showing import what_counts
from gpu_pruner.decide.signals import SIGNALS
from gpu_pruner.decide.wording import clock_time, minutes
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.plan import Decision, DeviceFinding
from gpu_pruner.model.rules import Mode, Rules
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.model.verdict import Reason, Verdict

_SETTLING = {
    Phase.WOULD_PAUSE: "A rehearsal ends here: it is not paused.",
    Phase.PAUSING: "Its pods are leaving.",
    Phase.PAUSED: "It stays paused until somebody gives it back.",
    Phase.RESTORING: "Its pods are starting.",
}


@dataclass(frozen=True, slots=True)
class Outlook:
    """What comes next."""

    at: Timestamp | None
    """The earliest moment at which it can happen; None where no time can be told."""
    sentence: str


def outlook(decision: Decision, *, now: Timestamp, rules: Rules) -> Outlook:
    """Say what happens next to a workload, if nothing changes.

    Args:
        decision: on a measurement, or by the screen.
        now: Unix seconds; the moment of the decision.
        rules: of the cycle.
    """
    book = decision.book
    if book.phase in _SETTLING:
        return Outlook(None, _SETTLING[book.phase])
    if book.phase is Phase.WARNED:
        return _warned(decision, book, now=now)
    if decision.reason is Reason.TELEMETRY_BREAKER:
        return Outlook(None, "Nothing is done while a breaker is open, and no clock runs.")
    if decision.workload.vetoes:
        return _vetoed(decision, now=now)
    return _judged(decision, now=now, rules=rules)


def _judged(decision: Decision, *, now: Timestamp, rules: Rules) -> Outlook:
    """Say what follows from the verdict of a workload that nobody was warned about."""
    if decision.verdict is Verdict.IDLE:
        return _idle(decision, now=now, rules=rules)
    if decision.verdict is Verdict.ACTIVE:
        at = _quiet_from(decision, rules)
        told = "If nothing more shows work, it counts as idle"
        return Outlook(at, f"{told}{_from(at, now)}. {_then(rules)}")
    if decision.reason is Reason.TOO_YOUNG:
        at = _old_enough(decision, rules)
        return Outlook(at, f"It is judged{_from(at, now)}. {_then(rules)}")
    return Outlook(None, "Nothing is done while this is unknown, and no clock runs.")


def _from(moment: Timestamp | None, now: Timestamp) -> str:
    return "" if moment is None else f" from {clock_time(moment, now=now)} on"


def _then(rules: Rules) -> str:
    """Say how long the way from idle to the pause is at least."""
    least = rules.confirmations * rules.cycle_seconds + rules.notice_seconds
    return (
        f"From idle to a pause it is {minutes(least)} minutes more at least: "
        f"{rules.confirmations} cycles that agree, a warning, and its notice of "
        f"{minutes(rules.notice_seconds)} minutes."
    )


def _warned(decision: Decision, book: Book, *, now: Timestamp) -> Outlook:
    if book.frozen_since is not None:
        since = clock_time(book.frozen_since, now=now)
        return Outlook(
            None, f"Its deadline stands still since {since}; it is not paused meanwhile."
        )
    if decision.workload.warn_only:
        return Outlook(book.pause_at, "It was only warned: its kind is not paused.")
    if decision.reason is Reason.OVER_BUDGET:
        return Outlook(book.pause_at, "It is paused as soon as the budget lets it.")
    if book.warned_mode == Mode.DRY_RUN.value:
        return Outlook(book.pause_at, "The rehearsal ends: it would be paused.")
    return Outlook(book.pause_at, "It is measured once more, and paused if that agrees.")


def _vetoed(decision: Decision, *, now: Timestamp) -> Outlook:
    """Say when the wish ends that is shown, where it ends by itself."""
    first = decision.workload.vetoes[0]
    if first.until is None:
        return Outlook(None, "It stays as it is until the wish is taken back.")
    others = len(decision.workload.vetoes) > 1
    told = "another one holds on" if others else "it is judged like any other"
    return Outlook(
        first.until, f"The wish ends at {clock_time(first.until, now=now)}; then {told}."
    )


def _idle(decision: Decision, *, now: Timestamp, rules: Rules) -> Outlook:
    if decision.workload.obstacle is not None:
        return Outlook(None, "It is never paused, for the reason told.")
    left = max(0, rules.confirmations - decision.book.confirmations)
    cycles = "one more cycle that agrees" if left == 1 else f"{left} more cycles that agree"
    told = f"Its owner is warned {f'after {cycles}' if left else 'now'}"
    at = now + left * rules.cycle_seconds
    if decision.workload.warn_only:
        return Outlook(at, f"{told}, and that is all: its kind is not paused.")
    would = "would be" if rules.mode is Mode.DRY_RUN else "is"
    notice = minutes(rules.notice_seconds)
    return Outlook(
        at, f"{told}, and it {would} paused {notice} minutes after that at the earliest."
    )


def _quiet_from(decision: Decision, rules: Rules) -> Timestamp | None:
    """Return when the last work that was seen leaves the window, over all devices."""
    return max(
        (
            one.last_active_at + _window(finding, rules)
            for finding in decision.findings
            for one in finding.evidence.signals
            if one.last_active_at is not None
        ),
        default=None,
    )


def _window(finding: DeviceFinding, rules: Rules) -> Seconds:
    return needed_seconds(finding.evidence, rules)


def _old_enough(decision: Decision, rules: Rules) -> Timestamp | None:
    window = max([rules.window_seconds, *(_window(one, rules) for one in decision.findings)])
    begins = [counts_from(pod.record, rules) for pod in decision.workload.pods]
    known = [one for one in begins if one is not None]
    return max(known) + window + rules.settle_seconds if known else None


def changes(decision: Decision, rules: Rules) -> tuple[str, ...]:
    """Say what would make the verdict, or what follows from it, another one.

    Returns:
        Sentences, the one that weighs most first, without repetition.
    """
    return tuple(dict.fromkeys(_changes(decision, rules)))


def _changes(decision: Decision, rules: Rules) -> Iterator[str]:
    yield REMEDIES[decision.reason]
    for veto in decision.workload.vetoes:
        yield REMEDIES[veto.reason]
    if decision.workload.obstacle is not None:
        yield REMEDIES[decision.workload.obstacle]
    for pod in decision.workload.pods:
        if pod.gap is not None:
            yield REMEDIES[pod.gap]
    for finding in decision.findings:
        if finding.verdict is Verdict.UNKNOWN:
            yield REMEDIES[finding.reason]
        elif finding.verdict is Verdict.ACTIVE and decision.verdict is Verdict.ACTIVE:
            yield _quiet(finding, rules)
    for finding in decision.findings:
        if finding.verdict is Verdict.IDLE and decision.verdict is not Verdict.ACTIVE:
            yield f"{what_counts(finding.evidence, rules)}."


def _quiet(finding: DeviceFinding, rules: Rules) -> str:
    """Say which signals would have to be quiet on a busy device."""
    busy = [one for one in finding.evidence.signals if one.last_active_at is not None]
    words = ", ".join(SIGNALS[one.signal].word for one in busy)
    lasting = minutes(needed_seconds(finding.evidence, rules))
    return f"{finding.evidence.device} would have to be quiet for {lasting} minutes, in: {words}."

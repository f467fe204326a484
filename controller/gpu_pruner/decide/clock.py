"""From idle to due: the clock of a workload before the act.

It answers the next step of a workload that is watched, nominated, warned or, in a rehearsal, would
have been paused. UNKNOWN never starts, advances or shortens a clock; activity and people's wishes
clear it. It never acts and never measures: it asks for both. `plan` calls `advance`.

Source: ARCHITECTURE section 6, confirmations, notice and freeze.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from gpu_pruner.decide.adoption import adopted
from gpu_pruner.decide.standing import Check, Standing, Step
from gpu_pruner.decide.wording import Why, clock_time, minutes, with_rule
from gpu_pruner.model.book import Phase
from gpu_pruner.model.plan import Action
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.snapshot import ALL_HELD
from gpu_pruner.model.units import HOUR, Seconds, Timestamp
from gpu_pruner.model.verdict import Reason, Verdict

_LEAST_OF_A_CYCLE = 0.5
"""Two looks within half a cycle are one look: `once`, run twice in a row, confirms nothing."""

_OLDEST: Seconds = 72 * HOUR
"""Greatest age of a warning, beside window and notice. The budget plans no farther ahead than 50
hours (2 % of the workloads per hour), and the pause measures all the time since the warning."""

_SKEW: Seconds = 30.0
"""How far a warning's time may lie ahead of ours: clocks farther apart are a breaker."""

_ROUNDING: Seconds = 1.0
"""Books are written to the second."""


def watching(standing: Standing) -> Step:
    """Nominate what is idle and may be paused."""
    known = adopted(standing)
    if known is not None:
        return known
    stop = _stop(standing)
    if stop is not None:
        return standing.stay(stop)
    book = replace(
        standing.book,
        phase=Phase.NOMINATED,
        confirmations=1,
        idle_since=standing.judgement.idle_since,
        nominated_at=standing.now,
    )
    why = (Reason.CONFIRMING, standing.judgement.message)
    step = standing.enter(Phase.NOMINATED, why, book=book)
    return _confirmed(standing, step) if standing.rules.confirmations <= 1 else step


def nominated(standing: Standing) -> Step:
    """Count cycles that agree; then have the devices measured, then have the owner warned."""
    stop = _stop(standing)
    if stop is not None:
        kept = _is_over(standing) or not _is_clock_stopped(standing)
        return standing.enter(Phase.WATCHING if kept else Phase.NOMINATED, stop)
    book, rules = standing.book, standing.rules
    begun = standing.now if book.nominated_at is None else min(standing.now, book.nominated_at)
    least = book.confirmations * rules.cycle_seconds * _LEAST_OF_A_CYCLE
    agreed = book.confirmations + (1 if standing.now - begun >= least else 0)
    book = replace(book, confirmations=min(agreed, rules.confirmations), nominated_at=begun)
    step = standing.stay((Reason.CONFIRMING, standing.judgement.message), book=book)
    return _confirmed(standing, step) if agreed >= rules.confirmations else step


def _confirmed(standing: Standing, step: Step) -> Step:
    """Warn if the full window agrees with the screen."""
    check = standing.check(standing.judgement.window_seconds)
    if check.judgement is None:
        return _unmeasured(check, step)
    judged = check.judgement
    step = structs.replace(step, judgement=judged, verdict=judged.verdict, verified_at=check.at)
    if judged.verdict is Verdict.ACTIVE:
        back = standing.enter(Phase.WATCHING, (judged.reason, judged.message))
        return structs.replace(step, book=back.book, reason=judged.reason, message=judged.message)
    if judged.verdict is Verdict.UNKNOWN:
        return structs.replace(step, reason=judged.reason, message=judged.message)
    now, rules = standing.now, standing.rules
    due = now + rules.notice_seconds
    if not standing.workload.warn_only:
        due = standing.budget.reserve(standing.workload, earliest=due)
    book = replace(
        step.book,
        phase=Phase.WARNED,
        idle_since=judged.idle_since,
        warned_at=now,
        warned_via=(),
        warned_mode=standing.mode.value,
        pause_at=due,
        frozen_since=None,
    )
    told = f"{judged.message}. {_outlook(standing)} at {clock_time(due, now=now)}"
    return structs.replace(step, book=book, action=Action.WARN, reason=Reason.WARNING, message=told)


def _outlook(standing: Standing) -> str:
    """Return what a warning says of the deadline."""
    if standing.workload.warn_only:
        return "Only a warning: another kind would be paused"
    if standing.mode is Mode.DRY_RUN:
        return "Rehearsal: it would be paused"
    return "It will be paused"


def warned(standing: Standing) -> Step:
    """Let the notice run, freeze it where nothing is known, and act when it is over.

    Time in which nobody led counts as time in which the clock stood still.
    """
    ended = _ended(standing)
    if ended is not None:
        return ended
    book, now = standing.book, standing.now
    if book.pause_at is None or book.warned_at is None:
        return _void(standing, "its times are not in the book")
    due = book.pause_at + _frozen(standing)
    void = _malformed(standing, book.warned_at, book.pause_at) or _voided(standing)
    if void is not None:
        return _void(standing, void)
    if _is_clock_stopped(standing):
        return _freeze(standing, _why_stopped(standing))
    if now < due:
        told = f"{standing.judgement.message}. Warned; due at {clock_time(due, now=now)}"
        return _thawed(standing, due).stay((Reason.WARNED, told))
    return _due(standing, due, now - book.warned_at)


def _due(standing: Standing, due: Timestamp, since_warning: Seconds) -> Step:
    """Pause if the full window, and all the time since the warning, agree.

    A clock that stands still at the deadline runs again only when a measurement agrees: a screen
    that reads idle while the measurement fails or doubts does not thaw it.
    """
    check = standing.check(max(standing.judgement.window_seconds, since_warning))
    step = standing.stay((Reason.WARNED, f"{standing.judgement.message}. The notice is over"))
    if check.wanted is not None and not _has_room(standing):
        return _over_budget(standing, standing.judgement.message)
    if check.failure:
        frozen = _freeze(standing, (Reason.VERIFY_FAILED, check.failure))
        return structs.replace(_unmeasured(check, step), book=frozen.book)
    if check.judgement is None:
        return _unmeasured(check, step)
    judged = check.judgement
    if judged.verdict is Verdict.ACTIVE:
        step = standing.enter(Phase.WATCHING, (judged.reason, judged.message), action=Action.CANCEL)
    elif judged.verdict is Verdict.UNKNOWN:
        step = _freeze(standing, (judged.reason, judged.message))
    else:
        step = _agreed(_thawed(standing, due), judged.message)
    return structs.replace(step, judgement=judged, verdict=judged.verdict, verified_at=check.at)


def _agreed(standing: Standing, message: str) -> Step:
    """Pause what is due and proven idle, or say that it would be, or that it has to wait."""
    if standing.workload.warn_only:
        told = with_rule(Reason.WARN_ONLY, message)
        return standing.enter(Phase.WOULD_PAUSE, (Reason.WARN_ONLY, told))
    if standing.mode is Mode.DRY_RUN:
        told = f"{message}. Rehearsal: it would have been paused at "
        told += clock_time(standing.now, now=standing.now)
        return standing.enter(Phase.WOULD_PAUSE, (Reason.WOULD_PAUSE, told))
    if not _has_room(standing):
        return _over_budget(standing, message)
    step = standing.enter(Phase.PAUSING, (Reason.DUE, message), action=Action.PAUSE)
    return structs.replace(step, book=replace(step.book, paused_at=standing.now))


def _has_room(standing: Standing) -> bool:
    """Whether the budget admits the workload, which a rehearsal does not need.

    Asked before the measurement too, so that what cannot be paused in this cycle is not measured.
    """
    return standing.mode is Mode.DRY_RUN or standing.budget.admit(standing.workload)


def _over_budget(standing: Standing, message: str) -> Step:
    return standing.stay((Reason.OVER_BUDGET, with_rule(Reason.OVER_BUDGET, message)))


def would_pause(standing: Standing) -> Step:
    """Stay latched until there is activity, a wish, or another mode."""
    ended = _ended(standing)
    if ended is not None:
        return structs.replace(ended, action=Action.NONE)
    if standing.mode is not Mode.DRY_RUN:
        return _void(standing, "it was a rehearsal")
    reason = Reason.WARN_ONLY if standing.workload.warn_only else Reason.WOULD_PAUSE
    return standing.stay((reason, standing.book.message or reason.rule))


def _stop(standing: Standing) -> Why | None:
    """Return why an idle-looking workload gets no further, or None where it may."""
    judgement, workload = standing.judgement, standing.workload
    if standing.halted:
        return Reason.ALREADY_ZERO, Reason.ALREADY_ZERO.rule
    if judgement.verdict is Verdict.ACTIVE:
        return judgement.reason, judgement.message
    if workload.vetoes:
        return workload.vetoes[0].reason, f"{workload.vetoes[0].detail}. {judgement.message}"
    if standing.breaker is not None or judgement.verdict is Verdict.UNKNOWN:
        return _why_stopped(standing)
    if workload.obstacle is not None:
        return workload.obstacle, with_rule(workload.obstacle, judgement.message)
    return None


def _is_over(standing: Standing) -> bool:
    """Whether a nomination ends for good: at zero, without pods, by work, or by a wish."""
    active = standing.judgement.verdict is Verdict.ACTIVE
    gone = standing.halted or not standing.workload.pods
    return gone or active or standing.veto is not None


def _ended(standing: Standing) -> Step | None:
    """Return the step that ends a warning for good: at zero, work, a wish, or no way to pause."""
    workload, judgement, veto = standing.workload, standing.judgement, standing.veto
    if standing.halted:
        return standing.enter(Phase.WATCHING, (Reason.ALREADY_ZERO, Reason.ALREADY_ZERO.rule))
    if veto is not None:
        told = f"{veto.detail}. {judgement.message}"
        return standing.enter(Phase.WATCHING, (veto.reason, told), action=Action.CANCEL)
    if judgement.verdict is Verdict.ACTIVE and standing.breaker is None:
        return standing.enter(
            Phase.WATCHING, (judgement.reason, judgement.message), action=Action.CANCEL
        )
    if workload.obstacle not in {None, Reason.OWNER_MISSING}:
        obstacle = workload.obstacle or Reason.OWNER_MISSING
        told = with_rule(obstacle, judgement.message)
        return standing.enter(Phase.WATCHING, (obstacle, told), action=Action.CANCEL)
    return None


def _is_clock_stopped(standing: Standing) -> bool:
    """Whether nothing may start or advance: unknown, held, a breaker, or an owner out of sight."""
    return (
        standing.judgement.verdict is Verdict.UNKNOWN
        or standing.hold is not None
        or standing.breaker is not None
        or standing.workload.obstacle is Reason.OWNER_MISSING
    )


def _why_stopped(standing: Standing) -> Why:
    breaker = standing.breaker
    if breaker is not None and breaker.name == ALL_HELD:
        return Reason.HELD, breaker.message
    if breaker is not None:
        return Reason.TELEMETRY_BREAKER, f"{breaker.name}: {breaker.message}"
    if standing.hold is not None:
        return Reason.HELD, standing.hold.detail
    if standing.judgement.verdict is Verdict.UNKNOWN or standing.workload.obstacle is None:
        return standing.judgement.reason, standing.judgement.message
    return standing.workload.obstacle, standing.workload.obstacle.rule


def _freeze(standing: Standing, why: Why) -> Step:
    """Let the deadline move with the clock."""
    told = f"The deadline stands still ({why[0].value}): {why[1]}"
    since = standing.frozen_since
    book = replace(standing.book, frozen_since=standing.now if since is None else since)
    return standing.stay((Reason.CLOCK_FROZEN, told), book=book)


def _frozen(standing: Standing) -> Seconds:
    """Return how long the clock has been standing still; 0 where it runs."""
    since = standing.frozen_since
    return 0.0 if since is None else max(0.0, standing.now - since)


def _thawed(standing: Standing, due: Timestamp) -> Standing:
    """Return the standing with the deadline moved by the time that the clock stood still."""
    if standing.frozen_since is None:
        return standing
    book = replace(standing.book, pause_at=due, frozen_since=None)
    return structs.replace(standing, workload=replace(standing.workload, book=book))


def _malformed(standing: Standing, warned_at: Timestamp, pause_at: Timestamp) -> str | None:
    """Return why a book does not tell of a warning that we gave, or None where it may.

    Anybody who may write the status can put a deadline there.
    """
    rules, now = standing.rules, standing.now
    via = standing.book.warned_via
    if not via:
        return "nobody is known to have received it"
    if rules.delivering_channels.isdisjoint(via):
        counting = ", ".join(sorted(rules.delivering_channels))
        return f"what confirmed it ({', '.join(via)}) does not count as delivery; {counting} does"
    if warned_at > now + _SKEW:
        return "it is dated ahead of time"
    if now - warned_at > rules.window_seconds + rules.notice_seconds + _OLDEST:
        return "it is too old"
    if pause_at < warned_at + rules.notice_seconds - _ROUNDING:
        return "its notice is shorter than the settings ask for"
    return None


def _voided(standing: Standing) -> str | None:
    """Return why a warning no longer counts, or None where it does."""
    mode, rules = standing.book.warned_mode, standing.rules
    if mode != standing.mode.value:
        return f"it was given in mode {mode or 'unknown'}"
    frozen = _frozen(standing)
    if frozen > rules.window_seconds:
        return f"its clock stood still for {minutes(frozen)} minutes"
    return None


def _void(standing: Standing, why: str) -> Step:
    """Go back to be warned anew, after a new measurement.

    It is nominated anew for that, so that the next warning is not taken for this one, told twice.
    """
    told = f"The warning is void, because {why}. {standing.judgement.message}"
    book = replace(
        standing.book,
        phase=Phase.NOMINATED,
        nominated_at=standing.now,
        warned_at=None,
        warned_via=(),
        warned_mode="",
        pause_at=None,
        frozen_since=None,
    )
    return standing.enter(Phase.NOMINATED, (Reason.WARNING_VOID, told), book=book)


def _unmeasured(check: Check, step: Step) -> Step:
    """Ask for a measurement, or say why there is none."""
    if check.wanted is not None:
        return structs.replace(step, action=Action.VERIFY, verify=check.wanted, window=check.window)
    return structs.replace(
        step,
        verdict=Verdict.UNKNOWN,
        reason=Reason.VERIFY_FAILED,
        message=with_rule(Reason.VERIFY_FAILED, f"{step.message}; {check.failure}"),
    )

"""Given back: a workload whose GPUs somebody released, on its way to a pause without the wait.

A release waives the idle window and the notice, and nothing else: every wish of others, every
breaker, the budget, the kind, the pods' state and the evidence have to let the workload pass, and
work that is seen after the release ends it. It answers the step of a released workload, or that it
goes the usual way. `plan` calls it before the clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from msgspec import structs

from gpu_pruner.decide.device import contradicts_itself
from gpu_pruner.decide.idle import Judgement, judge_workload
from gpu_pruner.decide.standing import Standing, Step
from gpu_pruner.decide.wording import clock_time, with_rule
from gpu_pruner.model.book import Phase
from gpu_pruner.model.plan import Action
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Signal, SignalEvidence
from gpu_pruner.model.snapshot import Workload
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import GpuPod, PodPhase, Release
from gpu_pruner.resolve.annotations import shown

RELEASE_STANDS: Seconds = 30 * MINUTE
"""How long a release is carried out: long enough for a full budget or an outage of some minutes,
short enough that nobody has forgotten it when the pause comes."""

_PHASES = frozenset({Phase.WATCHING, Phase.NOMINATED, Phase.WARNED})


def standing_release(workload: Workload, *, now: Timestamp) -> Release | None:
    """Return the release of a workload, if it still holds.

    It does not where it is over, or while it is dated ahead of our clock; where a keep reached
    beyond its moment, for who kept the workload was not asked; or where a pod was made since, for
    somebody started anew.

    Args:
        workload: with the intent and its GPU pods.
        now: Unix seconds.
    """
    intent = workload.intent
    release = intent.release
    if release is None or not now - RELEASE_STANDS < release.at <= now:
        return None
    if intent.keep_until is not None and intent.keep_until > release.at:
        return None
    if any(pod.record.created_at >= release.at for pod in workload.pods):
        return None
    return release


def given_back(standing: Standing) -> Step | None:
    """Return the step of a released workload, or None where it goes the usual way."""
    release = standing_release(standing.workload, now=standing.now)
    if release is None or _is_barred(standing):
        return None
    if _judged(standing, release, measured=None).verdict is not Verdict.IDLE:
        return None
    check = standing.look()
    told = _told(release, now=standing.now)
    if check.wanted is not None:
        step = standing.stay((Reason.RELEASED, told))
        return structs.replace(step, action=Action.VERIFY, verify=check.wanted, window=check.window)
    made = standing.verification
    if check.judgement is None or made is None:
        return None
    judged = _judged(standing, release, measured=made.evidence)
    if judged.verdict is not Verdict.IDLE:
        return None
    if check.judgement.verdict is Verdict.IDLE:
        told = f"{told}. {check.judgement.message}"
    else:
        told = f"{told}. No GPU work was seen after that"
    step = _carried_out(standing, told)
    return structs.replace(
        step, judgement=check.judgement, verdict=judged.verdict, verified_at=check.at
    )


def with_release(standing: Standing, step: Step) -> Step:
    """Return the usual step; of a released workload its sentence says that the release waits."""
    release = standing_release(standing.workload, now=standing.now)
    if release is None or standing.book.phase not in _PHASES or standing.halted:
        return step
    told = f"{_told(release, now=standing.now)}, and not paused while this stands"
    return structs.replace(step, message=f"{step.message}. {told}")


def _is_barred(standing: Standing) -> bool:
    """Whether something other than window and notice stands against a pause."""
    workload = standing.workload
    return (
        standing.book.phase not in _PHASES
        or standing.halted
        or standing.breaker is not None
        or bool(workload.vetoes)
        or workload.obstacle is not None
        or workload.warn_only
    )


def _carried_out(standing: Standing, told: str) -> Step:
    """Pause, or say that it would be paused, or that it has to wait for the budget."""
    if standing.mode is Mode.DRY_RUN:
        at = clock_time(standing.now, now=standing.now)
        told = f"{told}. Rehearsal: it would have been paused at {at}"
        return standing.enter(Phase.WOULD_PAUSE, (Reason.WOULD_PAUSE, told))
    if not standing.budget.admit(standing.workload):
        return standing.stay((Reason.OVER_BUDGET, with_rule(Reason.OVER_BUDGET, told)))
    step = standing.enter(Phase.PAUSING, (Reason.RELEASED, told), action=Action.PAUSE)
    return structs.replace(step, book=replace(step.book, paused_at=standing.now))


def _told(release: Release, *, now: Timestamp) -> str:
    who = shown(release.by) or "somebody"
    told = f"Released by {who} at {clock_time(release.at, now=now)}"
    return f"{told}: {shown(release.reason)}" if release.reason else told


def _judged(
    standing: Standing, release: Release, *, measured: Iterable[DeviceEvidence] | None
) -> Judgement:
    """Judge by the usual rules, blind to work before the release and to how young the pods are.

    Args:
        standing: of the workload.
        release: that stands.
        measured: a verification's evidence; None for the screen's.
    """
    workload = standing.workload
    if measured is None:
        measured = [device for pod in workload.pods for device in pod.devices]
    seen: dict[DeviceId, DeviceEvidence] = {
        one.device: _since(one, release, now=standing.now) for one in measured
    }
    grown = replace(workload, pods=tuple(_grown(pod) for pod in workload.pods))
    return judge_workload(grown, standing.yardstick, measured=seen)


def _grown(pod: GpuPod) -> GpuPod:
    """Return a Ready pod as one that has been Ready for ever."""
    record = pod.record
    if record.phase is not PodPhase.RUNNING or record.ready_since is None:
        return pod
    return replace(pod, record=replace(record, ready_since=0.0, containers_started_at=None))


def _since(evidence: DeviceEvidence, release: Release, *, now: Timestamp) -> DeviceEvidence:
    """Return the evidence without the work that was over when the workload was released.

    Evidence that contradicts itself stays as it is: it cannot be told what of it is true. The power
    that was drawn is explained by the work.
    """
    if contradicts_itself(evidence):
        return evidence
    width = evidence.period.step_seconds
    signals = tuple(_quiet(one, release, width=width, now=now) for one in evidence.signals)
    if signals == evidence.signals:
        return evidence
    return structs.replace(evidence, signals=signals, draw=None)


def _quiet(
    one: SignalEvidence, release: Release, *, width: Seconds, now: Timestamp
) -> SignalEvidence:
    """Return a signal without work that ended before the release, or in the very step of it.

    Of work in that step nobody can tell on which side of the moment it was: a whole step without
    work has to follow.
    """
    last = one.last_active_at
    if last is None or one.signal is Signal.XID:
        return one
    is_over = last <= release.at or (last - width < release.at and now >= last + width)
    return replace(one, active_steps=0, last_active_at=None, loud_steps=0) if is_over else one

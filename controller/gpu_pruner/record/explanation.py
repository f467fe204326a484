"""One workload explained in full, as rows for people and programs: `explain` and the API.

It answers what was measured of every device, signal by signal, who wants what, where the clock
stands, what comes next, and what would change the verdict. It decides nothing: the verdict, the
evidence and the sentences come from `decide`, of which these rows are the written form. Times are
RFC 3339, UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpu_pruner.decide.device import needed_seconds, wanted_changes
from gpu_pruner.decide.outlook import changes, outlook
from gpu_pruner.decide.power import idle_watts
from gpu_pruner.decide.showing import UNITS, what_counts, witnesses
from gpu_pruner.decide.signals import LIVENESS_ORDER, SIGNALS
from gpu_pruner.model.book import Book
from gpu_pruner.model.plan import Decision, DeviceFinding, Verification
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence, SignalEvidence, Track
from gpu_pruner.model.snapshot import Breaker
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.workload import GpuPod
from gpu_pruner.record.explanation_rows import (
    ClockRow,
    DeviceExplanation,
    DrawRow,
    Explanation,
    MissingRow,
    MovementRow,
    OutlookRow,
    PodExplanation,
    ScreenRow,
    SettingRow,
    SignalRow,
    WishRow,
    WorkloadExplanation,
)
from gpu_pruner.record.rows import BreakerRow, audience_rows


def explanation(
    asked: str,
    workloads: Iterable[WorkloadExplanation],
    *,
    now: Timestamp,
    breakers: Iterable[Breaker],
    settings: Iterable[SettingRow],
) -> Explanation:
    """Return the whole answer.

    Args:
        asked: what was asked about.
        workloads: those that are meant.
        now: Unix seconds; the moment of the look.
        breakers: that are open.
        settings: that decisions rest on.
    """
    return Explanation(
        asked=asked,
        at=rfc3339(now),
        breakers=tuple(BreakerRow(one.name, one.message) for one in breakers),
        workloads=tuple(workloads),
        settings=tuple(settings),
    )


def workload_explanation(
    decision: Decision,
    screened: Decision,
    verification: Verification | None,
    *,
    tracks: Sequence[Track],
    now: Timestamp,
    rules: Rules,
) -> WorkloadExplanation:
    """Return one workload as rows.

    Args:
        decision: on the measurement.
        screened: without it.
        verification: the measurement; None where there was nothing to measure.
        tracks: what was measured.
        now: Unix seconds; the moment of the look.
        rules: of the cycle.
    """
    workload, upcoming = decision.workload, outlook(decision, now=now, rules=rules)
    obstacle = workload.obstacle
    return WorkloadExplanation(
        ref=workload.root.ref,
        verdict=decision.verdict.value,
        reason=decision.reason.value,
        rule=decision.reason.rule,
        message=decision.message,
        action=decision.action.value,
        gpus=workload.gpus if workload.pods else decision.book.gpus,
        lever=workload.lever,
        obstacle="" if obstacle is None else f"{obstacle.value}: {obstacle.rule}",
        measured_at=None if verification is None else rfc3339(verification.at),
        failure="" if verification is None else verification.failure,
        screen=_screen(decision, screened),
        clock=_clock(decision.book, rules),
        next=OutlookRow(_time(upcoming.at), upcoming.sentence),
        wishes=tuple(
            WishRow(one.reason.value, one.reason.rule, one.detail, _time(one.until))
            for one in workload.vetoes
        ),
        audience=audience_rows(workload.audience),
        unread=workload.audience.unread,
        pods=tuple(map(_pod, workload.pods)),
        devices=tuple(_devices(decision, tracks, now=now, rules=rules)),
        changes=changes(decision, rules),
    )


def _screen(decision: Decision, screened: Decision) -> ScreenRow | None:
    if screened.verdict is decision.verdict:
        return None
    return ScreenRow(screened.verdict.value, screened.reason.value, screened.message)


def _clock(book: Book, rules: Rules) -> ClockRow:
    return ClockRow(
        state=book.phase.value,
        confirmations=book.confirmations,
        confirmations_wanted=rules.confirmations,
        idle_since=_time(book.idle_since),
        nominated_at=_time(book.nominated_at),
        warned_at=_time(book.warned_at),
        warned_via=book.warned_via,
        warned_mode=book.warned_mode or None,
        pause_at=_time(book.pause_at),
        frozen_since=_time(book.frozen_since),
        paused_at=_time(book.paused_at),
        contested_by=book.contested_by or None,
        contested_until=_time(book.contested_until),
        object_name=book.object_name or None,
    )


def _pod(pod: GpuPod) -> PodExplanation:
    return PodExplanation(
        name=pod.record.name,
        node=pod.record.node,
        phase=pod.record.phase.value,
        gpus=pod.record.gpus,
        devices=len(pod.devices),
        ready_since=_time(pod.record.ready_since),
        gap="" if pod.gap is None else pod.gap.value,
        rule="" if pod.gap is None else pod.gap.rule,
    )


def _devices(
    decision: Decision, tracks: Sequence[Track], *, now: Timestamp, rules: Rules
) -> Iterable[DeviceExplanation]:
    """Yield the devices with their pods: findings come in the order of pods and devices."""
    holders = [pod.record for pod in decision.workload.pods for _ in pod.devices]
    for pod, finding in zip(holders, decision.findings, strict=True):
        own = [
            one
            for one in tracks
            if one.device in {finding.evidence.device, finding.evidence.device.board}
        ]
        yield _device(finding, own, pod=(pod.name, pod.node), now=now, rules=rules)


def _device(
    finding: DeviceFinding,
    tracks: Sequence[Track],
    *,
    pod: tuple[str, str],
    now: Timestamp,
    rules: Rules,
) -> DeviceExplanation:
    evidence = finding.evidence
    counts = {one.signal: one.counts for one in witnesses(evidence, rules)}
    return DeviceExplanation(
        device=str(evidence.device),
        pod=pod[0],
        node=evidence.node or pod[1],
        model=evidence.model,
        shared=evidence.shared,
        verdict=finding.verdict.value,
        reason=finding.reason.value,
        rule=finding.reason.rule,
        detail=finding.detail,
        begin=rfc3339(evidence.period.start),
        end=rfc3339(evidence.period.end),
        step_seconds=evidence.period.step_seconds,
        steps=evidence.period.steps,
        needed_seconds=needed_seconds(evidence, rules),
        signals=tuple(
            _signal(one, evidence, tracks, counts=counts.get(one.signal, ""), now=now)
            for one in evidence.signals
        ),
        missing=tuple(
            MissingRow(one.signal.value, one.word, one.role.value, one.counts)
            for one in witnesses(evidence, rules)
            if not one.metric
        ),
        movement=_movement(evidence, rules),
        draw=_draw(evidence),
        what_counts=what_counts(evidence, rules),
    )


def _signal(
    one: SignalEvidence,
    evidence: DeviceEvidence,
    tracks: Sequence[Track],
    *,
    counts: str,
    now: Timestamp,
) -> SignalRow:
    of_signal = [track for track in tracks if track.signal is one.signal]
    own = [track for track in of_signal if track.device == evidence.device] or of_signal
    return SignalRow(
        signal=one.signal.value,
        word=SIGNALS[one.signal].word,
        role=SIGNALS[one.signal].role.value,
        metrics=tuple(sorted({track.metric for track in own} or {one.metric})),
        jobs=tuple(sorted({track.labels.job for track in own if track.labels.job})),
        unit=UNITS[one.signal],
        peak=one.peak,
        peak_at=_time(one.peak_at),
        counts=counts,
        active_steps=one.active_steps,
        last_active_at=_time(one.last_active_at),
        seen_steps=one.seen_steps,
        steps=evidence.period.steps,
        invalid_steps=one.invalid_steps,
        changes=one.changes,
        newest_at=rfc3339(one.newest_at),
        newest_age_seconds=now - one.newest_at,
    )


def _movement(evidence: DeviceEvidence, rules: Rules) -> MovementRow | None:
    alive: Iterable[SignalEvidence | None] = map(evidence.of, LIVENESS_ORDER)
    first = next((one for one in alive if one is not None), None)
    if first is None:
        return None
    wanted = wanted_changes(evidence.period, rules)
    return MovementRow(first.signal.value, first.changes, wanted)


def _draw(evidence: DeviceEvidence) -> DrawRow | None:
    draw = evidence.draw
    # The power of a slice or of a shared device is its board's, and says nothing about it.
    if draw is None or evidence.shared or evidence.device.mig_instance:
        return None
    return DrawRow(
        watts=round(draw.watts, 1),
        begin=rfc3339(draw.begin),
        end=rfc3339(draw.end),
        idle_watts=idle_watts(evidence.model),
    )


def _time(moment: Timestamp | None) -> str | None:
    return None if moment is None else rfc3339(moment)

"""A workload's verdict from its devices, its pods and its root.

It answers ACTIVE, IDLE or UNKNOWN for the workload as a whole: one busy GPU keeps all of it, and
it is idle only if every device of every pod is. It knows nothing of vetoes, clocks and budgets.
`plan` calls it for every workload, with the screen's evidence and again with a verification's.

Source: ARCHITECTURE section 6, the rules for a pod and a workload.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

import msgspec

from gpu_pruner.decide.device import (
    Yardstick,
    judge_device,
    needed_seconds,
    primary_of,
)
from gpu_pruner.decide.wording import Why, about, clock_time, minutes
from gpu_pruner.model.book import Book
from gpu_pruner.model.plan import DeviceFinding
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence, DeviceId
from gpu_pruner.model.snapshot import Workload
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import GpuPod, PodPhase, PodRecord
from gpu_pruner.resolve.attribution import node_key

_UPDATED = "are up to date"


class Judgement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the evidence says about one workload."""

    verdict: Verdict
    reason: Reason
    message: str
    """One sentence with the evidence."""
    findings: tuple[DeviceFinding, ...] = ()
    """One per device, in the order of pods and devices."""
    idle_since: Timestamp | None = None
    """Begin of the shortest period that a device was judged over, to the second; None unless idle.
    """
    window_seconds: Seconds = 0.0
    """How long it has to be quiet: the longest that a device of it needs."""


class _Look(msgspec.Struct, frozen=True, gc=False):
    """One workload as it is being judged."""

    workload: Workload
    pods: list[GpuPod]
    """Those that shield it."""
    found: list[tuple[GpuPod, DeviceFinding]]
    """Of all its pods."""
    window: Seconds
    """How long it has to be quiet."""
    yardstick: Yardstick


def judge_workload(
    workload: Workload,
    yardstick: Yardstick,
    *,
    measured: Mapping[DeviceId, DeviceEvidence] | None = None,
) -> Judgement:
    """Judge one workload.

    Args:
        workload: with the screen's evidence on its pods.
        yardstick: rules and moment.
        measured: evidence to use instead of the screen's; a device that it lacks has no telemetry.
    """
    pods = [pod for pod in workload.pods if not _is_ignored(pod.record, yardstick)]
    # A pod that is Pending for too long shields nobody, but a device that it holds is heard: an
    # init container can work for hours.
    found = [
        (pod, finding)
        for pod in workload.pods
        for finding in _findings(pod, yardstick, measured=measured)
    ]
    findings = tuple([finding for _, finding in found])
    window = yardstick.rules.window_seconds
    for finding in findings:
        window = max(window, needed_seconds(finding.evidence, yardstick.rules))
    why = _activity(found) or _doubt(_Look(workload, pods, found, window, yardstick))
    if why is not None:
        active = why[0] is Reason.GPU_ACTIVE
        return Judgement(
            verdict=Verdict.ACTIVE if active else Verdict.UNKNOWN,
            reason=why[0],
            message=why[1],
            findings=findings,
            window_seconds=window,
        )
    return Judgement(
        verdict=Verdict.IDLE,
        reason=Reason.IDLE,
        message=idle_sentence(findings, since=_verified_since(workload.book), now=yardstick.at),
        findings=findings,
        idle_since=float(ceil(max(one.evidence.period.start for one in findings))),
        window_seconds=window,
    )


def _verified_since(book: Book) -> Timestamp | None:
    """Return the begin of idleness that was measured, and watched ever since; else None."""
    return None if book.warned_at is None else book.idle_since


def idle_sentence(
    findings: tuple[DeviceFinding, ...], *, since: Timestamp | None, now: Timestamp
) -> str:
    """Say what idleness rests on.

    Args:
        findings: one per device, all idle; at least one.
        since: begin of the idleness as it was measured; told where it is older than the period.
        now: Unix seconds.

    Returns:
        For example ``No GPU work on 4 of 4 GPUs since 14:02 UTC; engine peak 0.000, 35 of 35
        minutes seen``, with the weakest device's evidence.
    """
    weakest = min(findings, key=_strength)
    period = weakest.evidence.period
    begin = max(one.evidence.period.start for one in findings)
    if since is not None and since < begin - period.step_seconds / 2:
        told = f"since {clock_time(since, now=now)}"
    else:
        told = f"for at least {minutes(period.end - begin)} minutes"
    return f"No GPU work on {len(findings)} of {len(findings)} GPUs {told}; {weakest.detail}"


def _strength(finding: DeviceFinding) -> tuple[float, float]:
    """Order devices by coverage, then by how quiet they were."""
    steps, primary = finding.evidence.period.steps, primary_of(finding.evidence)
    if primary is None:
        return 0.0, 0.0
    return primary.seen_steps / max(1, steps), -(primary.peak or 0.0)


def _is_ignored(pod: PodRecord, yardstick: Yardstick) -> bool:
    """Whether a pod has been Pending for so long that it no longer shields its siblings."""
    if pod.phase is not PodPhase.PENDING:
        return False
    return yardstick.at - pod.created_at > yardstick.rules.shield_seconds


def _findings(
    pod: GpuPod,
    yardstick: Yardstick,
    *,
    measured: Mapping[DeviceId, DeviceEvidence] | None,
) -> Iterator[DeviceFinding]:
    node = node_key(pod.record.node)
    for screened in pod.devices:
        evidence = screened if measured is None else measured.get(screened.device)
        if evidence is None:
            yield DeviceFinding(
                evidence=screened,
                verdict=Verdict.UNKNOWN,
                reason=Reason.NO_SERIES,
                detail="the full-window check brought no series of it",
            )
        else:
            whole = _with_surroundings(evidence, screened)
            yield judge_device(whole, yardstick, born_at=pod.record.created_at, node=node)


def _with_surroundings(evidence: DeviceEvidence, screened: DeviceEvidence) -> DeviceEvidence:
    """Return a measurement with what only the whole cluster tells: sharing, and the model."""
    if evidence is screened or (evidence.shared, evidence.model) == (
        screened.shared,
        screened.model,
    ):
        return evidence
    return msgspec.structs.replace(
        evidence,
        shared=evidence.shared or screened.shared,
        model=evidence.model or screened.model,
    )


def _activity(found: list[tuple[GpuPod, DeviceFinding]]) -> Why | None:
    """Return the first device that is busy: it keeps all of the workload."""
    for pod, finding in found:
        if finding.verdict is Verdict.ACTIVE:
            return finding.reason, about(pod.record, finding)
    return None


def _doubt(look: _Look) -> Why | None:
    """Return why the workload is not proven idle although nothing is busy, or None."""
    if not look.pods:
        return Reason.POD_NOT_READY, "No GPU pod of it is running"
    for pod in look.pods:
        if (lifecycle := _lifecycle(pod.record, look)) is not None:
            return lifecycle
    if (rollout := _rollout(look.workload, look.yardstick)) is not None:
        return rollout
    for pod in look.pods:
        if pod.gap is not None:
            return pod.gap, _gap_sentence(pod)
    for pod, finding in look.found:
        if finding.verdict is not Verdict.IDLE:
            return finding.reason, about(pod.record, finding)
    return _mixed(look.workload)


def _mixed(workload: Workload) -> Why | None:
    """Return that a replica holds no GPU, as far as the counts tell, or None where all do.

    Replicas are all alike. Where there are more of them than GPU pods, or fewer, one of the pods
    only claims to be a replica, and the replicas are at other work than ours to judge.
    """
    owner = workload.owner
    if owner is None or owner.observed is None:
        return None
    held = sum(not pod.record.terminating for pod in workload.pods)
    expected = owner.observed * (owner.pods_per_replica or 0)
    if held == expected:
        return None
    return Reason.MIXED_REPLICAS, f"{held} GPU pods for {owner.observed} replicas of the root"


def _gap_sentence(pod: GpuPod) -> str:
    told = f"{len(pod.devices)} devices were found for the {pod.record.gpus} GPUs of"
    if pod.gap in {Reason.NO_SERIES, Reason.DEVICE_MISMATCH}:
        return f"{told} pod {pod.record.name}"
    rule = pod.gap.rule if pod.gap is not None else ""
    return f"Pod {pod.record.name}: {rule}"


def _lifecycle(pod: PodRecord, look: _Look) -> Why | None:
    """Return why a pod is not yet, or no longer, one to be judged."""
    rules, now = look.yardstick.rules, look.yardstick.at
    if pod.terminating:
        return Reason.POD_TERMINATING, f"Pod {pod.name} is being deleted"
    begin = counts_from(pod, rules)
    if begin is None or begin > now:
        return Reason.POD_NOT_READY, f"Pod {pod.name} is {pod.phase.value} and not Ready"
    if now - begin < look.window + rules.settle_seconds:
        told = f"Pod {pod.name} is Ready since {clock_time(begin, now=now)}; "
        told += f"it is judged after {minutes(look.window + rules.settle_seconds)} minutes"
        return Reason.TOO_YOUNG, told
    return None


def counts_from(pod: PodRecord, rules: Rules) -> Timestamp | None:
    """Return from when on a pod's time counts, Unix seconds, or None where it does not at all."""
    if pod.phase is not PodPhase.RUNNING:
        return None
    started = pod.containers_started_at
    if pod.ready_since is not None:
        return pod.ready_since if started is None else max(pod.ready_since, started)
    return None if started is None else started + rules.never_ready_seconds


def _rollout(workload: Workload, yardstick: Yardstick) -> Why | None:
    """Return how the root is changing, unless its new pods have been stuck for too long."""
    owner = workload.owner
    if owner is None:
        return None
    observed = owner.observed_generation
    if observed is not None and observed < owner.generation:
        return Reason.ROLLOUT_IN_PROGRESS, "The newest change of the root is not observed yet"
    if owner.desired is None:
        return None
    counts = (("exist", owner.observed), ("are Ready", owner.ready), (_UPDATED, owner.updated))
    off = next(((word, n) for word, n in counts if n is not None and n != owner.desired), None)
    if off is None:
        return None
    word, count = off
    new = [
        pod.record.created_at
        for pod in workload.pods
        if pod.record.ready_since is None or word == _UPDATED
    ]
    if new and yardstick.at - max(new) > yardstick.rules.shield_seconds:
        return None
    return Reason.ROLLOUT_IN_PROGRESS, f"{count} of {owner.desired} replicas {word}"

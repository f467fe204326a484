"""Decisions and cycle reports as the stages after `decide` get them."""

from __future__ import annotations

from collections.abc import Sequence

from support.manual_clock import NOON

from gpu_pruner.model.book import Book
from gpu_pruner.model.orders import Delivery, Outcome
from gpu_pruner.model.plan import Action, Decision, DeviceFinding, Plan
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period, Signal, SignalEvidence
from gpu_pruner.model.snapshot import Breaker, Workload
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import GpuPod, Intent, PodPhase, PodRecord, RootRef
from gpu_pruner.record.report import Counts, CycleReport

SERVER = RootRef("Deployment", "team-a", "server", "apps", "uid-d")
NOTEBOOK = RootRef("Notebook", "team-b", "notebook-1", "kubeflow.org", "uid-n")
ANSWERED = Counts(query_successes=1)
PERIOD = Period(first=100, last=134, step_seconds=60)


def a_pod(name: str, *, gpus: int = 4) -> GpuPod:
    record = PodRecord(
        uid=f"uid-{name}",
        namespace="team-a",
        name=name,
        phase=PodPhase.RUNNING,
        created_at=NOON - 7200,
        requests={"nvidia.com/gpu": gpus},
    )
    return GpuPod(record=record)


def a_finding(*, verdict: Verdict = Verdict.IDLE, peak: float = 0.0) -> DeviceFinding:
    busy = verdict is Verdict.ACTIVE
    engine = SignalEvidence(
        signal=Signal.ENGINE,
        metric="DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        seen_steps=35,
        active_steps=3 if busy else 0,
        last_active_at=PERIOD.end if busy else None,
        invalid_steps=0,
        changes=1,
        newest_at=PERIOD.end - 30,
        peak=peak,
    )
    energy = SignalEvidence(
        signal=Signal.ENERGY,
        metric="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        seen_steps=35,
        active_steps=0,
        last_active_at=None,
        invalid_steps=0,
        changes=34,
        newest_at=PERIOD.end,
    )
    device = DeviceEvidence(DeviceId("GPU-1"), PERIOD, (engine, energy))
    reason = Reason.GPU_ACTIVE if busy else Reason.IDLE
    return DeviceFinding(evidence=device, verdict=verdict, reason=reason, detail="engine peak")


def a_decision(
    root: RootRef = SERVER,
    *,
    verdict: Verdict = Verdict.IDLE,
    reason: Reason = Reason.WARNED,
    action: Action = Action.NONE,
    before: Book | None = None,
    book: Book | None = None,
    **more: object,
) -> Decision:
    after = book if book is not None else Book()
    intent, pods = more.get("intent", Intent()), more.get("pods", (a_pod("server-1"),))
    message = more.get("message", "No GPU work on 4 of 4 GPUs since 11:02.")
    findings = more.get("findings", ())
    assert isinstance(intent, Intent)
    assert isinstance(pods, tuple)
    assert isinstance(message, str)
    assert isinstance(findings, tuple)
    workload = Workload(
        root=root, pods=pods, intent=intent, book=before if before is not None else after
    )
    return Decision(
        workload=workload,
        verdict=verdict,
        reason=reason,
        message=message,
        book=after,
        action=action,
        decision_id="d-1",
        findings=findings,
    )


def a_report(
    *decisions: Decision,
    number: int = 1,
    outcomes: Sequence[Outcome] = (),
    deliveries: Sequence[Delivery] = (),
    breakers: Sequence[Breaker] = (),
    counts: Counts = ANSWERED,
    seconds: float = 0.5,
) -> CycleReport:
    """Return the report of the cycle that started `number` minutes after eleven fifty-nine."""
    at = NOON + 60 * (number - 1)
    return CycleReport(
        number=number,
        started_at=at,
        finished_at=at + seconds,
        plan=Plan(at=at, decisions=tuple(decisions), breakers=tuple(breakers)),
        outcomes=tuple(outcomes),
        deliveries=tuple(deliveries),
        breakers=tuple(breakers),
        counts=counts,
    )

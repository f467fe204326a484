"""GPU seconds of one cycle, hour by hour: whose, on which model, in which state.

The rules are those of the metric ``gpu_pruner_gpu_seconds_total``: the time since the cycle before
counts under the state that this cycle found, and a gap in which no cycle ran is left out. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpu_pruner.model.plan import Decision, Plan
from gpu_pruner.model.signals import DeviceEvidence
from gpu_pruner.model.units import HOUR, Seconds, Timestamp
from gpu_pruner.model.workload import RootRef
from gpu_pruner.record.ledger.entries import GpuTime, Who, fit
from gpu_pruner.record.totals import LONGEST_GAP_SECONDS, gpu_state

LONGEST_NAME = 253
"""Characters of a name, as Kubernetes has it; an owner's may be anything, and is cut."""


def gpu_time(
    plan: Plan | None, *, since: Timestamp | None, until: Timestamp
) -> tuple[GpuTime, ...]:
    """Return what a plan's workloads spent between two cycles.

    Args:
        plan: of the later one; None where it came to none, and its time is left out.
        since: when the earlier one began, Unix seconds; None where there is none.
        until: when the later one began.
    """
    if plan is None or since is None or not 0 < until - since <= LONGEST_GAP_SECONDS:
        return ()
    hours = tuple(hours_between(since, until))
    return tuple(
        GpuTime(who=who(decision), hour=hour, model=model, state=state, seconds=gpus * seconds)
        for decision in plan.decisions
        for state, models in (_held(decision),)
        for model, gpus in models.items()
        for hour, seconds in hours
    )


def hours_between(begin: Timestamp, end: Timestamp) -> Iterator[tuple[int, Seconds]]:
    """Yield each hour that a stretch touches, by its begin, with the seconds within it.

    >>> list(hours_between(3500.0, 7300.0))
    [(0, 100.0), (3600, 3600.0), (7200, 100.0)]
    """
    hour = int(begin // HOUR) * int(HOUR)
    while hour < end:
        yield hour, min(end, hour + HOUR) - max(begin, hour)
        hour += int(HOUR)


def _held(decision: Decision) -> tuple[str, Counter[str]]:
    """Return the state, and how many GPUs of each model; what no telemetry names has model ""."""
    state, gpus = gpu_state(decision)
    seen = Counter(_model(one.evidence) for one in decision.findings)
    if state == "paused" or seen.total() > gpus:
        seen = Counter()  # devices that are not what the pods ask for say nothing of these GPUs
    seen[""] += gpus - seen.total()
    return state, +seen


def _model(evidence: DeviceEvidence) -> str:
    """Return the model; slices and shares are something else than the board, and cost less."""
    if not evidence.model:
        return ""
    parts = [evidence.model]
    if evidence.device.mig_instance:
        parts.append(f"MIG {evidence.owners[-1].mig_profile if evidence.owners else ''}".strip())
    if evidence.shared:
        parts.append("shared")
    return fit(" ".join(parts))


def who(decision: Decision) -> Who:
    """Return which workload a decision is about."""
    return who_of(decision.workload.root, owner=owner_of(decision))


def who_of(root: RootRef, *, owner: str) -> Who:
    """Return a root with its owner, fit for a database."""
    return Who(
        kind=fit(root.kind),
        namespace=fit(root.namespace),
        name=fit(root.name),
        api_group=fit(root.group),
        root_uid=fit(root.uid),
        owner=fit(owner)[:LONGEST_NAME],
    )


def owner_of(decision: Decision) -> str:
    """Return the people whose workload it is, in one line; "" where nobody is named."""
    return decision.workload.audience.names

"""How the demo ended: for programs as JSON, for people one line per workload.

Pure; `demo` makes it of the last look at the stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from gpu_pruner.sim.judge import Judgement
from gpu_pruner.sim.stage import Moment, ToldBreaker
from gpu_pruner.sim.story import Ending


class SummaryRow(msgspec.Struct, frozen=True):
    """One workload at the end of the demo."""

    ref: str
    verdict: str
    reason: str
    message: str
    state: str
    """paused, resumed or kept, as the API server's objects and request log show it; else
    ``unfinished``. Where nothing was expected: paused or kept."""
    expected: str
    told: str
    """What it is, in the story's words."""
    why: str
    """The evidence in the record of its pause; of what was not paused, the message."""
    faults: tuple[str, ...]


class Summary(msgspec.Struct, frozen=True):
    """What the demo prints without a terminal."""

    ok: bool
    minutes: float
    """Simulated."""
    workloads: tuple[SummaryRow, ...]
    breakers: tuple[ToldBreaker, ...]
    cycle: Mapping[str, str | int]
    faults: tuple[str, ...]


def summarise(moment: Moment) -> Summary:
    """Return how the story ended."""
    unfinished = tuple(
        f"{one.part.ref} did not end {one.part.ending.value}"
        for one in moment.judgements
        if not one.over and not one.faults
    )
    faults = (*moment.faults, *unfinished, *moment.misreports())
    return Summary(
        ok=not faults,
        minutes=round(moment.minute, 1),
        workloads=tuple(_row(one, moment) for one in moment.judgements),
        breakers=moment.cycle.breakers,
        cycle=moment.cycle.cycle,
        faults=faults,
    )


def _row(judgement: Judgement, moment: Moment) -> SummaryRow:
    part = judgement.part
    told = moment.told.get(part.ref)
    message = told.message if told else ""
    return SummaryRow(
        ref=part.ref,
        verdict=told.verdict if told else "",
        reason=told.reason if told else "",
        message=message,
        state=_state(judgement, moment),
        expected=part.ending.value,
        told=part.told,
        why=judgement.why or message,
        faults=judgement.faults,
    )


def _state(judgement: Judgement, moment: Moment) -> str:
    part = judgement.part
    if not judgement.over:
        return "unfinished"
    if part.ending is Ending.OPEN:
        return "paused" if moment.scenes[part.ref].phase == "Paused" else "kept"
    return part.ending.value


def playbill(summary: Summary) -> Iterator[str]:
    """Yield one line per workload: how it ended, what it is, and why."""
    for row in summary.workloads:
        what = f" ({row.told})" if row.told else ""
        reason = "" if row.why != row.message else f"{row.reason}: "
        yield f"{row.state:<10}  {row.ref}{what}: {reason}{row.why}"


def verdict(summary: Summary) -> str:
    """Say whether it ended as told."""
    if summary.ok:
        return "The story ended as told."
    return "The story did NOT end as told: " + "; ".join(summary.faults)

"""A pause of ours that the books do not know of: it is taken up again.

It answers what it means that a watched workload is under a pause of ours: its GPUWorkload was
deleted, or a pause arrived whose book could not be written. It is then remembered as what it is, so
that everybody sees it and it can be given back. Nothing is done to the workload for that, and
nobody is told anew. `clock` asks.

Source: ARCHITECTURE section 5, the pause record.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from gpu_pruner.decide.standing import Standing, Step
from gpu_pruner.decide.wording import clock_time
from gpu_pruner.model.book import Phase
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.resolve.pauses import pause_on


def adopted(standing: Standing) -> Step | None:
    """Return the step of a workload that is found paused by us, or None where it is not.

    A pause counts when its pods are gone. Wishes and obstacles do not matter: no wish starts what
    is paused, and nothing is left to be paused. A record that is dated ahead of time is dated now,
    because the hourly budget counts it.
    """
    owner = standing.workload.owner
    record = None if owner is None or standing.workload.pods else pause_on(owner)
    if record is None:
        return None
    at = min(record.at, standing.now)
    book = replace(standing.book, phase=Phase.PAUSED, paused_at=at, pause=record)
    told = f"Paused at {clock_time(at, now=standing.now)}, as the record on it says"
    step = standing.enter(Phase.PAUSED, (Reason.PAUSED, told), book=book)
    return structs.replace(step, verdict=Verdict.IDLE)

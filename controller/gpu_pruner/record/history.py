"""What was done, as rows for people and programs: the answers of the routes about the past.

Plain values, so that reading the module loads no database. `record.ledger` fills them, `serve`
encodes them.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.record.savings import Savings, SavingsRow


class Act(msgspec.Struct, frozen=True, rename="camel"):
    """One pause or restore that the controller ordered. Times are RFC 3339, UTC."""

    at: str
    ref: str
    """``kind/namespace/name``."""
    owner: str
    """Empty where nobody is named."""
    action: str
    """``pause`` or ``restore``."""
    result: str
    """How it ended: done, dry-run, refused, conflict or failed."""
    message: str
    """The sentence with the evidence that it rested on."""
    detail: str
    """What came of it, in words."""
    gpus: int
    decision_id: str
    called_wrong_by: str | None = None
    """Who called this pause wrong; null where nobody did."""


class CalledWrong(msgspec.Struct, frozen=True, rename="camel"):
    """A false positive: a pause that somebody called wrong."""

    at: str
    """When it was called wrong."""
    ref: str
    owner: str
    by: str
    """Who called it wrong."""
    reason: str
    """Why, in their words."""
    evidence: str
    """The sentence that the pause rested on."""
    decision_id: str
    paused_at: str | None


class History(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of ``/api/v1/history``; each list has the newest first."""

    begin: str
    end: str
    acts: tuple[Act, ...]
    more_acts: bool
    """Whether there are more than the limit."""
    false_positives: tuple[CalledWrong, ...]
    """Called wrong in this time, whenever the pause was."""
    more_false_positives: bool


class Leaderboard(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of ``/api/v1/leaderboard``; each list has the most idle GPU hours first."""

    begin: str
    """The whole hour in which the window begins."""
    end: str
    history_begins: str | None
    """The first cycle within; what was before it is not in the sums. Null where there is none."""
    total: SavingsRow
    namespaces: tuple[SavingsRow, ...]
    owners: tuple[SavingsRow, ...]
    workloads: tuple[SavingsRow, ...]
    rows: dict[str, int]
    """How many rows each list has without the limit."""


def leaderboard(report: Savings, *, limit: int) -> Leaderboard:
    """Return the head of a report.

    Args:
        report: without prices.
        limit: the most rows of each list.
    """
    lists = {
        "namespaces": report.namespaces,
        "owners": report.owners,
        "workloads": report.workloads,
    }
    return Leaderboard(
        begin=report.begin,
        end=report.end,
        history_begins=report.history_begins,
        total=report.total,
        namespaces=report.namespaces[:limit],
        owners=report.owners[:limit],
        workloads=report.workloads[:limit],
        rows={name: len(rows) for name, rows in lists.items()},
    )

"""`summary` and `stats`, in the shape that the Rust tool's dashboard and scripts know.

Answers: how many scale-downs, how many idle workloads, how many pods were looked at. Pure
functions of the `Board`; `serve` encodes what they return. Scale-downs are those that history has;
where none is kept they are counted in memory, since this process started.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpu_pruner.model.units import HOUR, Seconds, Timestamp, rfc3339
from gpu_pruner.record.board import Board


class Window(StrEnum):
    """The windows that may be asked for."""

    HOUR = "1h"
    WEEK = "7d"
    MONTH = "30d"

    @property
    def seconds(self) -> Seconds:
        """Return its length."""
        hours = {Window.HOUR: 1, Window.WEEK: 7 * 24, Window.MONTH: 30 * 24}
        return hours[self] * HOUR


DEFAULT_WINDOW = Window.WEEK
"""What is answered where no window is asked for, as in the Rust tool."""


class LifetimeScaleDowns(msgspec.Struct, frozen=True):
    """Pauses that were carried out."""

    lifetime: int
    """In all that history has; since this process started where none is kept."""


class WindowedScaleDowns(msgspec.Struct, frozen=True):
    """Pauses that were carried out."""

    lifetime: int
    """In all that history has; since this process started where none is kept."""
    in_window: int
    """Within the window, as far back as history reaches, or else this process remembers."""
    window: Window


class Pauses(msgspec.Struct, frozen=True):
    """Pauses that were carried out, as the ledger has them."""

    known: int
    in_window: int


class IdleWorkloads(msgspec.Struct, frozen=True):
    """Workloads that the last plan found idle."""

    current: int


class Summary(msgspec.Struct, frozen=True):
    """The answer of ``/api/v1/summary``."""

    scale_downs: LifetimeScaleDowns
    idle_workloads: IdleWorkloads
    pods_checked: int
    """GPU pods that the last plan judged."""
    updated_at: str
    """RFC 3339: when the last cycle ended, or the time of asking before the first one did."""


class Statistics(msgspec.Struct, frozen=True):
    """The answer of ``/api/v1/stats``."""

    scale_downs: WindowedScaleDowns
    idle_workloads: IdleWorkloads
    prometheus_available: bool
    """Whether the last cycle's telemetry was answered, whatever its source."""
    pods_checked: int
    updated_at: str


def summary(board: Board, *, now: Timestamp, kept: Pauses | None = None) -> Summary:
    """Return the summary of what is known now.

    Args:
        board: the latest cycle.
        now: Unix seconds.
        kept: what history has; None where none is kept.
    """
    lifetime = scale_downs(board) if kept is None else kept.known
    return Summary(
        scale_downs=LifetimeScaleDowns(lifetime=lifetime),
        idle_workloads=IdleWorkloads(current=idle_workloads(board)),
        pods_checked=pods_checked(board),
        updated_at=_updated_at(board, now),
    )


def statistics(
    board: Board,
    window: Window = DEFAULT_WINDOW,
    *,
    now: Timestamp,
    kept: Pauses | None = None,
) -> Statistics:
    """Return the statistics of one window that ends now; `kept` as for `summary`."""
    if kept is None:
        since = now - window.seconds
        recent = sum(moment >= since for moment in board.totals.scaled_at)
        kept = Pauses(known=scale_downs(board), in_window=recent)
    return Statistics(
        scale_downs=WindowedScaleDowns(
            lifetime=kept.known, in_window=kept.in_window, window=window
        ),
        idle_workloads=IdleWorkloads(current=idle_workloads(board)),
        prometheus_available=bool(board.latest and board.latest.telemetry_available),
        pods_checked=pods_checked(board),
        updated_at=_updated_at(board, now),
    )


def scale_downs(board: Board) -> int:
    """Return how many pauses were carried out since this process started."""
    return board.totals.scales.total()


def idle_workloads(board: Board) -> int:
    """Return how many workloads the last plan found idle."""
    return sum(1 for _ in board.planned.idle()) if board.planned else 0


def pods_checked(board: Board) -> int:
    """Return how many GPU pods the last plan judged."""
    if board.planned is None:
        return 0
    return sum(len(decision.workload.pods) for decision in board.planned.decisions)


def _updated_at(board: Board, now: Timestamp) -> str:
    return rfc3339(now if board.last_cycle_at is None else board.last_cycle_at)

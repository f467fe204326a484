"""The ledger as a cycle sees it: takes a report at once, and writes it in a thread of its own.

A cycle never waits for it and never fails by it. Between the two is a short queue: it fills only
where a disk or a server stands still for longer than its time limits say, and what finds no place
is counted as lost. `cli` makes one; `loop.cycle` calls `record`.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from dataclasses import replace

import structlog

from gpu_pruner.model.units import Seconds
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.record.ledger.keeper import Keeper
from gpu_pruner.record.ledger.spool import Spool
from gpu_pruner.record.ledger.state import LedgerState
from gpu_pruner.record.report import CycleReport
from gpu_pruner.settings.ledger import LedgerSettings

MOST_WAITING = 30
"""Reports; half an hour of cycles, which share most of what they hold."""

LAST_WORDS_SECONDS: Seconds = 20.0
"""How long an orderly end waits for what is still to be written."""

_log = structlog.get_logger(__name__)


class Ledger:
    """Writes history beside the cycles."""

    def __init__(self, keeper: Keeper, *, most_waiting: int = MOST_WAITING) -> None:
        """Begin to write.

        Args:
            keeper: does the work; from now on the thread's alone.
            most_waiting: reports that may wait for it.
        """
        self._keeper = keeper
        self._reports: queue.Queue[CycleReport | None] = queue.Queue(most_waiting)
        self._turned_away = 0
        self._thread = threading.Thread(target=self._write, name="ledger", daemon=True)
        self._thread.start()

    def record(self, report: CycleReport) -> None:
        """Have a cycle written. Never waits, never raises."""
        try:
            self._reports.put_nowait(report)
        except queue.Full:
            if not self._turned_away:
                _log.error("history is lost", cycles=1, why="writing stands still")
            self._turned_away += 1

    def state(self) -> LedgerState:
        """Return how it is doing."""
        state = self._keeper.state
        waiting = self._reports.qsize()
        return replace(
            state,
            backlog=state.backlog + waiting,
            in_memory=state.in_memory + waiting,
            lost=state.lost + self._turned_away,
        )

    async def close(self) -> None:
        """Write what is waiting, and end; at most `LAST_WORDS_SECONDS`."""
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        try:
            self._reports.put(None, timeout=LAST_WORDS_SECONDS)
        except queue.Full:
            return
        self._thread.join(LAST_WORDS_SECONDS)

    def _write(self) -> None:
        while (report := self._reports.get()) is not None:
            self._keeper.take(report)
        self._keeper.close()


def opened(settings: LedgerSettings) -> Ledger:
    """Return the ledger of the settings. The database need not be there yet.

    Raises:
        ConfigurationError: the directory cannot be written in, or the driver is not installed.
    """
    spool = Spool(settings.spool) if settings.spool else None
    keeper = Keeper(Database(settings), spool, retention_seconds=settings.retention_seconds)
    return Ledger(keeper)

"""Keeps what a cycle has to tell: in the database, else in the spool, else in memory.

Nothing of a cycle is lost while one of the three has room, and what is lost is counted and said.
One log line when an outage begins and one when it ends. There are no timers: every cycle tries
again. Blocks its caller, who is the ledger's thread; reads no clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import structlog

from gpu_pruner.errors import LedgerError
from gpu_pruner.model.units import HOUR, Seconds, Timestamp
from gpu_pruner.record.ledger.database import BatchRefused, Database
from gpu_pruner.record.ledger.entries import Batch
from gpu_pruner.record.ledger.scribe import Scribe
from gpu_pruner.record.ledger.spool import Spool, packed, unpacked
from gpu_pruner.record.ledger.state import LedgerState
from gpu_pruner.record.report import CycleReport

MOST_IN_MEMORY = 32 << 20
"""Bytes of packed batches: an hour of a very large cluster, days of a small one."""

FORGET_EVERY: Seconds = HOUR
"""Time between two deletions of what is old."""

_log = structlog.get_logger(__name__)


class Keeper:
    """Takes cycle reports, one after the other."""

    def __init__(
        self,
        database: Database,
        spool: Spool | None,
        *,
        retention_seconds: Seconds,
        scribe: Scribe | None = None,
        most_in_memory: int = MOST_IN_MEMORY,
    ) -> None:
        """Begin; nothing is opened yet.

        Args:
            database: where everything goes.
            spool: for what it cannot take; None where no directory is set.
            retention_seconds: how long history is kept.
            scribe: makes the batches.
            most_in_memory: bytes to keep where neither can take anything.
        """
        self._database = database
        self._spool = spool
        self._retention_seconds = retention_seconds
        self._scribe = scribe or Scribe()
        self._most_in_memory = most_in_memory
        self._memory: deque[bytes] = deque()
        self._spooled: int | None = None
        """Batches in the spool; None before it was looked into."""
        self._forgot_at: Timestamp | None = None
        self._outage = ""
        """What the database's outage was told with; empty while there is none."""
        self._spool_outage = False
        self.state = LedgerState()

    def take(self, report: CycleReport) -> None:
        """Keep what a cycle has to tell. When this returns it is stored, spooled, or counted."""
        batch = self._scribe.batch(report)
        if batch is not None:
            self._remember(packed(batch))
        self.settle(now=report.finished_at)

    def settle(self, *, now: Timestamp) -> None:
        """Store everything that is kept; what cannot be stored now is spooled."""
        try:
            stored = self._store_all()
            self._forget_old(now)
        except LedgerError as error:
            self._count(failures=1)
            if not self._outage:
                self._outage = str(error)
                _log.error("the ledger cannot be written; history is kept aside", error=str(error))
            self._spool_memory()
        else:
            if stored:
                self.state = replace(self.state, last_success_at=now)
            if self._outage:
                _log.info("the ledger is written again", stored=stored, lost=self.state.lost)
            self._outage, self._spool_outage = "", False
        kept = len(self._memory)
        self.state = replace(self.state, backlog=(self._spooled or 0) + kept, in_memory=kept)

    def _store_all(self) -> int:
        stored = 0
        if self._spool is not None and self._spooled != 0:
            self._spooled = self._spool.count()
            damaged = self._spool.drain(self._store) if self._spooled else 0
            stored, self._spooled = self._spooled, 0
            if damaged:
                self._lose(damaged, "the spool is damaged")
        while self._memory:
            self._store(unpacked(self._memory[0]))
            self._memory.popleft()
            stored += 1
        return stored

    def _store(self, batch: Batch) -> None:
        try:
            self._database.store(batch)
        except BatchRefused as error:
            # Tried again and again it would keep everything behind it waiting.
            self._lose(1, str(error))

    def _spool_memory(self) -> None:
        if self._spool is None:
            return
        try:
            while self._memory:
                self._spool.append(unpacked(self._memory[0]))
                self._memory.popleft()
                self._spooled = (self._spooled or 0) + 1
        except LedgerError as error:
            if not self._spool_outage:
                self._spool_outage = True
                _log.error("the spool cannot be written either", error=str(error))

    def _remember(self, record: bytes) -> None:
        self._memory.append(record)
        lost = 0
        while len(self._memory) > 1 and sum(map(len, self._memory)) > self._most_in_memory:
            self._memory.popleft()
            lost += 1
        if lost:
            self._lose(lost, "memory is full, and neither database nor spool takes anything")

    def _forget_old(self, now: Timestamp) -> None:
        if self._forgot_at is None or now - self._forgot_at >= FORGET_EVERY:
            self._database.forget(now - self._retention_seconds)
            self._forgot_at = now

    def _lose(self, cycles: int, why: str) -> None:
        first = self.state.lost == 0
        self._count(lost=cycles)
        if first or "memory" not in why:
            _log.error("history is lost", cycles=cycles, why=why)

    def _count(self, *, failures: int = 0, lost: int = 0) -> None:
        state = self.state
        self.state = replace(state, failures=state.failures + failures, lost=state.lost + lost)

    def close(self) -> None:
        """Let go of the database. What is in memory alone is lost, and said."""
        if self._memory:
            self._lose(len(self._memory), "stopped before it could be stored")
        self._database.close()

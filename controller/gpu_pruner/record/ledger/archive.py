"""The past, for whoever asks while cycles run: each question is answered in a thread.

A few at a time, so that nobody can keep the machine busy by asking; the others wait, and who finds
a long queue is turned away. It has a connection of its own, beside the one that writes, and keeps
nothing. `cli` makes one; `serve` asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from gpu_pruner.errors import LedgerBusy
from gpu_pruner.model.units import Timestamp
from gpu_pruner.record.history import History, Leaderboard, leaderboard
from gpu_pruner.record.ledger import past
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.record.ledger.usage import usage
from gpu_pruner.record.savings import savings
from gpu_pruner.record.statistics import Pauses
from gpu_pruner.settings.ledger import LedgerSettings

T = TypeVar("T")

AT_ONCE = 2
"""Questions that are answered at the same time."""
MOST_WAITING = 16
"""Questions that wait for their turn."""


class Archive:
    """Answers from the ledger's database."""

    def __init__(self, settings: LedgerSettings) -> None:
        """Prepare it; nothing is opened before somebody asks.

        Raises:
            ConfigurationError: the DSN is none, or its driver is not installed.
        """
        self._settings = settings
        Database(settings).close()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._asking = 0

    async def leaderboard(self, *, since: Timestamp, until: Timestamp, limit: int) -> Leaderboard:
        """Return who held idle GPUs for how long.

        Args:
            since: Unix seconds, rounded down to the hour.
            until: Unix seconds.
            limit: the most rows of each list.

        Raises:
            LedgerBusy: too many ask.
            LedgerError: the database cannot be read.
        """

        def answer(database: Database) -> Leaderboard:
            report = savings(usage(database, since=since, until=until), None)
            return leaderboard(report, limit=limit)

        return await self._asked(answer)

    async def history(
        self, *, since: Timestamp, until: Timestamp, limit: int, namespace: str
    ) -> History:
        """Return what was done; arguments and errors as of `past.history`, or `LedgerBusy`."""
        return await self._asked(
            lambda database: past.history(
                database, since=since, until=until, limit=limit, namespace=namespace
            )
        )

    async def pauses(self, *, since: Timestamp) -> Pauses:
        """Return how many pauses there were; errors as of `past.pauses`, or `LedgerBusy`."""
        return await self._asked(lambda database: past.pauses(database, since=since))

    async def _asked(self, answer: Callable[[Database], T]) -> T:
        if self._asking >= AT_ONCE + MOST_WAITING:
            raise LedgerBusy("too many ask about history at once; come again")
        self._asking += 1
        try:
            async with self._turns:
                return await asyncio.to_thread(self._read, answer)
        finally:
            self._asking -= 1

    def _read(self, answer: Callable[[Database], T]) -> T:
        database = Database(self._settings)
        try:
            return answer(database)
        finally:
            database.close()

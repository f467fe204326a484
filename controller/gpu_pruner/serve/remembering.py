"""The routes about the past, whose answers come from the ledger.

Bounded: a window out of a few, a limit of rows. Where no history is kept, or it cannot be read now,
they say so with 503, and never tell a 0 that is only ignorance. The cause stays in the log.
"""

from __future__ import annotations

from collections.abc import Coroutine
from http import HTTPStatus
from typing import Protocol, TypeVar

import structlog
from typing_extensions import override

from gpu_pruner.errors import LedgerBusy, LedgerError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import Timestamp
from gpu_pruner.record.board import Board
from gpu_pruner.record.history import History, Leaderboard
from gpu_pruner.record.statistics import DEFAULT_WINDOW, Pauses, Window, statistics, summary
from gpu_pruner.serve.handlers import ReadHandler
from gpu_pruner.serve.people import Refusal

T = TypeVar("T")

MOST_ROWS = 1000
"""The highest limit; some hundred KiB."""
_LONGEST_NAME = 253
"""Characters of a namespace; source: Kubernetes' rules for names."""
_NO_HISTORY = "no history is kept here: set ledger.directory or ledger.dsn"
_NOT_NOW = "history cannot be read now; the log says why"

_log = structlog.get_logger(__name__)


class Remembers(Protocol):
    """`record.ledger.archive.Archive`."""

    async def leaderboard(self, *, since: Timestamp, until: Timestamp, limit: int) -> Leaderboard:
        """Return who held idle GPUs for how long."""
        ...

    async def history(
        self, *, since: Timestamp, until: Timestamp, limit: int, namespace: str
    ) -> History:
        """Return what was done."""
        ...

    async def pauses(self, *, since: Timestamp) -> Pauses:
        """Return how many pauses were carried out."""
        ...


class PastHandler(ReadHandler):
    """What the routes share: who remembers, how a question is read, how a refusal is told."""

    known: tuple[str, ...] | None = None
    """Arguments that may be given; None: others are ignored, as the Rust tool does."""

    @override
    def initialize(self, board: Board, clock: Clock, archive: Remembers | None = None) -> None:
        """Take who remembers; None where no history is kept."""
        super().initialize(board, clock)
        self.archive = archive

    @override
    async def get(self, *_: str) -> None:
        """Answer what is asked, or why not."""
        try:
            self.answer(await self.answered())
        except Refusal as refusal:
            self.answer({"error": str(refusal)}, status=refusal.status)

    async def answered(self) -> object:
        """Return the answer.

        Raises:
            Refusal: the question is none, or it cannot be answered now.
        """
        raise NotImplementedError

    def asked(self, name: str, default: str) -> str:
        """Return one argument.

        Raises:
            Refusal: another one was given, which is not known.
        """
        if self.known is not None:
            strange = sorted(self.request.query_arguments.keys() - set(self.known))
            if strange:
                known = ", ".join(self.known)
                told = f"there is no argument {strange[0][:40]!r}; known: {known}"
                raise Refusal(HTTPStatus.BAD_REQUEST, told)
        return self.get_query_argument(name, default)

    def window(self) -> Window:
        """Return the window that is asked about.

        Raises:
            Refusal: it is none of those that there are.
        """
        try:
            return Window(self.asked("window", DEFAULT_WINDOW.value))
        except ValueError as error:
            known = ", ".join(Window)
            raise Refusal(HTTPStatus.BAD_REQUEST, f"window must be one of {known}") from error

    def limit(self, default: int) -> int:
        """Return the most rows that are asked for.

        Raises:
            Refusal: it is no number, or too high.
        """
        text = self.asked("limit", str(default))
        if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_ROWS)):
            rows = int(text)
            if 1 <= rows <= MOST_ROWS:
                return rows
        told = f"limit must be a whole number from 1 to {MOST_ROWS}"
        raise Refusal(HTTPStatus.BAD_REQUEST, told)

    async def read(self, reading: Coroutine[None, None, T]) -> T:
        """Return what history says.

        Raises:
            Refusal: it cannot be read now.
        """
        try:
            return await reading
        except LedgerBusy as error:
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, str(error)) from error
        except LedgerError as error:
            _log.warning("history cannot be read", why=str(error))
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, _NOT_NOW) from error

    def remembers(self) -> Remembers:
        """Return who remembers.

        Raises:
            Refusal: nobody does.
        """
        if self.archive is None:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, _NO_HISTORY)
        return self.archive


class LeaderboardHandler(PastHandler):
    """`/api/v1/leaderboard?window=1h|7d|30d`: who held idle GPUs for how long.

    By namespace, owner and workload, with the hours that pauses gave back and the pauses that were
    called wrong; `limit` rows of each, 20 by default. The window begins with a whole hour.
    """

    known = ("window", "limit")

    @override
    async def answered(self) -> Leaderboard:
        """Answer the sums; 400, 429 or 503 with the reason."""
        window, limit, now = self.window(), self.limit(20), self.clock.now()
        since = now - window.seconds
        asked = self.remembers().leaderboard(since=since, until=now, limit=limit)
        return await self.read(asked)


class HistoryHandler(PastHandler):
    """`/api/v1/history?window=1h|7d|30d`: what was done, and what of it was called wrong.

    Pauses and restores with the sentence that each rested on and how it ended, the newest first;
    `limit` of each list, 100 by default, and with `namespace` those of one.
    """

    known = ("window", "limit", "namespace")

    @override
    async def answered(self) -> History:
        """Answer the acts; 400, 429 or 503 with the reason."""
        window, limit, now = self.window(), self.limit(100), self.clock.now()
        namespace = self.asked("namespace", "")
        if len(namespace) > _LONGEST_NAME:
            raise Refusal(HTTPStatus.BAD_REQUEST, "namespace is not the name of one")
        asked = self.remembers().history(
            since=now - window.seconds, until=now, limit=limit, namespace=namespace
        )
        return await self.read(asked)


class SummaryHandler(PastHandler):
    """`/api/v1/summary`, in the Rust tool's shape."""

    @override
    async def answered(self) -> object:
        """Answer the summary; 429 or 503 where history is kept and cannot be read."""
        now = self.clock.now()
        return summary(self.board, now=now, kept=await self.kept(DEFAULT_WINDOW))

    async def kept(self, window: Window) -> Pauses | None:
        """Return the pauses that history has; None where none is kept.

        Raises:
            Refusal: it cannot be read now.
        """
        if self.archive is None:
            return None
        since = self.clock.now() - window.seconds
        return await self.read(self.archive.pauses(since=since))


class StatsHandler(SummaryHandler):
    """`/api/v1/stats?window=1h|7d|30d`, in the Rust tool's shape."""

    @override
    async def answered(self) -> object:
        """Answer the statistics of one window; 400, 429 or 503 with the reason."""
        window = self.window()
        kept = await self.kept(window)
        return statistics(self.board, window, now=self.clock.now(), kept=kept)

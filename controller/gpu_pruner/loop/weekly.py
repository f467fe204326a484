"""The weekly report, posted by the leader: once for each due moment, or again rather than never.

Looks at the clock every half minute, beside the cycles, which never wait for it. What could not be
posted is tried again, ever less often, for a day; a moment that passed while nobody ran is made up
for as long. Remembers nothing itself: `record.ledger.postings` does. Called by `cli`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from gpu_pruner.errors import PrunerError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import DAY, HOUR, MINUTE, Seconds, Timestamp

LOOK_SECONDS: Seconds = MINUTE / 2
LATEST: Seconds = DAY
"""How late a report may be; after that the next one is worth more."""
_FIRST_WAIT: Seconds = MINUTE
_LONGEST_WAIT: Seconds = HOUR

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Desk(Protocol):
    """What makes, posts and remembers reports. It blocks, and is called in a thread."""

    def claim(self, due_at: Timestamp, *, now: Timestamp) -> bool | None:
        """Return True where the report is ours to post, None where it was posted, else False.

        Raises:
            PrunerError: nobody knows now.
        """
        ...

    def post(self, due_at: Timestamp) -> None:
        """Make and post the report of the week before a moment.

        Raises:
            PrunerError: it was not taken, or nobody knows.
        """
        ...

    def note(self, due_at: Timestamp, *, now: Timestamp) -> None:
        """Remember that it was posted.

        Raises:
            PrunerError: this could not be remembered; the report will come again.
        """
        ...

    def give_up(self, due_at: Timestamp) -> None:
        """Let another try."""
        ...


@dataclass(slots=True, kw_only=True)
class WeeklyReport:
    """Posts through a desk whenever this replica leads and a report is due."""

    last_due: Callable[[Timestamp], Timestamp]
    """The newest due moment that is not after a given one."""
    desk: Desk
    clock: Clock
    leads: Callable[[], bool]
    _done: Timestamp | None = field(default=None, init=False)
    """Due moment of the newest report that is known to be posted."""
    _unnoted: Timestamp | None = field(default=None, init=False)
    """Due moment of the newest report that was posted here, noted or not."""
    _not_before: Timestamp = field(default=float("-inf"), init=False)
    _wait: Seconds = field(default=_FIRST_WAIT, init=False)

    async def run(self) -> None:
        """Look at the clock for ever."""
        while True:
            await self.attempt()
            await self.clock.sleep(LOOK_SECONDS)

    async def attempt(self) -> None:
        """Post what is due, if it is ours to post; what goes wrong is logged and tried again."""
        now = self.clock.now()
        due = self.last_due(now)
        too_late = now - due > LATEST
        if too_late or due == self._done or now < self._not_before or not self.leads():
            return
        try:
            await asyncio.to_thread(self._posted, due, now)
        except PrunerError as error:
            _log.error("weekly report not posted", error=str(error), again_in_seconds=self._wait)
            self._not_before = now + self._wait
            self._wait = min(2 * self._wait, _LONGEST_WAIT)

    def _posted(self, due: Timestamp, now: Timestamp) -> None:
        if self._unnoted != due:
            claimed = self.desk.claim(due, now=now)
            if claimed is False:
                return
            if claimed:
                self._post(due)
                self._unnoted = due
                _log.info("weekly report posted")
        if self._unnoted == due:
            self.desk.note(due, now=self.clock.now())
        self._done, self._wait = due, _FIRST_WAIT

    def _post(self, due: Timestamp) -> None:
        try:
            self.desk.post(due)
        except PrunerError:
            with suppress(PrunerError):  # the claim grows old by itself
                self.desk.give_up(due)
            raise

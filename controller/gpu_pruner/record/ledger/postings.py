"""Remembers which weekly reports were posted, across restarts and replicas.

Whoever is about to post one claims it first, and notes afterwards that it was taken. A claim that
was never followed by that note grows old: whoever made it has died, and the next one posts. So a
report may come twice, if somebody dies between the post and the note, and none is left out.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, select

from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.record.ledger.database import BatchRefused, Database
from gpu_pruner.record.ledger.tables import POSTINGS

CLAIM_SECONDS: Final[Seconds] = 10 * MINUTE
"""How long a claim holds: far longer than a post takes."""


class Claim(StrEnum):
    """What became of an attempt to claim a report."""

    OURS = "ours"
    """Post it, then `note` it."""
    TAKEN = "taken"
    """Somebody is at it, or has died of it."""
    POSTED = "posted"


class Postings:
    """The postings in one database, used by one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, due_at: Timestamp, *, now: Timestamp) -> Claim:
        """Claim the report that was due at a moment.

        Raises:
            LedgerError: the database is away; nothing is claimed.
        """
        try:
            with self._database.writing() as connection:
                return _claimed(connection, due_at, now)
        except BatchRefused:  # another replica's row came in between
            return Claim.TAKEN

    def note(self, due_at: Timestamp, *, now: Timestamp) -> None:
        """Note that a claimed report was posted.

        Raises:
            LedgerError: the database is away; the report will come again.
        """
        self._set(due_at, posted_at=now)

    def give_up(self, due_at: Timestamp) -> None:
        """Let anybody claim a report that could not be posted.

        Raises:
            LedgerError: the database is away; the claim grows old by itself.
        """
        self._set(due_at, claimed_at=0.0)

    def _set(self, due_at: Timestamp, **values: float) -> None:
        with self._database.writing() as connection:
            connection.execute(
                POSTINGS.update().where(POSTINGS.c.due_at == due_at).values(**values)
            )


def _claimed(connection: Connection, due_at: Timestamp, now: Timestamp) -> Claim:
    table = POSTINGS
    this = table.c.due_at == due_at
    known = connection.execute(select(table.c.posted_at).where(this)).first()
    if known is None:
        connection.execute(table.insert().values(due_at=due_at, claimed_at=now))
        return Claim.OURS
    if known.posted_at is not None:
        return Claim.POSTED
    taken_over = (
        table.update()
        .where(this, table.c.posted_at.is_(None), table.c.claimed_at <= now - CLAIM_SECONDS)
        .values(claimed_at=now)
        .returning(table.c.due_at)
    )
    return Claim.OURS if connection.execute(taken_over).first() else Claim.TAKEN

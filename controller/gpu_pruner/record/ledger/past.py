"""Reads from the ledger what was done, how often, and what of it was called wrong.

Blocks its caller; every answer is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import structs
from sqlalchemy import ColumnElement, Connection, and_, func, select

from gpu_pruner.model.orders import Result
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.record.history import Act, CalledWrong, History
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.record.ledger.tables import ACTIONS, FALSE_POSITIVES
from gpu_pruner.record.statistics import Pauses
from gpu_pruner.record.totals import PAUSE

_AT_ONCE: Final = 500
"""Decisions asked about in one query: SQLite takes some thousand parameters at most."""


def history(
    database: Database, *, since: Timestamp, until: Timestamp, limit: int, namespace: str = ""
) -> History:
    """Return what was done between two moments, the newest first.

    Args:
        database: to read.
        since: Unix seconds, inclusive, as is the other.
        until: Unix seconds.
        limit: the most acts, and the most false positives, to return.
        namespace: of the workloads; empty for all.

    Raises:
        LedgerError: the database cannot be read.
    """
    with database.reading() as connection:
        acts = list(_acts(connection, since, until, namespace=namespace, limit=limit + 1))
        wrong = list(_wrong(connection, since, until, namespace=namespace, limit=limit + 1))
        called = _called_wrong(connection, [one.decision_id for one in acts])
    return History(
        begin=rfc3339(since),
        end=rfc3339(until),
        acts=tuple(_with(one, called) for one in acts[:limit]),
        more_acts=len(acts) > limit,
        false_positives=tuple(wrong[:limit]),
        more_false_positives=len(wrong) > limit,
    )


def pauses(database: Database, *, since: Timestamp) -> Pauses:
    """Return how many pauses were carried out, in all that is kept and since a moment.

    Raises:
        LedgerError: the database cannot be read.
    """
    done = and_(ACTIONS.c.action == PAUSE, ACTIONS.c.result == Result.DONE.value)
    counted = select(func.count()).select_from(ACTIONS).where(done)
    with database.reading() as connection:
        known = connection.execute(counted).scalar_one()
        recent = connection.execute(counted.where(ACTIONS.c.at >= since)).scalar_one()
    return Pauses(known=known, in_window=recent)


def _acts(
    connection: Connection, since: Timestamp, until: Timestamp, *, namespace: str, limit: int
) -> Iterator[Act]:
    table = ACTIONS.c
    rows = connection.execute(
        select(ACTIONS)
        .where(*_within(table.at, table.namespace, (since, until), namespace))
        .order_by(table.at.desc(), table.cycle_id, table.number)
        .limit(limit)
    )
    for row in rows:
        yield Act(
            at=rfc3339(row.at),
            ref=f"{row.kind.lower()}/{row.namespace}/{row.name}",
            owner=row.owner,
            action=row.action,
            result=row.result,
            message=row.message,
            detail=row.detail,
            gpus=row.gpus,
            decision_id=row.decision_id,
        )


def _wrong(
    connection: Connection, since: Timestamp, until: Timestamp, *, namespace: str, limit: int
) -> Iterator[CalledWrong]:
    table = FALSE_POSITIVES.c
    rows = connection.execute(
        select(FALSE_POSITIVES)
        .where(*_within(table.at, table.namespace, (since, until), namespace))
        .order_by(table.at.desc(), table.root_uid, table.decision_id)
        .limit(limit)
    )
    for row in rows:
        yield CalledWrong(
            at=rfc3339(row.at),
            ref=f"{row.kind.lower()}/{row.namespace}/{row.name}",
            owner=row.owner,
            by=row.by,
            reason=row.reason,
            evidence=row.evidence,
            decision_id=row.decision_id,
            paused_at=None if row.paused_at is None else rfc3339(row.paused_at),
        )


def _within(
    at: ColumnElement[float],
    space: ColumnElement[str],
    between: tuple[Timestamp, Timestamp],
    namespace: str,
) -> Iterator[ColumnElement[bool]]:
    yield at.between(*between)
    if namespace:
        yield space == namespace


def _called_wrong(connection: Connection, decisions: Iterable[str]) -> Mapping[str, str]:
    """Return who called the pauses of these decisions wrong, whenever that was, by decision."""
    table, named = FALSE_POSITIVES.c, sorted(set(decisions) - {""})
    found: dict[str, str] = {}
    for start in range(0, len(named), _AT_ONCE):
        asked = table.decision_id.in_(named[start : start + _AT_ONCE])
        rows = connection.execute(select(table.decision_id, table.by).where(asked))
        found |= {row.decision_id: row.by for row in rows}
    return found


def _with(act: Act, called: Mapping[str, str]) -> Act:
    """Return a pause with who called it wrong; a restore has the same decision, and is not."""
    if act.action != PAUSE or act.decision_id not in called:
        return act
    return structs.replace(act, called_wrong_by=called[act.decision_id])

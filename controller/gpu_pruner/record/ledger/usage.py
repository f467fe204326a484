"""Reads from the ledger who held GPUs for how long, gave them back for how long, and wrongly so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sqlalchemy import Connection, func, select

from gpu_pruner.model.units import HOUR, Seconds, Timestamp
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.record.ledger.tables import CYCLES, FALSE_POSITIVES, GPU_TIME
from gpu_pruner.record.ledger.uses import PAUSED, Usage, Use, Wrong

_AT_ONCE = 500


def usage(database: Database, *, since: Timestamp, until: Timestamp) -> Usage:
    """Return everything between two moments; hours are whole, and so the begin is rounded down.

    Raises:
        LedgerError: the database cannot be read.
    """
    begin = since // HOUR * HOUR
    with database.reading() as connection:
        first = connection.execute(
            select(func.min(CYCLES.c.started_at)).where(
                CYCLES.c.started_at >= begin, CYCLES.c.started_at <= until
            )
        ).scalar()
        found = list(_uses(connection, begin, until))
        paused = {one.root_uid for one in found if one.state == PAUSED and not one.model}
        models = _models_before(connection, sorted(paused), until)
        wrong = tuple(_wrong(connection, begin, until))
    uses = tuple(part for one in found for part in _told_apart(one, models))
    return Usage(begin=begin, end=until, first_cycle_at=first, uses=uses, wrong=wrong)


def _uses(connection: Connection, begin: Timestamp, until: Timestamp) -> Iterator[Use]:
    table = GPU_TIME.c
    key = (table.kind, table.namespace, table.name, table.root_uid, table.owner)
    rows = connection.execute(
        select(*key, table.model, table.state, func.sum(table.seconds).label("spent"))
        .where(table.hour >= begin, table.hour < until)
        .group_by(*key, table.model, table.state)
        .order_by(*key, table.model, table.state)
    )
    for row in rows:
        yield Use(
            namespace=row.namespace,
            workload=f"{row.kind.lower()}/{row.namespace}/{row.name}",
            root_uid=row.root_uid,
            owner=row.owner,
            model=row.model,
            state=row.state,
            seconds=row.spent,
        )


def _wrong(connection: Connection, begin: Timestamp, until: Timestamp) -> Iterator[Wrong]:
    table = FALSE_POSITIVES.c
    key = (table.kind, table.namespace, table.name, table.owner)
    rows = connection.execute(
        select(*key, func.count().label("times"))
        .where(table.at >= begin, table.at <= until)
        .group_by(*key)
        .order_by(*key)
    )
    for row in rows:
        workload = f"{row.kind.lower()}/{row.namespace}/{row.name}"
        yield Wrong(namespace=row.namespace, workload=workload, owner=row.owner, count=row.times)


def _models_before(
    connection: Connection, uids: list[str], until: Timestamp
) -> Mapping[str, Mapping[str, Seconds]]:
    """Return what each workload held in the last hour in which telemetry told its models."""
    held: defaultdict[str, dict[str, Seconds]] = defaultdict(dict)
    table = GPU_TIME.c
    for start in range(0, len(uids), _AT_ONCE):
        told = (
            table.root_uid.in_(uids[start : start + _AT_ONCE])
            & (table.state != PAUSED)
            & (table.model != "")
            & (table.hour <= until)
        )
        newest = (
            select(table.root_uid, func.max(table.hour).label("hour"))
            .where(told)
            .group_by(table.root_uid)
            .subquery()
        )
        rows = connection.execute(
            select(table.root_uid, table.model, func.sum(table.seconds).label("spent"))
            .join(newest, (table.root_uid == newest.c.root_uid) & (table.hour == newest.c.hour))
            .where(told)
            .group_by(table.root_uid, table.model)
        )
        for row in rows:
            held[row.root_uid][row.model] = row.spent
    return held


def _told_apart(use: Use, models: Mapping[str, Mapping[str, Seconds]]) -> Iterable[Use]:
    """Share a pause out among the models that the workload held before it."""
    held = models.get(use.root_uid, {}) if use.state == PAUSED and not use.model else {}
    total = sum(held.values())
    if not total:
        return (use,)
    return [
        replace(use, model=model, seconds=use.seconds * spent / total)
        for model, spent in sorted(held.items())
    ]

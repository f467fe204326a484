"""The database: opens it, stores batches, each in one transaction, and forgets what is old.

The same SQL on SQLite and PostgreSQL. A batch is in the database when `store` returns, also when
the machine loses its power the moment after. Blocks its caller, who is a thread of its own; knows
nothing of queues and retries.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, Table, create_engine, event, func, select
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from gpu_pruner.errors import ConfigurationError, LedgerError
from gpu_pruner.model.units import Timestamp
from gpu_pruner.record.ledger import schema
from gpu_pruner.record.ledger.entries import (
    ActionEntry,
    Batch,
    DecisionEntry,
    FalsePositive,
    GpuTime,
)
from gpu_pruner.record.ledger.tables import (
    ACTIONS,
    CYCLES,
    DECISIONS,
    FALSE_POSITIVES,
    GPU_TIME,
    GPU_TIME_KEY,
    MOMENTS,
)
from gpu_pruner.settings.ledger import LedgerSettings

ANSWER_SECONDS: Final = 10
"""Longest wait for a connection, for a lock, and for a server that fell silent."""

_TRIES_A_SECOND: Final = 20
"""How often a file that is being made by another process is asked for again."""

_ONLY_READS = "gpu_pruner_only_reads"
_LONGEST_REASON = 256
_AT_ONCE = 500
"""Workloads asked about in one query: SQLite takes some thousand parameters at most."""


class BatchRefused(LedgerError):
    """The database will never take this batch: the fault lies in what is in it."""


class Database:
    """One database, used by one thread."""

    def __init__(self, settings: LedgerSettings) -> None:
        """Prepare it; nothing is opened yet.

        Raises:
            ConfigurationError: the DSN is none, or its driver is not installed.
        """
        self._settings = settings
        self._engine = _engine(settings)
        self._ready = False

    def store(self, batch: Batch) -> None:
        """Store a batch, unless it is stored already.

        Raises:
            BatchRefused: it cannot be stored, now or ever.
            LedgerError: the database is away, full, or newer than we are. Nothing was stored.
        """
        with self._transaction() as connection:
            self._bring_up(connection)
            if _is_new(connection, batch):
                _insert(connection, DECISIONS, _rows(batch.cycle_id, _news(connection, batch)))
                _insert(connection, ACTIONS, _rows(batch.cycle_id, batch.actions))
                _add_gpu_time(connection, batch)
                _add_false_positives(connection, batch)
        self._ready = True

    def forget(self, before: Timestamp) -> None:
        """Delete everything older.

        Raises:
            LedgerError: it could not be done now.
        """
        with self._transaction() as connection:
            self._bring_up(connection)
            for table, column in MOMENTS:
                connection.execute(table.delete().where(table.c[column] < before))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend a connection for queries.

        Raises:
            LedgerError: the database is away, or its schema is not ours.
        """
        file = self._settings.file
        if file is not None and not file.exists():
            raise LedgerError(f"there is no ledger at {file}; has the controller run with it?")
        with self._transaction(only_reads=True) as connection:
            schema.require_current(connection)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Lend a connection for one transaction, with the tables made where there are none.

        Raises:
            LedgerError: the database is away, full, or newer than we are. Nothing was written.
        """
        with self._transaction() as connection:
            self._bring_up(connection)
            yield connection
        self._ready = True

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _bring_up(self, connection: Connection) -> None:
        if not self._ready:
            schema.bring_up(connection)

    @contextmanager
    def _transaction(self, *, only_reads: bool = False) -> Iterator[Connection]:
        engine = self._engine.execution_options(**{_ONLY_READS: only_reads})
        try:
            with engine.begin() as connection:
                yield connection
        except (DataError, IntegrityError) as error:
            raise BatchRefused(self._told(error)) from None
        except (SQLAlchemyError, CommandError, OSError) as error:
            self._ready = False  # what comes back may be another database
            raise LedgerError(self._told(error)) from None

    def _told(self, error: Exception) -> str:
        """Return what a driver says, in one line, without statements, values and secrets."""
        cause = getattr(error, "orig", None) or error
        line = next(iter(str(cause).strip().splitlines()), "")
        for secret in _secrets(self._settings):
            line = line.replace(secret, "***")
        return f"{type(cause).__name__}: {line}"[:_LONGEST_REASON]


def _is_new(connection: Connection, batch: Batch) -> bool:
    """Enter the cycle; whether it was not there yet."""
    made = _insert_of(connection, CYCLES).values(
        cycle_id=batch.cycle_id,
        started_at=batch.started_at,
        finished_at=batch.finished_at,
        workloads=batch.workloads,
        failure=batch.failure,
        breakers=msgspec.json.encode(batch.breakers).decode(),
    )
    done = connection.execute(made.on_conflict_do_nothing().returning(CYCLES.c.cycle_id))
    return done.first() is not None


def _news(connection: Connection, batch: Batch) -> list[DecisionEntry]:
    """Leave out what a process that has just started takes for news and the ledger knows."""
    new = [one.who.root_uid for one in batch.decisions if not one.was]
    known: set[tuple[str, str, str, str]] = set()
    for start in range(0, len(new), _AT_ONCE):
        known |= _last_standings(connection, new[start : start + _AT_ONCE])
    return [
        one
        for one in batch.decisions
        if one.was or (one.who.root_uid, one.phase, one.verdict, one.reason) not in known
    ]


def _last_standings(connection: Connection, uids: list[str]) -> set[tuple[str, str, str, str]]:
    table = DECISIONS.c
    newest = (
        select(table.root_uid, func.max(table.at).label("at"))
        .where(table.root_uid.in_(uids))
        .group_by(table.root_uid)
        .subquery()
    )
    rows = connection.execute(
        select(table.root_uid, table.phase, table.verdict, table.reason).join(
            newest, (table.root_uid == newest.c.root_uid) & (table.at == newest.c.at)
        )
    )
    return {(row.root_uid, row.phase, row.verdict, row.reason) for row in rows}


def _rows(cycle_id: str, entries: Sequence[DecisionEntry | ActionEntry]) -> list[dict[str, object]]:
    return [
        {"cycle_id": cycle_id, "number": number, **_own(one)} for number, one in enumerate(entries)
    ]


def _own(entry: DecisionEntry | ActionEntry | GpuTime | FalsePositive) -> dict[str, object]:
    values = msgspec.structs.asdict(entry)
    del values["who"]
    return {**values, **msgspec.structs.asdict(entry.who)}


def _insert(connection: Connection, table: Table, rows: list[dict[str, object]]) -> None:
    if rows:
        connection.execute(table.insert(), rows)


def _add_gpu_time(connection: Connection, batch: Batch) -> None:
    """Add to the sums of the hour; the cycle's own row makes sure that it happens once."""
    sums: dict[tuple[object, ...], float] = {}
    for one in batch.gpu_time:
        values = _own(one)
        key = tuple(values[name] for name in GPU_TIME_KEY)
        sums[key] = sums.get(key, 0.0) + one.seconds
    # In one order, so that two replicas that write at once wait for each other and do not collide.
    rows = [
        {**dict(zip(GPU_TIME_KEY, key, strict=True)), "seconds": seconds}
        for key, seconds in sorted(sums.items(), key=lambda item: str(item[0]))
    ]
    if rows:
        made = _insert_of(connection, GPU_TIME)
        added = GPU_TIME.c.seconds + made.excluded.seconds
        connection.execute(
            made.on_conflict_do_update(index_elements=GPU_TIME_KEY, set_={"seconds": added}), rows
        )


def _add_false_positives(connection: Connection, batch: Batch) -> None:
    """Add what was called wrong and is not known yet: every process tells it anew."""
    rows = [_own(one) for one in batch.false_positives]
    if rows:
        made = _insert_of(connection, FALSE_POSITIVES)
        connection.execute(made.on_conflict_do_nothing(), rows)


def _insert_of(connection: Connection, table: Table):  # type: ignore[no-untyped-def]  # noqa: ANN202
    kind = insert_postgresql if connection.dialect.name == "postgresql" else insert_sqlite
    return kind(table)


def _engine(settings: LedgerSettings) -> Engine:
    file = settings.file
    if file is not None:
        engine = create_engine(URL.create("sqlite", database=str(file)), poolclass=NullPool)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    if settings.dsn is None:
        raise ConfigurationError("no ledger is set: ledger.dsn, or ledger.directory")
    try:
        url = make_url(settings.dsn.get_secret_value()).set(drivername="postgresql+psycopg")
        engine = create_engine(url, poolclass=NullPool, connect_args=_PATIENCE)
    except (ArgumentError, ValueError):
        raise ConfigurationError("ledger.dsn is no URL of a database") from None
    except ImportError:
        fix = "pip install 'gpu-pruner[postgres]'"
        raise ConfigurationError(f"ledger.dsn: PostgreSQL needs its driver: {fix}") from None
    if settings.password_file is not None:
        _give_password(engine, settings.password_file)
    return engine


_PATIENCE = {
    "connect_timeout": ANSWER_SECONDS,
    "tcp_user_timeout": ANSWER_SECONDS * 1000,
    "options": f"-c statement_timeout={6 * ANSWER_SECONDS}s -c lock_timeout={ANSWER_SECONDS}s",
    "application_name": "gpu-pruner",
}


def _give_password(engine: Engine, file: Path) -> None:
    @event.listens_for(engine, "do_connect")
    def _with_password(_dialect: object, _record: object, _args: object, given: object) -> None:
        if isinstance(given, dict):
            given["password"] = file.read_text(encoding="utf-8").strip()


def _secrets(settings: LedgerSettings) -> Iterator[str]:
    if settings.dsn is not None and not settings.is_sqlite:
        url = make_url(settings.dsn.get_secret_value())
        yield from (one for one in (url.password, url.query.get("password")) if one)  # type: ignore[misc]
        yield settings.dsn.get_secret_value()


def _prepare_sqlite(connection: object, _record: object) -> None:
    """Take transactions into our own hands, DDL included, and make a commit durable."""
    connection.isolation_level = None  # type: ignore[attr-defined]
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute(f"PRAGMA busy_timeout={ANSWER_SECONDS * 1000}")
    _use_a_write_ahead_log(cursor)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _use_a_write_ahead_log(cursor: sqlite3.Cursor) -> None:
    """Set the mode, which a new file takes once.

    Two processes that set it at once each hold what the other waits for; SQLite ends such a
    deadlock by refusing one of them at once, whatever the busy timeout. The refused one asks again.
    """
    for left in reversed(range(ANSWER_SECONDS * _TRIES_A_SECOND)):
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or not left:
                raise
            time.sleep(1 / _TRIES_A_SECOND)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    """Begin as a writer where something will be written: two that would become one collide."""
    only_reads = connection.get_execution_options().get(_ONLY_READS)
    connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")

"""The schema of an open database: brought up to ours, or refused with a sentence.

Forward only. Two replicas that start at once take turns.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from gpu_pruner.errors import LedgerError

_MIGRATIONS = Path(__file__).with_name("migrations")
_LOCK = 4_745_829_001
"""Number of the advisory lock in PostgreSQL under which the schema is changed; ours alone."""


def bring_up(connection: Connection) -> None:
    """Apply every step that is missing, within the connection's transaction.

    Raises:
        LedgerError: the schema is newer than this program.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    found = _revision(connection)
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    _refuse_newer(found, config)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def require_current(connection: Connection) -> None:
    """Refuse a database whose schema is not ours: for whoever only reads.

    Raises:
        LedgerError: it is older or newer, or there is no ledger in it.
    """
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    found = _revision(connection)
    if found is None:
        raise LedgerError("this database holds no ledger; has the controller run with it?")
    _refuse_newer(found, config)
    ours = ScriptDirectory.from_config(config).get_current_head()
    if found != ours:
        raise LedgerError(
            f"the ledger's schema is {found}, older than {ours}; start the controller of this "
            "version once, which brings it up"
        )


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _refuse_newer(found: str | None, config: Config) -> None:
    steps = ScriptDirectory.from_config(config)
    known = {one.revision for one in steps.walk_revisions()}
    if found is not None and found not in known:
        raise LedgerError(
            f"the ledger's schema is {found}, newer than this version of gpu-pruner knows "
            f"({steps.get_current_head()}); run the version that made it, or a newer one"
        )

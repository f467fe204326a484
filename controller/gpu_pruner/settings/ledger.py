"""The section ``ledger``: where history is kept, and for how long. Nothing set: nowhere.

A password of the database may stand in the DSN or in a file of its own; neither is ever told.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from gpu_pruner.model.units import DAY, HOUR
from gpu_pruner.settings.section import Duration, Section

_SCHEMES = {"postgresql", "postgres", "sqlite"}
_FILE = "ledger.sqlite"
_SPOOL = "ledger.spool"


class LedgerSettings(Section):
    """History: decisions, acts and GPU hours. Deciding never depends on it."""

    directory: Path | None = Field(
        None,
        description="Writable directory of this replica: for what the database could not take, and "
        f"without `dsn` for the database itself, {_FILE} (SQLite).",
    )
    dsn: SecretStr | None = Field(
        None,
        description="Database: postgresql://user@host/name, with the options of libpq behind a ?, "
        "or sqlite:///path. Several replicas need PostgreSQL. Unset: SQLite in `directory`; "
        "neither set: no history is kept.",
    )
    password_file: Path | None = Field(
        None, description="File with the database's password; read again for every connection."
    )
    retention_seconds: Duration = Field(
        90 * DAY, ge=HOUR, description="How long history is kept, 90 days by default."
    )

    @field_validator("dsn")
    @classmethod
    def _known_database(cls, dsn: SecretStr | None) -> SecretStr | None:
        if dsn is None:
            return None
        try:
            parts = urlsplit(dsn.get_secret_value().strip())
            port_is_a_number = parts.port != 0
        except ValueError:
            port_is_a_number = False
            parts = urlsplit("")
        if not port_is_a_number or parts.scheme not in _SCHEMES:
            # What is wrong may be the password: nothing of it is repeated.
            raise ValueError("must begin with postgresql:// or sqlite:/// and be a URL")
        if parts.scheme != "sqlite" and ("@" in parts.path or parts.netloc.count("@") > 1):
            # Libraries take another @ for the last one, and tell a rest of the password as a host.
            raise ValueError("has a second @; in a user name or password write @ as %40, / as %2F")
        needed = parts.path.strip("/") if parts.scheme == "sqlite" else parts.hostname
        if not needed and not parts.query:
            raise ValueError("names no database")
        return SecretStr(dsn.get_secret_value().strip())

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        if self.password_file is None:
            return self
        if self.dsn is None or self.is_sqlite:
            raise ValueError("password_file is for a PostgreSQL dsn")
        if urlsplit(self.dsn.get_secret_value()).password is not None:
            raise ValueError("the password is in both dsn and password_file")
        return self

    @property
    def is_on(self) -> bool:
        """Return whether history is kept at all."""
        return self.dsn is not None or self.directory is not None

    @property
    def is_sqlite(self) -> bool:
        """Return whether the database is a file of ours."""
        return self.dsn is None or urlsplit(self.dsn.get_secret_value()).scheme == "sqlite"

    @property
    def file(self) -> Path | None:
        """Return the file of an SQLite database; None for another, and where none is set."""
        if self.dsn is not None and self.is_sqlite:
            return Path(self.dsn.get_secret_value().removeprefix("sqlite:///").partition("?")[0])
        return self.directory / _FILE if self.is_sqlite and self.directory else None

    @property
    def spool(self) -> Path | None:
        """Return the file for what the database could not take; None without a directory."""
        return self.directory / _SPOOL if self.directory else None

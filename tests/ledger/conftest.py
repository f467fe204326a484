"""The same tests on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.postgres import PostgresServer

from gpu_pruner.settings.ledger import LedgerSettings


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_settings(request: pytest.FixtureRequest, tmp_path: Path) -> LedgerSettings:
    """An empty database, and a directory for the spool."""
    if request.param == "sqlite":
        return LedgerSettings(directory=tmp_path)
    server: PostgresServer = request.getfixturevalue("postgres")
    return LedgerSettings(directory=tmp_path, dsn=SecretStr(server.new_database()))

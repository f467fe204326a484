from __future__ import annotations

from pathlib import Path

import pytest

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.ledger import LedgerSettings
from gpu_pruner.settings.loading import load_settings


def ledger(**values: object) -> LedgerSettings:
    return load_settings({"ledger": values}).ledger


def test_without_a_word_no_history_is_kept() -> None:
    assert not load_settings({}).ledger.is_on


def test_a_directory_is_enough() -> None:
    found = ledger(directory="/var/lib/gpu-pruner")
    assert found.is_on
    assert found.file == Path("/var/lib/gpu-pruner/ledger.sqlite")
    assert found.spool == Path("/var/lib/gpu-pruner/ledger.spool")


def test_a_dsn_goes_elsewhere() -> None:
    assert ledger(dsn="sqlite:////data/history.sqlite").file == Path("/data/history.sqlite")
    there = ledger(dsn="postgresql://alice@db.example/ledger?sslmode=verify-full")
    assert there.is_on
    assert there.file is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dsn": "mysql://db/x"}, "must begin with postgresql:// or sqlite:///"),
        ({"dsn": "postgresql://alice:se:cret@db:x/y"}, "must begin with"),
        ({"dsn": "postgresql://alice:se@cret@db/y"}, "has a second @"),
        ({"dsn": "postgresql://alice:12/cret@db/y"}, "has a second @"),
        ({"dsn": "sqlite://"}, "names no database"),
        ({"dsn": "postgresql://"}, "names no database"),
        ({"directory": "/x", "password_file": "/p"}, "password_file is for a PostgreSQL dsn"),
        (
            {"dsn": "postgresql://alice:secret@db/x", "password_file": "/p"},
            "the password is in both",
        ),
        ({"retention_seconds": "5m"}, "must be at least 3600"),
        ({"directory_": "/x"}, "directory"),
    ],
)
def test_what_is_wrong_is_told_without_the_secret(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ledger(**values)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "cret" not in str(caught.value)

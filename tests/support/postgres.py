"""A real PostgreSQL (Debian package) on loopback, as an unprivileged user: root may not run it.

Nothing here ever touches a PostgreSQL that it did not start.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import pytest
from support.prometheus import free_port

PASSWORD = "opens-nothing-else"
_START_SECONDS = 60.0


def postgres_programs() -> Path:
    """Return where Debian keeps them; skip the calling test where there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("initdb not found: apt-get install postgresql")
    return found[-1].parent


@dataclass
class PostgresServer:
    """A context manager around one server with data of its own, which stays when it stops."""

    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        self._programs = postgres_programs()
        # Not below pytest's directories: those are for their owner alone.
        self._directory = Path(tempfile.mkdtemp(prefix="gpu-pruner-postgres-"))
        self._user = "postgres" if os.getuid() == 0 else None
        if self._user:
            owner = pwd.getpwnam(self._user)
            os.chown(self._directory, owner.pw_uid, owner.pw_gid)
        secret = self._directory / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        if self._user:
            os.chown(secret, owner.pw_uid, owner.pw_gid)
        self._run(
            "initdb",
            f"--pgdata={self._data}",
            "--username=alice",
            f"--pwfile={secret}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-sync",
        )
        self.port = free_port()
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self._directory)

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(
            command, check=True, capture_output=True, user=self._user, cwd="/", timeout=120
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            [
                str(self._programs / "postgres"),
                f"-D{self._data}",
                "-clisten_addresses=127.0.0.1",
                f"-cport={self.port}",
                f"-cunix_socket_directories={self._directory}",
            ],
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_SECONDS
        ready = [str(self._programs / "pg_isready"), "-h127.0.0.1", f"-p{self.port}"]
        while subprocess.run(ready, check=False, capture_output=True).returncode != 0:
            assert self._process.poll() is None, "postgres ended at once"
            assert time.monotonic() < deadline, "postgres did not get ready"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it at once, as a machine does that is switched off."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)

    def dsn(self, database: str, *, password: str = PASSWORD) -> str:
        """Return how to reach one of its databases."""
        return f"postgresql://alice:{password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Make an empty database, and return its DSN."""
        import psycopg  # noqa: PLC0415 - only where there is a server

        name = f"ledger_{uuid4().hex[:8]}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.dsn(name)

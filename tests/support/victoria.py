"""A real VictoriaMetrics (Debian package) on loopback, filled with history by its import API.

Nothing here ever touches a server that it did not start.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from support.prometheus import History, free_port

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0


def require_victoria_metrics() -> None:
    """Skip the calling test where it is absent; with CI=true a skip is a failure."""
    if shutil.which("victoria-metrics") is None:
        pytest.skip("victoria-metrics not found: apt-get install victoria-metrics")


@dataclass
class VictoriaMetrics:
    """A context manager around one process."""

    directory: Path
    url: str = field(default="", init=False)

    def __enter__(self) -> Self:
        require_victoria_metrics()
        port = free_port()
        self._address = f"127.0.0.1:{port}"
        self.url = f"http://{self._address}"
        self._log = (self.directory / "victoria.log").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [
                "victoria-metrics",
                f"-httpListenAddr={self._address}",
                f"-storageDataPath={self.directory / 'victoria'}",
                "-retentionPeriod=10y",
                "-memory.allowedBytes=128MiB",
                "-loggerLevel=ERROR",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def take(self, histories: Iterable[History]) -> None:
        """Import histories, and return when they can be read."""
        lines = []
        for one in histories:
            labels = ",".join(f"{name}={json.dumps(text)}" for name, text in one.labels.items())
            lines += [
                f"{one.metric}{{{labels}}} {value!r} {at * 1000:.0f}" for at, value in one.points
            ]
        body = "\n".join(lines).replace(" nan ", " NaN ").encode()
        assert self._ask("POST", "/api/v1/import/prometheus", body) < 300
        assert self._ask("GET", "/internal/force_flush") < 300

    def _ask(self, method: str, path: str, body: bytes | None = None) -> int:
        connection = HTTPConnection(self._address, timeout=10)
        try:
            connection.request(method, path, body)
            return connection.getresponse().status
        finally:
            connection.close()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"victoria-metrics ended at once: {self._tail()}")
            try:
                if self._ask("GET", "/health") == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"victoria-metrics did not get ready: {self._tail()}")

    def _tail(self) -> str:
        return Path(self._log.name).read_text(encoding="utf-8")[-2000:]

    def _stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()

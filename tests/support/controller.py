"""The controller as users run it: a process with a kubeconfig, spoken to by HTTP and signals."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from support.prometheus import free_port

from gpu_pruner.sim.tree import JsonObject, elements, text

WAIT_SECONDS = 120.0
"""Longest wait for anything; stories take a tenth of it on a quiet machine."""


@dataclass
class Controller:
    """A context manager around one `gpu-pruner run` process."""

    kubeconfig: Path
    log: Path
    """Where its log lines go, behind those that are there."""
    arguments: Sequence[str] = ()
    port: int = field(default_factory=free_port)

    def __enter__(self) -> Self:
        with self.log.open("ab") as sink:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "gpu_pruner.cli", "run", *self.arguments),
                    *("--kubeconfig", str(self.kubeconfig), "-l", "json"),
                    *("--listen-address", "127.0.0.1", "--listen-port", str(self.port)),
                ],
                stdout=sink,
                stderr=sink,
                stdin=subprocess.DEVNULL,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        code = self.stop()
        assert kind is not None or code == 0, f"it ended with {code}:\n{self.tail()}"

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Stop it and return its exit code; by SIGKILL where it takes too long."""
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def signal(self, how: signal.Signals) -> None:
        """Send it a signal, SIGSTOP and SIGCONT for example."""
        self._process.send_signal(how)

    def memory_bytes(self) -> int:
        """Return its resident memory."""
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def peak_memory_bytes(self) -> int:
        """Return the most resident memory that it ever had (``VmHWM``)."""
        told = Path(f"/proc/{self._process.pid}/status").read_text()
        [line] = [one for one in told.splitlines() if one.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    def metrics(self) -> str:
        """Return its metrics as text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/metrics")
        try:
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def get(self, path: str) -> JsonObject:
        """Return what a route answers; empty while it does not."""
        try:
            return self._ask("GET", path)
        except (OSError, http.client.HTTPException, ValueError):
            return {}

    def post(self, path: str, body: JsonObject, *, token: str) -> JsonObject:
        """Ask for something as the holder of a token."""
        return self._ask("POST", path, json.dumps(body), {"Authorization": f"Bearer {token}"})

    def _ask(
        self, method: str, path: str, body: str = "", headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body or None, headers or {})
            answer: JsonObject = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer

    def told(self, ref: str) -> JsonObject:
        """Return what it says of one workload, ``kind/namespace/name``; empty if nothing."""
        rows = elements(self.get("/api/v1/workloads"), "workloads")
        return next((one for one in rows if text(one, "ref") == ref), {})

    def state(self, ref: str) -> str:
        """Return where it says that a workload stands."""
        return text(self.told(ref), "state")

    def reason(self, ref: str) -> str:
        """Return why, in its word."""
        return text(self.told(ref), "reason")

    def until(self, happened: Callable[[], object], *, seconds: float = WAIT_SECONDS) -> None:
        """Wait for something that the controller, or what it works on, does.

        Raises:
            AssertionError: it did not happen, or the controller ended; shows its last lines.
        """
        deadline = time.monotonic() + seconds
        while not happened():
            assert self._process.poll() is None, f"the controller ended:\n{self.tail()}"
            if time.monotonic() > deadline:
                told = json.dumps(self.get("/api/v1/workloads"), indent=1)
                raise AssertionError(f"it never happened; it says:\n{told}\n{self.tail()}")
            time.sleep(0.1)

    def until_told(self, ref: str, *, state: str = "", reason: str = "") -> None:
        """Wait until it says this of a workload."""
        self.until(
            lambda: (
                self.state(ref) == (state or self.state(ref))
                and self.reason(ref) == (reason or self.reason(ref))
            )
        )

    def tail(self) -> str:
        """Return its last log lines."""
        return self.log.read_text(errors="replace")[-6000:]

"""A real JupyterHub on loopback: started, stopped and restarted by a test.

Its user servers are marks in a folder, or, where a namespace of the lab is named, pods that the
real KubeSpawner makes. All of them answer at one port, which is ours.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
import requests
from support.prometheus import free_port

from gpu_pruner.sim.tree import JsonObject

SCRIPT = Path(__file__).with_name("jupyterhub.sh")
CONFIG = Path(__file__).parent / "jupyterhub" / "hub_config.py"
SCOPES = ("list:users", "read:servers", "delete:servers", "start:servers")
"""What our documentation says that the token needs, and no more."""
USERS = ("alice", "bob")
_WAIT_SECONDS = 60.0


def require_jupyterhub() -> str:
    """Return the Hub's Python; skip where it was not installed: with CI=true that is a failure."""
    where = subprocess.run(["sh", SCRIPT, "--where"], check=True, capture_output=True, text=True)
    python = Path(where.stdout.strip())
    if not (python.parents[1] / "complete").exists():
        pytest.skip("JupyterHub not found: tests/support/jupyterhub.sh")
    return str(python)


class _Answering(BaseHTTPRequestHandler):
    """Any answer will do for a Hub to believe that a server is up."""

    def do_GET(self) -> None:
        self.send_response(HTTPStatus.NOT_FOUND)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
        """Say nothing."""


@dataclass
class JupyterHub:
    """A context manager around one Hub process."""

    directory: Path
    users: Sequence[str] = USERS
    scopes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """More tokens: name to scopes."""
    namespace: str = ""
    """Of the lab, where its users get pods."""
    kubeconfig: Path | None = None
    concurrent_spawn_limit: int = 100
    port: int = field(default_factory=free_port)

    def __enter__(self) -> Self:
        self._python = require_jupyterhub()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._answering = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
        threading.Thread(target=self._answering.serve_forever, daemon=True).start()
        self._tokens: dict[str, Sequence[str]] = {
            "gpu-pruner": SCOPES,
            "admin": ("admin:users", "admin:servers"),
            **self.scopes,
        }
        for name in self._tokens:
            self.token_file(name).write_text(f"{_secret(name)}\n")
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._answering.shutdown()
        self._answering.server_close()

    @property
    def url(self) -> str:
        """Return what `jupyter_hubs.url` is to be."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "hub.log"

    def token_file(self, name: str = "gpu-pruner") -> Path:
        return self.directory / f"token-{name}"

    def start(self) -> None:
        """Start it, with the data that it had."""
        told = {
            "directory": str(self.directory),
            "port": self.port,
            "answering_port": self._answering.server_address[1],
            "users": list(self.users),
            "namespace": self.namespace,
            "concurrent_spawn_limit": self.concurrent_spawn_limit,
            "tokens": {
                name: {"secret": _secret(name), "scopes": list(scopes)}
                for name, scopes in self._tokens.items()
            },
        }
        more = {"KUBECONFIG": str(self.kubeconfig)} if self.kubeconfig else {}
        with self.log.open("ab") as sink:
            self._process = subprocess.Popen(
                [self._python, "-m", "jupyterhub", "-f", str(CONFIG)],
                env={"PATH": os.environ["PATH"], "TOLD": json.dumps(told), **more},
                cwd=self.directory,
                stdout=sink,
                stderr=sink,
                stdin=subprocess.DEVNULL,
            )
        self._until_it_answers()

    def stop(self) -> None:
        """End the Hub; what its users run runs on."""
        process = getattr(self, "_process", None)
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    # What a person or an administrator does.

    def ask(self, method: str, path: str, body: object = None) -> requests.Response:
        return requests.request(
            method,
            f"{self.url}/hub/api{path}",
            headers={"Authorization": f"token {_secret('admin')}"},
            json=body,
            timeout=30,
        )

    def user_starts(self, user: str, server: str = "", options: JsonObject | None = None) -> None:
        """Start a server, and wait until it is ready unless it is told to wait."""
        answer = self.ask("POST", _server(user, server), options)
        assert answer.ok, answer.text
        if not (options or {}).get("hold_start"):
            self.until(lambda: self.server(user, server).get("ready"))

    def user_stops(self, user: str, server: str = "") -> None:
        answer = self.ask("DELETE", _server(user, server))
        assert answer.ok, answer.text
        self.until(lambda: not self.server(user, server))

    def server(self, user: str, server: str = "") -> JsonObject:
        """Return the Hub's model of an active server; empty where it is not active."""
        found: JsonObject = self.ask("GET", f"/users/{user}").json()["servers"].get(server, {})
        return found

    def let(self, option: str) -> None:
        """Let go on what waits for an option such as ``hold_stop``."""
        (self.directory / option).touch()

    def until(self, happened, *, seconds: float = _WAIT_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline, self.log.read_text(errors="replace")[-4000:]
            time.sleep(0.1)

    def _until_it_answers(self) -> None:
        def answers() -> bool:
            assert self._process.poll() is None, self.log.read_text(errors="replace")[-4000:]
            try:
                return self.ask("GET", "/users").ok
            except requests.ConnectionError:
                return False

        self.until(answers)


def _server(user: str, server: str) -> str:
    return f"/users/{user}/servers/{server}" if server else f"/users/{user}/server"


def _secret(name: str) -> str:
    return f"secret-of-{name}"

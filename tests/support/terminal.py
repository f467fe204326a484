"""A person at a keyboard, who types what a page says into a checkout of the repository.

The checkout is a folder that looks like one, in which `.venv/bin/gpu-pruner` is the program under
test. Addresses that stand for the reader's own are exchanged for those of what runs here. What
goes on for ever (`gpu-pruner run`) is started, waited for until it is ready, and ended in an
orderly way when the next one starts or the page is over.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

from support.pages import ROOT, TYPED, Block, Command, commands
from support.printed import is_shown
from support.prometheus import free_port

_PATIENCE_SECONDS = 120.0
_COPIED = ("deploy",)
"""kustomize does not follow a link out of a folder."""
_NOT_THERE = frozenset({".git", ".venv", "node_modules", *_COPIED})


def checkout(folder: Path, kubectl: Path | None = None) -> Path:
    """Make a folder like a checkout after ``pip install``.

    Args:
        folder: where it is made.
        kubectl: the lab's binary, whose first argument it is; None: there is no kubectl.
    """
    tree = folder / "gpu-pruner"
    tree.mkdir()
    for one in ROOT.iterdir():
        if one.name not in _NOT_THERE:
            (tree / one.name).symlink_to(one)
    for name in _COPIED:
        shutil.copytree(ROOT / name, tree / name)
    programs = tree / ".venv" / "bin"
    programs.mkdir(parents=True)
    _script(programs / "gpu-pruner", [sys.executable, "-m", "gpu_pruner.cli"])
    if kubectl is not None:
        _script(programs / "kubectl", [str(kubectl), "kubectl"])
    subprocess.run(["make", "-t", "-s", "demo"], cwd=tree, check=True, capture_output=True)
    return tree


def _script(path: Path, command: list[str]) -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)


@dataclass
class Terminal:
    """A context manager around one page's commands, all in one folder."""

    folder: Path
    """Of `checkout`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Besides what the tests themselves have; without our settings."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """What stands in a page for the reader's own, and what to take here."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """Exit codes that are right, by how a command begins; 0 elsewhere."""
    listen_port: int = field(default_factory=free_port)
    _running: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _last: int = field(default=0, init=False)

    def __enter__(self) -> Self:
        """Prepare the variables that commands leave behind for those after them."""
        self._variables = self.folder / ".variables"
        kept = {name: one for name, one in os.environ.items() if not name.startswith("GPU_PRUNER_")}
        path = f"{self.folder / '.venv' / 'bin'}:{os.environ['PATH']}"
        own = {"PATH": path, "GPU_PRUNER_LISTEN_PORT": str(self.listen_port), "COLUMNS": "120"}
        own["GPU_PRUNER_LISTEN_ADDRESS"] = "127.0.0.1"
        self._environ = {**kept, **own, **self.environment}
        self._variables.write_text("", encoding="utf-8")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        code = self.end_what_runs()
        assert kind is not None or code == 0, f"it ended with {code}:\n{self.log()}"

    def follow(self, block: Block, *, apart: Mapping[str, str]) -> None:
        """Do what a block says.

        Args:
            block: of a page.
            apart: commands that are not run here.

        Raises:
            AssertionError: a command failed, or printed something else than the page.
        """
        if block.file:
            self.write(block)
        elif block.language in TYPED:
            typed = [one for one in commands(block) if one.typed not in apart]
            for one, after in pairwise((*typed, None)):
                if one:
                    self.type(one, asks_code=bool(after and after.typed == "echo $?"))

    def write(self, block: Block) -> None:
        """Write the file that a block is."""
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if block.is_added else "w", encoding="utf-8") as file:
            file.write(self.here(block.text))

    def here(self, text: str) -> str:
        """Return a text with what there is here in the place of the reader's own."""
        for theirs, ours in self.instead.items():
            text = text.replace(theirs, ours)
        return text

    def type(self, command: Command, *, asks_code: bool = False) -> str:
        """Run one command, and return what it printed.

        Args:
            command: of a page.
            asks_code: whether the page goes on to show its exit code, so that it may fail.
        """
        typed = self.here(command.typed)
        if _lasts(typed):
            self._start(typed)
            return ""
        script = f". {self._variables}\n(exit {self._last})\n{typed}\ncode=$?\n"
        script += f"export -p > {self._variables}\nexit $code"
        ended = subprocess.run(
            ["sh", "-c", script],
            cwd=self.folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        self._last = ended.returncode
        told = f"{command.place}: {typed}\n{ended.stdout}"
        right = next((one for begin, one in self.ends.items() if typed.startswith(begin)), 0)
        fine = asks_code or ended.returncode == right
        assert fine, f"{told}\nit ended with {ended.returncode}"
        shown = self.here(command.printed or "")
        assert not shown or is_shown(shown, ended.stdout), f"{told}\nthe page says:\n{shown}"
        return ended.stdout

    def log(self) -> str:
        """Return what the running command said so far."""
        with suppress(FileNotFoundError):
            return (self.folder / ".log").read_text(encoding="utf-8")[-4000:]
        return ""

    def end_what_runs(self) -> int:
        """Interrupt what runs, if anything does, and return its exit code."""
        if self._running is None:
            return 0
        process, self._running = self._running, None
        return interrupt(process)

    def _start(self, typed: str) -> None:
        code = self.end_what_runs()
        assert code == 0, f"it ended with {code}:\n{self.log()}"
        script = f". {self._variables}\nexec {typed.removesuffix('&')}"
        with (self.folder / ".log").open("wb") as log:
            self._running = subprocess.Popen(
                ["sh", "-c", script],
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupt meant for it must not reach the tests
            )
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self._is_ready():
            assert self._running.poll() is None, f"{typed} ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"{typed} is not ready:\n{self.log()}"
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.listen_port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


def interrupt(process: subprocess.Popen[bytes]) -> int:
    """Interrupt a process that began a session of its own, as a terminal does; return its code."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def _lasts(typed: str) -> bool:
    words = shlex.split(typed, comments=True)
    ours = bool(words) and words[0].endswith("gpu-pruner")
    return ours and words[1:2] == ["run"] and "--print-settings" not in words

"""A JupyterHub's answers in memory, for tests of what is asked of it and when.

`tests/contract/test_jupyterhub.py` holds it to what a real Hub does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpu_pruner.errors import HubError
from gpu_pruner.jupyterhub.answers import HubServer, refusal
from gpu_pruner.model.jupyterhub import ServerName


@dataclass
class MemoryHub:
    namespace: str = "team-a"
    users: tuple[str, ...] = ("alice", "bob")
    active: dict[ServerName, HubServer] = field(default_factory=dict)
    asked: list[tuple[str, ServerName]] = field(default_factory=list)
    """Stops and starts, as they came."""
    failures: dict[str, HubError] = field(default_factory=dict)
    """By what is asked: what is raised in place of an answer."""
    before: dict[int, Callable[[], object]] = field(default_factory=dict)
    """By how often a server was looked at: what happens right before the answer."""
    _looks: int = 0
    _starts: int = 0

    def runs(self, name: ServerName, **more: object) -> HubServer:
        """Let a server run, from a start of its own."""
        self._starts += 1
        facts = {"started": f"2026-01-31T12:00:{self._starts:02}.5Z", "ready": True, **more}
        self.active[name] = HubServer(**facts)
        return self.active[name]

    async def servers(self) -> dict[ServerName, HubServer]:
        self._fail("servers")
        return dict(self.active)

    async def server(self, name: ServerName) -> HubServer | None:
        self._looks += 1
        self.before.pop(self._looks, lambda: None)()
        self._fail("server")
        self._know(name)
        return self.active.get(name)

    async def stop(self, name: ServerName) -> None:
        self._fail("stop")
        self._know(name)
        self.asked.append(("stop", name))
        self.active.pop(name, None)

    async def start(self, name: ServerName) -> None:
        self._fail("start")
        self._know(name)
        if name in self.active:
            raise refusal(400, b'{"message": "is already running"}')
        self.asked.append(("start", name))
        self.runs(name)

    def _fail(self, what: str) -> None:
        if what in self.failures:
            raise self.failures[what]

    def _know(self, name: ServerName) -> None:
        if name.user not in self.users:
            raise refusal(404, b"")

"""An API server on loopback that answers as told: whole replies, or watches that go wrong.

It speaks HTTP by hand, so that a test can cut a line in the middle or fall silent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.throttle import TokenBucket
from gpu_pruner.model.clock import Clock
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.settings.schema import KubernetesSettings

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
TOKEN = "s3cret-token"
TLS_RECORD = b"\x16"


@dataclass(frozen=True)
class Reply:
    body: Json | bytes = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    """Send nothing at all until the server is closed."""


@dataclass(frozen=True)
class Watch:
    """Lines of a watch, and what comes then: ``end``, ``cut`` (in the middle of a chunk), ``hold``
    (silence), ``talk`` (empty lines until the client leaves), or ``flood`` (no end of a line)."""

    lines: Sequence[Json | bytes] = ()
    then: str = "hold"


Answer = Reply | Watch


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        return json.loads(self.body)


@dataclass
class ScriptedApi:
    """A context manager. Each path has a script of answers; its last answer is given for ever."""

    lists: dict[str, list[Answer]] = field(default_factory=dict)
    watches: dict[str, list[Answer]] = field(default_factory=dict)
    others: dict[str, list[Answer]] = field(default_factory=dict)
    """For everything that is not a GET, by path."""
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    date: str | None = None
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def connections(self) -> int:
        return len(self._open)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def count(self, path: str, *, watch: bool | None = None) -> int:
        return len(self.of(path, watch=watch))

    def of(self, path: str, *, watch: bool | None = None) -> list[Asked]:
        return [
            one
            for one in self.asked
            if one.path == path and (watch is None or watch == ("watch" in one.query))
        ]

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._open.clear()

    def kubeconfig(self, folder: Path, *, token: str = TOKEN) -> Path:
        path = folder / "kubeconfig"
        path.write_text(json.dumps(kubeconfig(self.url, token=token)), encoding="utf-8")
        return path

    async def client(
        self, folder: Path, *, clock: Clock | None = None, timeout_seconds: float = 5.0
    ) -> ClusterClient:
        settings = KubernetesSettings(
            kubeconfig=self.kubeconfig(folder), timeout_seconds=timeout_seconds
        )
        client = await ClusterClient.connect(settings, clock=clock or SystemClock())
        client.bucket = TokenBucket(per_second=1e6, burst=1e6)
        return client

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            asked = await _read(reader)
            if self._server is None:
                return  # accepted in the moment of closing
            if asked is None:
                writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            else:
                self.asked.append(asked)
                await self._answer(self._next(asked), writer)
        except (asyncio.CancelledError, ConnectionError):
            pass  # the test is over, or the client went away
        finally:
            self._open.discard(task)
            writer.close()

    def _next(self, asked: Asked) -> Answer:
        script = self.others
        if asked.method == "GET":
            script = self.watches if "watch" in asked.query else self.lists
        answers = script.get(asked.path, [])
        if not answers:
            return Watch() if "watch" in asked.query else status(404, "no such thing")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def _answer(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        if isinstance(answer, Watch):
            await self._stream(answer, writer)
        elif answer.hang:
            await asyncio.Event().wait()
        else:
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body)
            content = body if isinstance(body, bytes) else body.encode()
            self._head(writer, answer.status, {"Content-Length": str(len(content))}, answer.headers)
            writer.write(content)
            await writer.drain()

    async def _stream(self, answer: Watch, writer: asyncio.StreamWriter) -> None:
        self._head(writer, 200, {"Transfer-Encoding": "chunked"}, {})
        for line in answer.lines:
            chunk = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        if answer.then == "cut":
            writer.write(b"ffff\r\n{")
        if answer.then == "end":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        if answer.then == "hold":
            await asyncio.Event().wait()
        while answer.then == "flood":
            writer.write(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
            await writer.drain()
        while answer.then == "talk":
            writer.write(b"1\r\n\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.005)

    def _head(
        self,
        writer: asyncio.StreamWriter,
        code: int,
        needed: Mapping[str, str],
        more: Mapping[str, str],
    ) -> None:
        headers = {
            "Content-Type": "application/json",
            "Connection": "close",
            "Date": self.date or formatdate(usegmt=True),
            **needed,
            **more,
        }
        lines = [f"HTTP/1.1 {code} X", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    """Read a request; None where the client leaves, or speaks TLS to us."""
    try:
        begin = await reader.readexactly(1)
        if begin == TLS_RECORD:
            return None
        head = (begin + await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    return Asked(method, parts.path, dict(parse_qsl(parts.query)), headers, body)


def kubeconfig(url: str, *, token: str = TOKEN) -> dict[str, Json]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }


def thing(name: str, *, version: int = 1, **more: Json) -> dict[str, Json]:
    """An object; its uid is its name."""
    meta = {"name": name, "namespace": "team-a", "uid": name, "resourceVersion": str(version)}
    extra = more.pop("metadata", {})
    assert isinstance(extra, Mapping)
    return {"metadata": {**meta, **extra}, **more}


def page(items: Iterable[Json], *, version: int = 1, more: str = "") -> Reply:
    meta: dict[str, Json] = {"resourceVersion": str(version)}
    if more:
        meta["continue"] = more
    return Reply({"metadata": meta, "items": list(items)})


def status(code: int, message: str = "", *, reason: str = "", **headers: str) -> Reply:
    body = {"kind": "Status", "code": code, "message": message, "reason": reason}
    return Reply(body, code, {name.replace("_", "-"): value for name, value in headers.items()})


def event(kind: str, one: Json) -> Json:
    return {"type": kind, "object": one}


def bookmark(version: int) -> Json:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


async def eventually(holds: Callable[[], bool], *, seconds: float = 10.0) -> None:
    """Wait until something holds; fail when it does not within `seconds`, which is generous."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.002)

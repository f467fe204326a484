"""A local copy of one kind, kept true by list and watch.

Answers what the API server holds of a kind right now, as far as we heard. It survives a server
that is down, slow, silent, too busy, or has forgotten the version that we are at: it lists again
and meanwhile keeps what it had, because missing data must never look like missing objects. It
never writes, never judges an object, and never ends by itself. `observe.cluster` runs one per kind.

All waits are real seconds (see `kube.throttle.Pace`); what is shown is in time of the `Clock`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from gpu_pruner.errors import ClusterError, Forbidden, Gone, NotFound, Throttled
from gpu_pruner.kube import answers
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.once import Once
from gpu_pruner.kube.resources import Resource
from gpu_pruner.kube.throttle import Pace
from gpu_pruner.kube.wire import Bare, Meta, Status, WatchEvent
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.foreign import quoted
from gpu_pruner.model.units import Seconds, Timestamp

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_PAGE = 500
_UNPAGED_AFTER = 3
"""Lists that ran into 410 in a row before the pages are given up for one long answer."""
_GONE_AFTER = 8
"""Refusals in a row after which a kind that was there is gone: with `Pace`, after about a minute.

A server that is just starting refuses for some seconds what it will soon serve again.
"""
_GONE = 410
_UNKNOWN = 500


class WireObject(Protocol):
    """What every Struct of `kube.wire` has."""

    @property
    def metadata(self) -> Meta:
        """Return the object's metadata."""
        ...


W = TypeVar("W", bound=WireObject)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed(Generic[W, T]):
    """What to watch, and what to keep of it."""

    resource: Resource
    decode: type[W]
    keep: Callable[[W], T | None]
    """Makes the value that is kept of an object; None leaves the object out."""
    unreadable: Callable[[Meta], T | None] = lambda _meta: None
    """Makes the value of an object of which only the metadata could be read."""
    needed: bool = False
    """Whether every cluster has this kind: 404 is then a failure, and what we had stays."""


@dataclass(slots=True, eq=False)
class Reflector(Generic[W, T]):
    """Keeps one `Feed` up to date. Start `run` as a task; read `items` at any time."""

    client: ClusterClient
    feed: Feed[W, T]
    clock: Clock
    pace: Pace = field(default_factory=Pace)
    synced: bool = False
    """True from the first complete list on."""
    absent: str = ""
    """Why the kind is not to be had (not installed, or forbidden), in a sentence; else empty."""
    error: ClusterError | None = None
    """The last failure, until things go well again."""
    failures: int = 0
    """Failures in a row."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the first look is over: listed, absent, or failed `Pace.patience` times."""
    _items: dict[str, T] = field(default_factory=dict)
    _version: str = ""
    last_heard_at: Timestamp = field(init=False)
    """When the server last told us anything of this kind; at first, when we began to ask."""
    _following: bool = False
    _odd: Once = field(default_factory=Once)
    _lost_lists: int = 0
    _refusals: int = 0
    """Of the kind as a whole (not there, not allowed), in a row."""

    def __post_init__(self) -> None:
        """Count staleness from now on."""
        self.last_heard_at = self.clock.now()

    @property
    def items(self) -> Mapping[str, T]:
        """Return what is kept, by uid: the newest known state. Copy it before you await."""
        return self._items

    @property
    def stale_seconds(self) -> Seconds:
        """Return how old the copy may be: 0 while a watch is open, else the time since its end.

        A watch whose peer fell silent counts as open until `Pace.silence` is over, and from then
        on as ended with the last word.
        """
        return 0.0 if self._following else self.clock.now() - self.last_heard_at

    async def run(self) -> None:
        """List and watch for ever; ends only by being cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                wait = await self._watch()
            except ClusterError as error:
                wait = self._failed(error)
            if self.failures >= self.pace.patience:
                self.settled.set()
            await self._rest(wait)

    async def _rest(self, wait: Seconds) -> None:
        """Wait; not longer than until the server is back, where it was the server that failed."""
        if self.error is None or (self.error.status or _UNKNOWN) < _UNKNOWN:
            await self.pace.sleep(wait)
            return
        nap = asyncio.ensure_future(self.pace.sleep(wait))
        over = asyncio.ensure_future(self.client.outage.over())
        try:
            await asyncio.wait((nap, over), return_when=asyncio.FIRST_COMPLETED)
            if over.done():
                self.failures = 0  # a server that has just come back stumbles for a moment
        finally:
            nap.cancel()
            over.cancel()

    async def _list(self) -> None:
        """Read the whole kind anew; what we had stays until the new list is complete."""
        fresh: dict[str, T] = {}
        version = ""
        limit = _PAGE if self._lost_lists < _UNPAGED_AFTER else 0
        pages = self.client.list_pages(self.feed.resource, decode=msgspec.Raw, limit=limit)
        try:
            async for page in pages:
                self.last_heard_at = self.clock.now()
                version = page.resource_version
                for item in page.items:
                    self._store(fresh, item)
        except Gone:
            self._lost_lists += 1
            raise
        except msgspec.DecodeError as error:
            raise answers.unreadable(f"list {self._name}", error, sent=self.client.sent) from error
        if not version:
            raise ClusterError(f"list {self._name}: the answer names no resourceVersion")
        self._items, self._version, self._lost_lists = fresh, version, 0
        self.synced = True
        self.settled.set()

    async def _watch(self) -> Seconds:
        """Follow changes until the server ends the watch; return how long to wait then."""
        query = [
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self._version),
            ("timeoutSeconds", str(max(1, int(self.pace.spread(self.pace.watch))))),
        ]
        opened = monotonic()
        try:
            async with self.client.watch(
                self.feed.resource, query=query, silence_seconds=self.pace.silence
            ) as lines:
                self._opened()
                await self._follow(lines, opened)
        except ClusterError as error:
            self._broke(error, lasted=monotonic() - opened)
            raise
        finally:
            self._following = False
        self.last_heard_at = self.clock.now()
        if monotonic() - opened >= self.pace.brief:
            self._well()
            return 0.0
        # Ending at once, time after time, is a failure that does not call itself one.
        self.failures += 1
        return self.pace.failure(self.failures)

    def _opened(self) -> None:
        """Note that a watch was granted: the kind is there, and we may follow it."""
        self._following = True
        self.last_heard_at = self.clock.now()
        self._refusals = 0
        if self.absent:
            _log.info("kind is there now", kind=self._name)
            self.absent = ""

    def _broke(self, error: ClusterError, *, lasted: Seconds) -> None:
        """Note how an open watch ended: with the connection, or in silence."""
        if not self._following:
            return
        if not isinstance(error.__cause__, TimeoutError):
            self.last_heard_at = self.clock.now()
        if lasted >= self.pace.brief:
            self._well()

    async def _follow(self, lines: AsyncIterator[bytes], opened: Seconds) -> None:
        async for line in lines:
            self.last_heard_at = self.clock.now()
            self._take(line)
            if monotonic() - opened >= self.pace.brief:
                self._well()

    def _take(self, line: bytes) -> None:
        """Carry one line of a watch out on what we keep."""
        try:
            event = msgspec.json.decode(line, type=WatchEvent)
            if event.type == "ERROR":
                raise self._broken_off(event)
            if event.type in {"ADDED", "MODIFIED"}:
                meta = self._store(self._items, event.object)
            else:
                meta = msgspec.json.decode(event.object, type=Bare).metadata
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._version = ""  # what it held may have been a change: only a list can tell
            raise answers.unreadable(f"watch {self._name}", error, sent=self.client.sent) from error
        if event.type == "DELETED":
            self._items.pop(meta.uid, None)
        if meta.resource_version:
            self._version = meta.resource_version

    def _store(self, items: dict[str, T], raw: msgspec.Raw) -> Meta:
        """Put one object into `items`, or take it out if nothing of it is kept.

        One odd object must not cost us the whole kind, so it is kept by its metadata alone.
        """
        try:
            decoded = msgspec.json.decode(raw, type=self.feed.decode)
            meta, value = decoded.metadata, self.feed.keep(decoded)
        except msgspec.ValidationError as error:
            meta = msgspec.json.decode(raw, type=Bare).metadata
            value = self.feed.unreadable(meta)
            self._say_odd(meta, error)
        if value is None:
            items.pop(meta.uid, None)
        else:
            items[meta.uid] = value
        return meta

    def _say_odd(self, meta: Meta, error: Exception) -> None:
        """Log once that an object cannot be read."""
        if not self._odd.first(meta.uid):
            return
        _log.warning(
            "object cannot be read",
            kind=self._name,
            namespace=meta.namespace,
            name=meta.name,
            why=quoted(str(error), sent=self.client.sent),
        )

    def _broken_off(self, event: WatchEvent) -> ClusterError:
        """Return the error that an ERROR event stands for."""
        status = msgspec.json.decode(event.object, type=Status)
        code = _GONE if status.reason in {"Expired", "Gone"} else status.code or _UNKNOWN
        said = quoted(status.message or status.reason or "", sent=self.client.sent)
        return answers.error_for(code, said, asked=f"watch {self._name}")

    def _failed(self, error: ClusterError) -> Seconds:
        """Note a failure and return how long to wait."""
        self.failures += 1
        self.error = error
        if isinstance(error, Forbidden | NotFound):
            return self._missing(error)
        # Whatever a watch stumbles over, a list may get past it; but an outage needs no new list.
        stumbles = self.pace.patience if error.status is not None else 4 * self.pace.patience
        if isinstance(error, Gone) or self.failures % stumbles == 0:
            self._version = ""
        at_least = error.retry_after_seconds if isinstance(error, Throttled) else 0.0
        wait = self.pace.failure(self.failures, at_least=at_least)
        say = _log.info if self.failures == 1 else _log.debug  # an outage is said once
        say("watch broke off", kind=self._name, why=str(error), retry_seconds=round(wait, 1))
        return wait

    def _missing(self, error: ClusterError) -> Seconds:
        """Note that the kind is not to be had; forget its objects once that is certain."""
        self._version = ""
        self._refusals += 1
        is_gone = not self.synced or self._refusals >= _GONE_AFTER
        if is_gone and isinstance(error, NotFound) and not self.feed.needed:
            self._items = {}
        if self.absent != str(error):
            self.absent = str(error)
            # Most clusters lack some kinds from the start; who runs us tells them in one line.
            expected = isinstance(error, NotFound) and not (self.feed.needed or self.synced)
            say = _log.debug if expected else _log.warning
            say("kind is not available", kind=self._name, why=self.absent)
        self.settled.set()
        if is_gone:
            return self.pace.spread(self.pace.absent)
        return self.pace.failure(self._refusals)

    def _well(self) -> None:
        if self.error is not None:
            _log.info("watch is well again", kind=self._name)
        self.failures, self.error = 0, None

    @property
    def _name(self) -> str:
        return self.feed.resource.full_name

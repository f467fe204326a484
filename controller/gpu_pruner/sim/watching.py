"""Watches: the stream of changes of one resource after a version.

Imitates the watch cache: a version that is too old is answered with an ERROR event of code 410; an
object that leaves the selector is DELETED, one that enters is ADDED; bookmarks carry a version and
nothing else, and one comes shortly before the end; ``sendInitialEvents`` ends the initial state
with a marked bookmark; the server closes the stream after ``timeoutSeconds``. Timeouts and bookmark
periods are real seconds, as they are part of the connection, not of the simulated world.
Called by `api`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import msgspec

from gpu_pruner.model.units import Seconds
from gpu_pruner.sim.failures import ApiFailure, bad_request
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.selectors import Matcher
from gpu_pruner.sim.store import Change, ChangeType, Item, Store
from gpu_pruner.sim.tree import JsonObject

_LONGEST: Seconds = 3600.0
_LAST_WORD: Seconds = 2.0
"""So long before the end comes the last bookmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What a watch asks for."""

    resource: Resource
    namespace: str
    matcher: Matcher
    version: str
    """resourceVersion; empty or ``0``: begin with the current state."""
    bookmarks: bool
    initial_events: bool
    encode: Callable[[Item], bytes]
    """Writes an object in the shape that the client accepts."""
    head: JsonObject
    """``kind`` and ``apiVersion`` of that shape, for bookmarks."""
    timeout_seconds: Seconds | None
    bookmark_seconds: Seconds


class Watch:
    """One open watch."""

    def __init__(self, store: Store, options: WatchOptions) -> None:
        self._store = store
        self._resource = options.resource
        self._options = options
        self._queue: asyncio.Queue[Change | None] = asyncio.Queue()
        self._version = store.version

    def end(self) -> None:
        """End the stream after what is queued."""
        self._queue.put_nowait(None)

    async def lines(self) -> AsyncIterator[bytes]:
        """Go through the events, one JSON line each, until the stream ends."""
        loop = asyncio.get_running_loop()
        asked = self._options.timeout_seconds
        deadline = loop.time() + (_LONGEST if asked is None else asked)
        unsubscribe = self._store.subscribe(self._on_change)
        try:
            try:
                for line in self._beginning():
                    yield line
            except ApiFailure as failure:
                yield _event("ERROR", msgspec.json.encode(failure.status()))
                return
            bookmark_at = self._next_bookmark(deadline)
            while (now := loop.time()) < deadline:
                try:
                    wait = min(deadline, bookmark_at) - now
                    change = await asyncio.wait_for(self._queue.get(), wait)
                except TimeoutError:
                    if self._options.bookmarks and loop.time() < deadline:
                        yield self._bookmark()
                    bookmark_at = self._next_bookmark(deadline)
                    continue
                if change is None:
                    return
                self._version = change.item.version
                for line in self._of_change(change):
                    yield line
        finally:
            unsubscribe()

    def _next_bookmark(self, deadline: Seconds) -> Seconds:
        """Return when to send a bookmark: now and then, and shortly before the end."""
        now = asyncio.get_running_loop().time()
        regular, last = now + self._options.bookmark_seconds, deadline - _LAST_WORD
        return min(regular, last) if last > now else regular

    def _on_change(self, change: Change) -> None:
        if change.item.resource.key == self._resource.key:
            self._queue.put_nowait(change)

    def _beginning(self) -> Iterator[bytes]:
        version = self._options.version
        if self._options.initial_events or version in {"", "0"}:
            for item in self._store.all(self._resource, self._options.namespace):
                if self._options.matcher(item.body):
                    yield self._of_item(ChangeType.ADDED, item)
            if self._options.initial_events:
                yield self._bookmark(initial_events_end=True)
            return
        if not version.isdecimal():
            raise bad_request(f"the resourceVersion is none: {version[:20]!r}")
        for change in self._store.changes_after(self._resource, int(version)):
            yield from self._of_change(change)

    def _of_change(self, change: Change) -> Iterator[bytes]:
        item = change.item
        if self._options.namespace and item.namespace != self._options.namespace:
            return
        matcher = self._options.matcher
        was_in = change.before is not None and matcher(change.before.body)
        is_in = change.type is not ChangeType.DELETED and matcher(item.body)
        if is_in:
            yield self._of_item(ChangeType.MODIFIED if was_in else ChangeType.ADDED, item)
        elif was_in:
            yield self._of_item(ChangeType.DELETED, item)

    def _of_item(self, kind: ChangeType, item: Item) -> bytes:
        return _event(kind.value, self._options.encode(item))

    def _bookmark(self, *, initial_events_end: bool = False) -> bytes:
        version = max(self._version, self._store.version) if self._queue.empty() else self._version
        metadata: JsonObject = {"resourceVersion": str(version)}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        body = self._options.head | {"metadata": metadata}
        return _event("BOOKMARK", msgspec.json.encode(body))


def _event(kind: str, body: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"

"""The cluster as the API server tells it, kept up to date.

`ClusterWatch` runs one reflector per kind and hands out what they hold as one `ClusterView`. It
never asks the server for anything in between, never writes, and never decides: a kind that is
not installed or forbidden is named in the view, and a server that fell silent makes it stale.
`cli` starts it once, and `loop` takes a view per cycle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain

import structlog

from gpu_pruner.errors import ClusterError
from gpu_pruner.kube import bookkeeping
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.custom import CustomKind, CustomOwner
from gpu_pruner.kube.gpuworkloads import GPUWorkload, name_for
from gpu_pruner.kube.once import Once
from gpu_pruner.kube.reflector import Feed, Reflector
from gpu_pruner.kube.resources import (
    GOVERNORS,
    GPUWORKLOADS,
    NAMESPACES,
    NODES,
    OWNERS,
    PODS,
    Resource,
)
from gpu_pruner.kube.throttle import Pace
from gpu_pruner.kube.wire import Bare, Node, Owner, Pod
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.cluster import Bookkeeping, ClusterView
from gpu_pruner.model.workload import (
    GovernorRecord,
    NamespaceRecord,
    NodeRecord,
    OwnerObject,
    PodRecord,
)
from gpu_pruner.observe import cluster_records as records
from gpu_pruner.observe import owner_records
from gpu_pruner.observe.governors import with_governors
from gpu_pruner.settings.levers import CustomLever

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copies:
    """One reflector per kind."""

    pods: Reflector[Pod, PodRecord]
    """GPU pods, and leaders of groups, which may need no GPU."""
    nodes: Reflector[Node, NodeRecord]
    namespaces: Reflector[Bare, NamespaceRecord]
    owners: tuple[Reflector[Owner, OwnerObject], ...]
    custom: tuple[Reflector[CustomOwner, OwnerObject], ...]
    governors: tuple[Reflector[Owner, GovernorRecord], ...]
    books: Reflector[GPUWorkload, Bookkeeping]

    @property
    def required(self) -> tuple[_Copy, ...]:
        """Return those without which nothing can be judged: exemptions live on namespaces."""
        return (self.pods, self.nodes, self.namespaces)

    def raise_unusable(self) -> None:
        """Raise the failure of a kind that was neither listed nor found to be missing."""
        for one in self.all:
            optional = one not in self.required
            if not one.synced and not (optional and one.absent):
                raise one.error or ClusterError(f"{one.feed.resource.full_name}: not listed")

    @property
    def all(self) -> tuple[_Copy, ...]:
        """Return every one."""
        return (*self.required, *self.owners, *self.custom, *self.governors, self.books)


_Copy = (
    Reflector[Pod, PodRecord]
    | Reflector[Node, NodeRecord]
    | Reflector[Bare, NamespaceRecord]
    | Reflector[Owner, OwnerObject]
    | Reflector[CustomOwner, OwnerObject]
    | Reflector[Owner, GovernorRecord]
    | Reflector[GPUWorkload, Bookkeeping]
)


class ClusterWatch:
    """Watches every kind that matters. `start` it, take `view`s, `close` it."""

    def __init__(
        self,
        client: ClusterClient,
        *,
        clock: Clock,
        pace: Pace | None = None,
        custom: Iterable[CustomLever] = (),
    ) -> None:
        """Prepare; nothing is sent before `start`.

        Args:
            client: the connection.
            clock: what staleness is counted in.
            pace: how long to wait between attempts; the default suits a real server.
            custom: levers of the settings, whose kinds are watched, too.
        """
        self._client = client
        self._clock = clock
        self._pace = pace or Pace()
        self._custom = tuple(CustomKind(one) for one in custom)
        self._once = Once()
        self._copies: _Copies | None = None
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    async def start(self) -> None:
        """Start watching; return once every kind was listed or is known to be absent.

        Raises:
            ClusterError: pods, nodes or namespaces may not be read, or the server cannot be used.
                Nothing is left running then, and `start` may be called again.
        """
        await self.close()
        copies = self._copies = self._make_copies()
        self._tasks = tuple(asyncio.create_task(one.run()) for one in copies.all)
        looks = asyncio.create_task(_first_looks(copies))
        try:
            await asyncio.wait({looks, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            self._raise_dead()
            copies.raise_unusable()
            self._say_absent(copies)
        except BaseException:
            looks.cancel()
            await self.close()
            raise

    async def close(self) -> None:
        """Stop watching. What was seen last can still be viewed."""
        for task in self._tasks:
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                _log.error("a watch of ours had died", error=repr(ended)[:_SHOWN])
        self._tasks = ()

    def view(self) -> ClusterView:
        """Return the newest known state of everything that is watched. Cheap; asks nobody.

        Raises:
            ClusterError: `start` was never called, or a watch died of an error of our own.
        """
        if self._copies is None:
            raise ClusterError("The cluster is not being watched yet")
        self._raise_dead()
        copies = self._copies
        missing = {one.feed.resource.kind for one in copies.all if one.absent}
        heard = [one for one in copies.all if one in copies.required or not one.absent]
        owners = _owners(copies)
        return ClusterView(
            pods=tuple(one for one in copies.pods.items.values() if one.gpus),
            nodes={one.name: one for one in copies.nodes.items.values()},
            namespaces={one.name: one for one in copies.namespaces.items.values()},
            owners=owners,
            books=self._by_root(copies.books.items.values(), owners),
            stale_seconds=max(one.stale_seconds for one in heard),
            clock_skew_seconds=self._client.clock_skew_seconds,
            books_available=not copies.books.absent,
            missing_kinds=frozenset(missing),
        )

    def _make_copies(self) -> _Copies:
        client, clock, pace = self._client, self._clock, self._pace
        pods = Feed(
            resource=PODS,
            decode=Pod,
            keep=self._pod,
            unreadable=records.unreadable_pod,
            needed=True,
        )
        nodes = Feed(
            resource=NODES,
            decode=Node,
            keep=records.node_record,
            unreadable=records.unreadable_node,
            needed=True,
        )
        namespaces = Feed(
            resource=NAMESPACES, decode=Bare, keep=records.namespace_record, needed=True
        )
        governors = tuple(
            Reflector(client, _governor_feed(kind), clock, pace) for kind in GOVERNORS
        )
        books = Feed(
            resource=GPUWORKLOADS,
            decode=GPUWorkload,
            keep=self._book,
            unreadable=bookkeeping.unreadable,
        )
        return _Copies(
            pods=Reflector(client, pods, clock, pace),
            nodes=Reflector(client, nodes, clock, pace),
            namespaces=Reflector(client, namespaces, clock, pace),
            owners=tuple(Reflector(client, _owner_feed(kind), clock, pace) for kind in OWNERS),
            custom=tuple(
                Reflector(client, _custom_feed(kind), clock, pace) for kind in self._custom
            ),
            governors=governors,
            books=Reflector(client, books, clock, pace),
        )

    def _pod(self, pod: Pod) -> PodRecord | None:
        """Return the record of a GPU pod; say once where its requests are odd."""
        record = records.pod_record(pod)
        if record is not None and (odd := records.odd_requests(pod)):
            self._say("pod", record.namespace, record.name, odd)
        return record

    def _book(self, stored: GPUWorkload) -> Bookkeeping | None:
        """Return what a GPUWorkload says; say once what of it could not be understood."""
        reading = bookkeeping.read(stored)
        self._say("gpuworkload", stored.metadata.namespace, stored.metadata.name, reading.problems)
        return reading.bookkeeping

    def _by_root(
        self, books: Iterable[Bookkeeping], owners: Mapping[str, OwnerObject]
    ) -> Mapping[str, Bookkeeping]:
        """Return the bookkeeping of each root, by the root's uid.

        One that lies in another namespace than its root is nobody's word about that root. Of
        several in the right one, the one with the name that we give supplies the book.
        """
        found: dict[str, Bookkeeping] = {}
        for one in sorted(books, key=lambda book: book.book.object_name):
            root = one.root
            owner = owners.get(root.uid)
            if owner is not None and owner.root.namespace != root.namespace:
                self._say("gpuworkload", root.namespace, one.book.object_name, (_ELSEWHERE,))
                continue
            other = found.get(root.uid)
            if other is None:
                found[root.uid] = one
            else:
                ours = one.book.object_name == name_for(root)
                first, second = (one, other) if ours else (other, one)
                found[root.uid] = bookkeeping.merged(first, second)
        return found

    def _say(self, kind: str, namespace: str, name: str, problems: Iterable[str]) -> None:
        for problem in problems:
            if self._once.first(f"{kind}/{namespace}/{name}: {problem}"):
                _log.warning("odd object", kind=kind, namespace=namespace, name=name, why=problem)

    def _say_absent(self, copies: _Copies) -> None:
        """Log the kinds that are not there: what they would own is out of sight."""
        absent = [one.feed.resource.full_name for one in copies.all if one.absent]
        if absent and self._once.first(f"absent: {absent}"):
            _log.info("kinds that are not to be had", kinds=absent)

    def _raise_dead(self) -> None:
        """Raise the error that ended a watch, for watches end by being cancelled only."""
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise ClusterError(f"A watch of ours died: {repr(error)[:_SHOWN]}") from error


_ELSEWHERE = "its root is in another namespace: ignored"


async def _first_looks(copies: _Copies) -> None:
    """Return once every first look is over."""
    for one in copies.all:
        await one.settled.wait()


def _owner_feed(kind: Resource) -> Feed[Owner, OwnerObject]:
    return Feed(
        resource=kind, decode=Owner, keep=partial(owner_records.owner_object, resource=kind)
    )


def _custom_feed(kind: CustomKind) -> Feed[CustomOwner, OwnerObject]:
    keep = partial(owner_records.custom_owner, kind=kind)
    return Feed(resource=kind.resource, decode=CustomOwner, keep=keep)


def _governor_feed(kind: Resource) -> Feed[Owner, GovernorRecord]:
    return Feed(resource=kind, decode=Owner, keep=partial(owner_records.governor, resource=kind))


def _owners(copies: _Copies) -> Mapping[str, OwnerObject]:
    """Return everything that can own pods, by uid, each with its governor."""
    owners = dict(chain.from_iterable(one.items.items() for one in copies.owners))
    owners.update(chain.from_iterable(one.items.items() for one in copies.custom))
    leaders = (owner_records.leader(one) for one in copies.pods.items.values() if one.leads)
    owners.update({one.root.uid: one for one in leaders})
    return with_governors(
        owners, chain.from_iterable(one.items.values() for one in copies.governors)
    )

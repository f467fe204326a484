"""Books in the cluster: GPUWorkload objects, read and written one at a time.

Answers what one GPUWorkload says now, and makes its status say what a book says. Only the leader's
part (status) is written, always with the resourceVersion that was read; people's part (spec) is
only ever created empty. Called by `act.actor`.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from gpu_pruner.act.levers import Levers
from gpu_pruner.act.pace import WritePace
from gpu_pruner.act.ports import Cluster
from gpu_pruner.errors import ActionRefused, Conflict, NotFound
from gpu_pruner.kube.bookkeeping import to_bookkeeping
from gpu_pruner.kube.gpuworkloads import GPUWorkload, manifest_for, name_for, status_patch
from gpu_pruner.kube.resources import GPUWORKLOADS, NAMESPACES, Resource
from gpu_pruner.kube.wire import Bare
from gpu_pruner.model.book import Book
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.cluster import Bookkeeping
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.model.workload import RootRef

RETRY_AFTER_SECONDS: Seconds = 60.0
"""How long a missing GPUWorkload kind is believed to stay missing: one question a minute instead
of one per workload and cycle."""

NO_KIND = (
    "the GPUWorkload kind is not installed, so nothing can be remembered; install it with: "
    "kubectl apply -k deploy/crds"
)


class NoBooks(ActionRefused):
    """There is nowhere to write a book: the kind, or the namespace, does not exist."""


class ClusterBook:
    """Reads and writes GPUWorkloads."""

    def __init__(self, client: Cluster, *, clock: Clock, levers: Levers) -> None:
        self._client = client
        self._levers = levers
        self._clock = clock
        self._pace = WritePace(clock)
        self._missing_until: Timestamp | None = None

    async def turn(self) -> None:
        """Wait until one more write may go out."""
        await self._pace.turn()

    async def read(self, root: RootRef, *, object_name: str = "") -> Bookkeeping | None:
        """Return what the root's GPUWorkload says now; None where there is none.

        Args:
            root: with its uid.
            object_name: name of the GPUWorkload where it is known.

        Raises:
            ClusterError: no usable answer.
        """
        name = object_name or name_for(root)
        try:
            stored = await self._client.get(
                GPUWORKLOADS, name, namespace=root.namespace, decode=GPUWorkload
            )
        except NotFound:
            return None
        return to_bookkeeping(stored)

    async def write(self, root: RootRef, book: Book) -> None:
        """Make the status say what the book says, creating the object where there is none.

        Args:
            root: with its uid.
            book: with the name and resourceVersion of the object that it was read from; with
                neither, the object is created.

        Raises:
            NoBooks: there is nowhere to write it.
            ClusterError: `Conflict` where the object changed or was created meanwhile, or no
                usable answer.
        """
        if book.object_name:
            await self.turn()
            try:
                await self.write_now(root, book)
            except NotFound:  # somebody deleted it: what we know of the workload is still true
                pass
            else:
                return
        made = (await self.create(root)).book
        named = replace(book, object_name=made.object_name, resource_version=made.resource_version)
        await self.turn()
        await self.write_now(root, named)

    async def write_now(self, root: RootRef, book: Book) -> str:
        """Patch the status without waiting for a turn; the object must exist.

        Returns:
            The resourceVersion that the object has now.

        Raises:
            ClusterError: `Conflict`, `NotFound`, or no usable answer.
        """
        answer = await self._client.patch(
            GPUWORKLOADS,
            book.object_name,
            status_patch(book),
            namespace=root.namespace,
            subresource="status",
        )
        return msgspec.json.decode(answer, type=Bare).metadata.resource_version

    async def create(self, root: RootRef) -> Bookkeeping:
        """Create the root's GPUWorkload, owned by the root, with a blank book.

        Raises:
            NoBooks: there is nowhere to create it.
            ActionRefused: something else has its name.
            ClusterError: `Conflict` where there is one already, or no usable answer.
        """
        if self._missing_until is not None and self._clock.now() < self._missing_until:
            raise NoBooks(NO_KIND)
        await self.turn()
        try:
            answer = await self._client.create(
                GPUWORKLOADS, manifest_for(root, self._resource_of(root)), namespace=root.namespace
            )
        except NotFound as error:
            raise await self._nowhere(root) from error
        except Conflict as conflict:
            if await self._is_strange(root):
                raise ActionRefused(_stranger(root)) from conflict
            raise
        self._missing_until = None
        meta = msgspec.json.decode(answer, type=Bare).metadata
        blank = Book(object_name=meta.name, resource_version=meta.resource_version)
        return Bookkeeping(root=root, book=blank)

    def _resource_of(self, root: RootRef) -> Resource | None:
        lever = self._levers.find(root.kind, root.group)
        return lever.resource if lever else None

    async def _is_strange(self, root: RootRef) -> bool:
        """Whether the object of our name is about something else; else it is just newer than us."""
        try:
            stored = await self._client.get(
                GPUWORKLOADS, name_for(root), namespace=root.namespace, decode=GPUWorkload
            )
        except NotFound:
            return False
        found = to_bookkeeping(stored)
        return found is None or found.root.uid != root.uid

    async def _nowhere(self, root: RootRef) -> NoBooks:
        """Return which of the two is missing: both are the same 404 to a creation."""
        try:
            await self._client.get(NAMESPACES, root.namespace, decode=Bare)
        except NotFound:
            return NoBooks(f"namespace {root.namespace} does not exist any more")
        self._missing_until = self._clock.now() + RETRY_AFTER_SECONDS
        return NoBooks(NO_KIND)


def _stranger(root: RootRef) -> str:
    name = name_for(root)
    return (
        f"GPUWorkload {name} is about another object, so nothing can be remembered of {root.ref}; "
        f"delete it with: kubectl delete gpw {name} -n {root.namespace}"
    )

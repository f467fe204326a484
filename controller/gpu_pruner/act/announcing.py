"""The book around an act: what it must say before one, and what it is told after.

Answers whether the GPUWorkload is ground for a pause, writes `Pausing` before anything is changed,
takes that back where nothing was, and tells of a person's restore. Called by `act.actor` and
`act.servers`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_pruner.act.books import ClusterBook
from gpu_pruner.act.checks import untold
from gpu_pruner.act.pause_record import MAX_BY, MAX_WHY
from gpu_pruner.errors import ActionRefused, ClusterError, Conflict
from gpu_pruner.model.book import Book, PauseRecord, Phase
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import RootRef

CONTROLLER = "gpu-pruner"
"""Who orders what no person ordered; its own books are written by `loop`."""


@dataclass(frozen=True, slots=True)
class Announcer:
    """Reads and writes the book of one act after the other."""

    books: ClusterBook

    async def current(self, root: RootRef, decided_on: Book | None) -> Book | None:
        """Return the live book; None where a person's order finds none.

        Args:
            root: with the uid of the live object.
            decided_on: what the decision was made on; None for a person's order.

        Raises:
            ActionRefused: it does not say that anybody was warned.
            Conflict: the GPUWorkload is not the one that the decision was made on.
        """
        name = decided_on.object_name if decided_on else ""
        found = await self.books.read(root, object_name=name)
        if found is None:
            if decided_on is None:
                return None
            raise Conflict("its GPUWorkload was deleted")
        if found.root.uid != root.uid:
            raise ActionRefused(f"GPUWorkload {found.book.object_name} is about another object")
        if decided_on is None:
            return found.book
        version = decided_on.resource_version
        if version and version != found.book.resource_version:
            raise Conflict("its GPUWorkload changed since the decision")
        if problem := untold(found.book):
            raise ActionRefused(problem)
        return found.book

    async def announce(self, root: RootRef, current: Book | None, record: PauseRecord) -> Book:
        """Write Pausing into the book, before anything is changed.

        Returns:
            What the book said before, as it can be written again.

        Raises:
            NoBooks: there is nowhere to write it.
            ClusterError: `Conflict` where it changed meanwhile, or no usable answer.
        """
        known = current or (await self.books.create(root)).book
        await self.books.turn()
        pausing = replace(
            known,
            phase=Phase.PAUSING,
            reason=Reason.PAUSING.value,
            message=record.why,
            paused_at=record.at,
            pause=record,
        )
        version = await self.books.write_now(root, pausing)
        return replace(known, resource_version=version)

    async def withdraw(self, root: RootRef, before: Book) -> None:
        """Make the book say again what it said before: nothing was changed after all.

        Where that fails, the next cycle finds that the pause never arrived.
        """
        try:
            await self.books.write_now(root, before)
        except ClusterError:
            return

    async def note_restore(self, root: RootRef, book: Book | None, *, by: str, why: str) -> str:
        """Tell the controller of a person's restore; the restore stands even if that fails.

        Returns:
            What a person has to know.
        """
        if by == CONTROLLER or book is None or book.phase not in {Phase.PAUSING, Phase.PAUSED}:
            return ""
        restoring = replace(
            book,
            phase=Phase.RESTORING,
            reason=Reason.RESTORING.value,
            message=f"Restored by {by[:MAX_BY]}: {why[:MAX_WHY]}",
        )
        try:
            await self.books.turn()
            await self.books.write_now(root, restoring)
        except ClusterError as error:
            return f"; its GPUWorkload could not be told: {error}"
        return ""

"""Who keeps the books: the cluster (GPUWorkload objects), or memory where nothing may be written.

Both give back a view whose books are at least as new as the last write, because a watch may lag
behind our own patch and a decision on an old book would warn twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from gpu_pruner.loop.ports import Actor
from gpu_pruner.model.book import Book
from gpu_pruner.model.cluster import Bookkeeping, ClusterView
from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.workload import RootRef

MOST_LOOKS = 4
"""Views in which a new object may be missing before it counts as deleted: two cycles."""


class Books(Protocol):
    """Remembers what was decided of each workload."""

    def applied_to(self, view: ClusterView) -> ClusterView:
        """Return the view with the newest books that are known here."""
        ...

    async def write(self, decision: Decision, book: Book) -> Outcome:
        """Remember this book for the decision's root."""
        ...

    def forget(self, root: RootRef) -> None:
        """Believe the watch alone again: what we thought to know of this root was refused."""
        ...


@dataclass(frozen=True, slots=True)
class _Unseen:
    """A write of ours that the watch has not shown yet."""

    based_on: str
    """Resource version that was watched before the write; empty where there was no object."""
    written: Bookkeeping
    looks: int = 0
    """How many views went by without it."""

    def is_over(self, watched: Bookkeeping | None) -> bool:
        """Whether the watch knows better: it shows a newer object, or that it was deleted.

        An object that was just created may be missing in a view or two. If it stays missing, it
        was deleted before it was ever seen, and who deletes it wants us to forget.
        """
        if watched is not None:
            return watched.book.resource_version != self.based_on
        return bool(self.based_on) or self.looks >= MOST_LOOKS


@dataclass(slots=True)
class ClusterBooks:
    """Books in GPUWorkload objects; what we wrote counts until the watch shows a newer object."""

    actor: Actor
    _unseen: dict[str, _Unseen] = field(default_factory=dict)
    """By root uid."""

    def applied_to(self, view: ClusterView) -> ClusterView:
        """Lay our own unseen writes over the watched books."""
        books = dict(view.books)
        for uid, unseen in list(self._unseen.items()):
            watched = books.get(uid)
            if unseen.is_over(watched) or uid not in view.owners:
                del self._unseen[uid]
                continue
            written = unseen.written
            books[uid] = written if watched is None else replace(watched, book=written.book)
            self._unseen[uid] = replace(unseen, looks=unseen.looks + 1)
        return replace(view, books=books)

    async def write(self, decision: Decision, book: Book) -> Outcome:
        """Write the status and note it until the watch has caught up."""
        outcome = await self.actor.write_book(decision, book)
        if outcome.result is Result.DONE:
            root, based_on = decision.workload.root, decision.workload.book.resource_version
            self._unseen[root.uid] = _Unseen(based_on, Bookkeeping(root=root, book=book))
        elif outcome.result is Result.CONFLICT:
            self.forget(decision.workload.root)
        return outcome

    def forget(self, root: RootRef) -> None:
        """Drop our own unseen write."""
        self._unseen.pop(root.uid, None)


@dataclass(slots=True)
class MemoryBooks:
    """Books for a dry run that must write nothing, or has no GPUWorkload kind to write to.

    An onlooker does not void the warnings that a controller gave in another mode: it tells them.
    """

    onlooker_in: Mode | None = None
    """Mode of a look that changes nothing; None: these are the controller's own books."""
    _books: dict[str, Bookkeeping] = field(default_factory=dict)

    def applied_to(self, view: ClusterView) -> ClusterView:
        """Lay the remembered books over the view; people's intent in it stays."""
        books = {uid: self._as_given(one) for uid, one in view.books.items()}
        for uid, kept in list(self._books.items()):
            watched = books.get(uid)
            books[uid] = replace(kept, intent=watched.intent) if watched is not None else kept
        return replace(view, books=books)

    async def write(self, decision: Decision, book: Book) -> Outcome:
        """Remember; always done."""
        root = decision.workload.root
        self._books[root.uid] = Bookkeeping(root=root, book=book)
        return Outcome(root=root, action="remember", result=Result.DRY_RUN)

    def forget(self, root: RootRef) -> None:
        """Keep what is remembered: there is no other memory."""

    def _as_given(self, one: Bookkeeping) -> Bookkeeping:
        if self.onlooker_in is None or not one.book.warned_mode:
            return one
        return replace(one, book=replace(one.book, warned_mode=self.onlooker_in.value))

from __future__ import annotations

from gpu_pruner.loop.books import MOST_LOOKS, ClusterBooks, MemoryBooks
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.cluster import Bookkeeping, ClusterView
from gpu_pruner.model.orders import Outcome, Result
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.snapshot import Workload
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import Intent, OwnerObject, RootRef

ROOT = RootRef(kind="Deployment", namespace="team-a", name="train", group="apps", uid="u1")
OWNER = OwnerObject(root=ROOT)
WARNED = Book(phase=Phase.WARNED, warned_at=100.0)


class Writer:
    def __init__(self, result=Result.DONE):
        self.result = result

    async def write_book(self, decision, book):
        return Outcome(root=decision.workload.root, action="write-book", result=self.result)


def decision(book: Book) -> Decision:
    return Decision(
        workload=Workload(root=ROOT, owner=OWNER, book=book),
        verdict=Verdict.IDLE,
        reason=Reason.WARNING,
        message="",
        book=WARNED,
    )


def view(book: Book | None, intent: Intent = Intent()) -> ClusterView:
    books = {} if book is None else {"u1": Bookkeeping(root=ROOT, book=book, intent=intent)}
    return ClusterView(owners={"u1": OWNER}, books=books)


async def test_our_own_write_counts_until_the_watch_shows_a_newer_object():
    books = ClusterBooks(Writer())
    old = Book(phase=Phase.NOMINATED, resource_version="5")
    await books.write(decision(old), WARNED)
    lagging = books.applied_to(view(old, Intent(exempt=True))).books["u1"]
    assert lagging.book.phase is Phase.WARNED
    assert lagging.intent.exempt, "what people want is never hidden by our own memory"
    newer = Book(phase=Phase.NOMINATED, resource_version="7")
    assert books.applied_to(view(newer)).books["u1"].book is newer
    assert books.applied_to(view(old)).books["u1"].book is old, "forgotten once it was seen"


async def test_a_first_write_counts_although_the_object_is_not_seen_yet():
    books = ClusterBooks(Writer())
    await books.write(decision(Book()), WARNED)
    assert books.applied_to(view(None)).books["u1"].book.phase is Phase.WARNED


async def test_a_write_for_a_root_that_is_gone_is_forgotten():
    books = ClusterBooks(Writer())
    await books.write(decision(Book()), WARNED)
    assert not books.applied_to(ClusterView()).books


async def test_a_write_that_failed_does_not_count():
    books = ClusterBooks(Writer(Result.CONFLICT))
    await books.write(decision(Book()), WARNED)
    assert not books.applied_to(view(None)).books


async def test_memory_keeps_books_and_lets_intent_through():
    books = MemoryBooks()
    await books.write(decision(Book()), WARNED)
    seen = books.applied_to(view(Book(), Intent(exempt=True))).books["u1"]
    assert (seen.book, seen.intent.exempt) == (WARNED, True)


async def test_a_book_that_somebody_deletes_after_our_write_is_forgotten():
    books = ClusterBooks(Writer())
    await books.write(decision(Book(phase=Phase.NOMINATED, resource_version="5")), WARNED)
    assert not books.applied_to(view(None)).books


async def test_a_new_object_that_stays_unseen_was_deleted():
    books = ClusterBooks(Writer())
    await books.write(decision(Book()), WARNED)
    seen = [bool(books.applied_to(view(None)).books) for _ in range(MOST_LOOKS + 1)]
    assert seen == [True] * MOST_LOOKS + [False]


async def test_what_an_order_was_refused_on_is_forgotten():
    books = ClusterBooks(Writer())
    await books.write(decision(Book()), WARNED)
    books.forget(ROOT)
    assert not books.applied_to(view(None)).books

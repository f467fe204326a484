"""Alerts that stay open in a channel until somebody closes them, and when to close them.

What is open stands in the book, so that it is closed after a restart, too, and is tried again in
every cycle until the channel confirms. Of a workload that was deleted with its book only this
process knows. Called by `loop.execution`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.letters import Letter
from gpu_pruner.model.orders import CLOSING, Delivery, MessageKind
from gpu_pruner.model.plan import Plan
from gpu_pruner.model.workload import RootRef

_OVER = frozenset({Phase.WATCHING, Phase.PAUSED, Phase.RESTORING})
"""Phases in which nobody has to do anything about an idle workload any more."""


def is_over(book: Book) -> bool:
    """Return whether the matter that people were warned of has ended."""
    return book.phase in _OVER


def noted(book: Book, deliveries: Iterable[Delivery]) -> Book:
    """Return a book that says which channels hold an alert open after these messages."""
    alerts_in = book.alerts_in
    for told in deliveries:
        left = tuple(one for one in alerts_in if one not in told.holding)
        alerts_in = left if told.kind in CLOSING else (*left, *told.holding)
    return book if set(alerts_in) == set(book.alerts_in) else replace(book, alerts_in=alerts_in)


@dataclass(slots=True)
class Alerts:
    """What is open of workloads that may be gone in the next cycle."""

    _open: dict[RootRef, tuple[str, ...]] = field(default_factory=dict)

    def of_the_gone(self, plan: Plan) -> Iterator[Letter]:
        """Yield the end of every alert whose workload is not in the plan any more."""
        there = {one.workload.root for one in plan.decisions}
        for root, alerts_in in self._open.items():
            if root not in there:
                kind, only = MessageKind.CANCELLED, frozenset(alerts_in)
                yield Letter(root=root, kind=kind, decision=None, only=only)

    def remember(self, plan: Plan, deliveries: Iterable[Delivery]) -> None:
        """Note what is open after a cycle's messages."""
        told: dict[RootRef, list[Delivery]] = {}
        for one in deliveries:
            told.setdefault(one.root, []).append(one)
        books = {root: Book(alerts_in=alerts_in) for root, alerts_in in self._open.items()}
        books |= {one.workload.root: one.book for one in plan.decisions}
        after = ((root, noted(book, told.get(root, ()))) for root, book in books.items())
        self._open = {root: book.alerts_in for root, book in after if book.alerts_in}

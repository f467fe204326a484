"""How much may be paused, and when the next slot is free.

It answers two questions: which deadline a new warning gets, and whether a workload that is due may
go in this cycle. It counts from the books alone, so that a restart forgets nothing. It never looks
at evidence. `plan` makes one `Budget` per plan.

A slot is one cycle long. A slot, like a cycle, always has room for one workload of any size.

Source: ARCHITECTURE section 6, budget.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil

from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.snapshot import Snapshot, Workload
from gpu_pruner.model.units import HOUR, Timestamp


@dataclass(slots=True)
class _Load:
    """What one slot, or this cycle, carries already."""

    workloads: int = 0
    gpus: int = 0
    namespaces: Counter[str] = field(default_factory=Counter)

    def add(self, workload: Workload) -> None:
        self.workloads += 1
        self.gpus += size(workload)
        self.namespaces[workload.root.namespace] += 1


_EMPTY = _Load()


def size(workload: Workload) -> int:
    """Return how many GPUs a workload holds, or held when its book was written."""
    return workload.gpus or workload.book.gpus


class Budget:
    """The room that is left. Every answer that grants something takes it."""

    def __init__(self, snapshot: Snapshot, rules: Rules) -> None:
        """Count what the books of a snapshot have reserved and used."""
        self._rules = rules
        self._now = snapshot.now
        self._gpu_limit = rules.budget_gpu_ratio_per_cycle * snapshot.allocated_gpus
        self._hour_limit = max(
            rules.budget_per_hour, int(rules.budget_ratio_per_hour * len(snapshot.workloads))
        )
        self._cycle = _Load()
        self._slots: dict[int, _Load] = {}
        self._open_by_size: dict[int, int] = {}
        self._open_by_namespace: dict[str, int] = {}
        self._acts_last_hour = 0
        self._times: list[Timestamp] = []
        self._count(snapshot.workloads)

    def _count(self, workloads: Iterable[Workload]) -> None:
        for workload in workloads:
            book = workload.book
            if workload.warn_only:
                continue
            if book.paused_at is not None and self._now - HOUR < book.paused_at <= self._now:
                self._acts_last_hour += 1
                self._times.append(book.paused_at)
            due = _due(book, self._now)
            if due is not None:
                self._times.append(due)
                if due >= self._now:
                    self._slot(due).add(workload)
        self._times.sort()

    def _slot(self, moment: Timestamp) -> _Load:
        return self._slots.setdefault(self._number(moment), _Load())

    def _number(self, moment: Timestamp) -> int:
        return int(moment // self._rules.cycle_seconds)

    def _moment(self, number: int, *, earliest: Timestamp) -> Timestamp:
        """Return when a slot begins for us, to the second: books are written to the second."""
        return float(ceil(max(earliest, number * self._rules.cycle_seconds)))

    def admit(self, workload: Workload) -> bool:
        """Whether a workload that is due may be paused in this cycle; if so, count it."""
        if not self._has_room(self._cycle, workload):
            return False
        if self._acts_last_hour + self._cycle.workloads >= self._hour_limit:
            return False
        self._cycle.add(workload)
        return True

    def reserve(self, workload: Workload, *, earliest: Timestamp) -> Timestamp:
        """Return the deadline of a new warning, and keep its place.

        Args:
            workload: that is being warned.
            earliest: now plus the notice, Unix seconds; the same for every call of one plan.

        Returns:
            The first moment at or after `earliest` whose slot and hour have room.
        """
        first, gpus, namespace = self._number(earliest), size(workload), workload.root.namespace
        by_size = max(first, self._open_by_size.get(gpus, first))
        by_namespace = max(first, self._open_by_namespace.get(namespace, first))
        number = max(by_size, by_namespace)
        while True:
            moment = self._moment(number, earliest=earliest)
            load = self._slots.get(number, _EMPTY)
            crowded = not (self._takes(load, gpus) and self._hour_has_room(moment))
            if crowded and number == by_size:
                by_size += 1
            taken = not self._takes_namespace(load, namespace)
            if taken and number == by_namespace:
                by_namespace += 1
            if not crowded and not taken:
                break
            number += 1
        self._open_by_size[gpus], self._open_by_namespace[namespace] = by_size, by_namespace
        self._slot(moment).add(workload)
        insort(self._times, moment)
        return moment

    def _has_room(self, load: _Load, workload: Workload) -> bool:
        return self._takes(load, size(workload)) and self._takes_namespace(
            load, workload.root.namespace
        )

    def _takes(self, load: _Load, gpus: int) -> bool:
        """Whether a slot has room for one more workload of this size."""
        if not load.workloads:
            return True
        few = load.workloads < self._rules.budget_workloads_per_cycle
        return few and load.gpus + gpus <= self._gpu_limit

    def _takes_namespace(self, load: _Load, namespace: str) -> bool:
        return load.namespaces[namespace] < self._rules.budget_per_namespace_per_cycle

    def _hour_has_room(self, moment: Timestamp) -> bool:
        """Whether one more at this moment leaves every hour around it within the limit."""
        times, limit = self._times, self._hour_limit
        place = bisect_right(times, moment)

        def at(index: int) -> Timestamp:
            if index == place:
                return moment
            return times[index] if index < place else times[index - 1]

        last = len(times) - limit
        return all(
            at(begin + limit) - at(begin) >= HOUR
            for begin in range(max(0, place - limit), min(place, last) + 1)
        )


def _due(book: Book, now: Timestamp) -> Timestamp | None:
    """Return when a warned workload is due as things stand, or fell due in a rehearsal."""
    if book.pause_at is None:
        return None
    if book.phase is Phase.WOULD_PAUSE:
        return book.pause_at if book.pause_at > now - HOUR else None
    if book.phase is not Phase.WARNED:
        return None
    frozen = 0.0 if book.frozen_since is None else max(0.0, now - book.frozen_since)
    return max(now, book.pause_at + frozen)

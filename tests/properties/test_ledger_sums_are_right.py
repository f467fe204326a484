"""The GPU hours of the ledger are what one counts by hand from the same cycles."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledgers import A100, H100, a_keeper, cycle, holding, rows
from support.manual_clock import NOON

from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.model.workload import RootRef
from gpu_pruner.settings.ledger import LedgerSettings

ROOTS = tuple(
    RootRef("Deployment", f"team-{n % 2}", f"server-{n}", "apps", f"uid-{n}") for n in range(3)
)


@dataclass(frozen=True)
class Look:
    """One cycle: the minutes since the one before, and what became of it."""

    minutes: int
    held: tuple[tuple[int, str, str], ...]
    """For each root the GPUs, the model, and the state."""
    leading: bool
    failed: bool
    restarted: bool
    away: bool


STATES = ("active", "idle", "unknown", "paused")
held = st.tuples(st.integers(0, 3), st.sampled_from((H100, A100, "")), st.sampled_from(STATES))
looks = st.builds(
    Look,
    minutes=st.sampled_from((1, 1, 1, 7, 45, 60, 61, 300)),
    held=st.tuples(held, held, held),
    leading=st.integers(0, 5).map(bool),
    failed=st.integers(0, 5).map(lambda n: n == 0),
    restarted=st.integers(0, 5).map(lambda n: n == 0),
    away=st.integers(0, 3).map(lambda n: n == 0),
)


def decided(root: RootRef, gpus: int, model: str, state: str) -> Decision:
    if state != "paused":
        return holding(root, gpus, model=model, verdict=Verdict(state))
    book = Book(phase=Phase.PAUSED, gpus=gpus)
    return replace_book(holding(root, 0), book)


def replace_book(decision: Decision, book: Book) -> Decision:
    from msgspec import structs  # noqa: PLC0415 - beside its only use

    return structs.replace(
        decision, book=book, workload=replace(decision.workload, pods=(), book=book), findings=()
    )


def counted_by_hand(story: list[Look]) -> Counter[tuple[int, str, str, str]]:
    """Count minute by minute: (hour, root, model, state) to GPU minutes."""
    sums: Counter[tuple[int, str, str, str]] = Counter()
    now, known = 0, False
    for look in story:
        begin, now = now, now + look.minutes
        known = known and not look.restarted
        if known and look.leading and not look.failed and look.minutes <= 60:
            for minute in range(begin, now):
                hour = minute // 60
                for root, (gpus, model, state) in zip(ROOTS, look.held, strict=True):
                    key = (hour, root.uid, "" if state == "paused" else model, state)
                    sums[key] += gpus
        known = look.leading
    return +sums


@settings(max_examples=15)
@given(st.lists(looks, min_size=2, max_size=8))
def test_ledger_sums_are_what_one_counts_by_hand(story: list[Look]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        kept = LedgerSettings(directory=Path(directory))
        _keep(kept, story)
        found = Counter(
            {
                (
                    int((one["hour"] - NOON) // 3600),
                    one["root_uid"],
                    one["model"],
                    one["state"],
                ): one["seconds"] / 60
                for one in rows(kept, "gpu_time")
            }
        )
    assert found == counted_by_hand(story)


def _keep(kept: LedgerSettings, story: list[Look]) -> None:
    process, now = 0, NOON
    keeper = a_keeper(kept, "0")
    keeper.settle(now=NOON)
    there = keeper._database
    for number, look in enumerate(story, start=1):
        now += 60 * look.minutes
        if look.restarted:
            process += 1
            keeper = a_keeper(kept, str(process))
            there = keeper._database
        away = LedgerSettings.model_validate({"dsn": f"sqlite:///{kept.directory}/missing/x"})
        keeper._database = type(there)(away) if look.away else there
        decisions = [decided(root, *one) for root, one in zip(ROOTS, look.held, strict=True)]
        report = replace(cycle(*decisions, at=now, number=number), leading=look.leading)
        keeper.take(replace(report, plan=None, failure="away") if look.failed else report)
    keeper._database = there
    keeper.settle(now=now + 60)
    assert keeper.state.backlog == 0

from __future__ import annotations

import pytest
from support.manual_clock import NOON

from gpu_pruner.observe.scrape import next_round


@pytest.mark.parametrize(
    ("now", "due"),
    [
        (NOON + 2, NOON + 30),
        (NOON + 30, NOON + 30),
        (NOON + 95, NOON + 95),
        (NOON - 3600, NOON - 3570),
    ],
    ids=["on the grid", "just in time", "late", "clock set back"],
)
def test_the_next_round_is_never_more_than_an_interval_away(now: float, due: float) -> None:
    assert next_round(NOON, now=now, interval=30.0) == due

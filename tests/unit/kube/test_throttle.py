"""Requests are held down to a rate, and attempts spread out."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from gpu_pruner.kube.throttle import Pace, TokenBucket


@dataclass
class Time:
    at: float = 0.0
    waits: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


async def test_a_burst_passes_and_the_rest_waits_its_turn() -> None:
    time = Time()
    bucket = TokenBucket(per_second=2, burst=3, sleep=time.sleep, monotonic=time.monotonic)
    for _ in range(5):
        await bucket.take()
    assert time.waits == [0.5, 1.0]


async def test_the_bucket_fills_up_to_the_burst_and_no_further() -> None:
    time = Time()
    bucket = TokenBucket(per_second=2, burst=3, sleep=time.sleep, monotonic=time.monotonic)
    for _ in range(3):
        await bucket.take()
    time.at = 3600.0
    for _ in range(4):
        await bucket.take()
    assert time.waits == [0.5]


@pytest.mark.parametrize(("failures", "wait"), [(1, 0.5), (2, 1.0), (7, 30.0), (10_000, 30.0)])
def test_waits_double_up_to_a_limit(failures: int, wait: float) -> None:
    assert Pace(jitter=lambda: 1.0).failure(failures) == wait
    assert Pace(jitter=lambda: 0.0).failure(failures) == wait / 2


def test_the_server_may_ask_for_more_but_not_for_less() -> None:
    pace = Pace(jitter=lambda: 1.0)
    assert pace.failure(1, at_least=9.0) == 9.0
    assert pace.failure(7, at_least=9.0) == 30.0

"""The race's promises: nothing is wrongly paused, and honest telemetry leaves nothing unfound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from race.cluster import World
from race.contest import Result, make
from race.lies import LIES
from race.table import LOOSE, OURS, PLAIN, STRICT, Results, contest, lines

pytestmark = pytest.mark.prometheus

ALL = range(100)
FEW = range(8)
ALLOWED = 0.02
"""Share of idle workloads that may be missed, and of all workloads that may be unknown, where the
telemetry is honest."""


def by_seed(results: Sequence[Result]) -> Mapping[int, tuple[str, ...]]:
    return {one.world.seed: one.wrong for one in results if one.wrong}


def assert_promises(results: Results) -> None:
    table = "\n".join(lines(results))
    strict = results[OURS, STRICT]
    assert not by_seed(strict), table
    assert not by_seed(results[OURS, LOOSE]), table
    healthy = [one for one in strict if one.world.healthy]
    idle = sum(one.idle for one in healthy)
    workloads = sum(len(one.world.workloads) for one in healthy)
    assert sum(len(one.missed) for one in healthy) <= ALLOWED * idle, table
    assert sum(len(one.unknown) for one in healthy) <= ALLOWED * workloads, table
    assert by_seed(results[PLAIN, STRICT]), "a race that the plain rule survives shows nothing"


def assert_it_is_a_race(worlds: Sequence[World]) -> None:
    workloads = [one for world in worlds for one in world.workloads]
    idle = [
        one
        for world in worlds
        for one in world.workloads
        if one.must_be_found(world.times.end, threshold=STRICT)
    ]
    spans = [span for one in workloads for gpu in one.gpus for span in gpu.work]
    assert sum(world.healthy for world in worlds) >= 0.4 * len(worlds)
    assert len(idle) >= 0.3 * len(workloads)
    assert sum(0.002 <= span.engine <= 0.009 for span in spans) >= len(worlds) / 2
    assert len({one.lie for one in workloads if one.lie}) >= min(len(LIES), len(worlds))


@pytest.mark.timeout(300)
async def test_a_few_worlds_end_without_a_wrong_pause(tmp_path: Path) -> None:
    results = await contest(tmp_path, FEW)
    assert_promises(results)
    assert_it_is_a_race([one.world for one in results[OURS, STRICT]])


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_a_hundred_worlds_end_without_a_wrong_pause(tmp_path: Path) -> None:
    results = await contest(tmp_path, ALL)
    assert_promises(results)
    assert_it_is_a_race([one.world for one in results[OURS, STRICT]])


def test_a_world_is_its_seed() -> None:
    one, other = (make(7, 7200.0 * 1000) for _ in range(2))
    assert one.histories() == other.histories()
    assert one.histories() != make(8, 7200.0 * 1000).histories()

"""Worlds whose telemetry tells the truth: workloads of all sorts, and what daily life does to them.

Exporters restart, targets are scraped twice, a label changes its name, some GPUs give no profiling
metrics and some are sliced. None of this is a lie, and none of it may hide an idle workload.
"""

from __future__ import annotations

from random import Random

from race.cluster import Behaviour, Maker
from race.telemetry import Strip, relabelled
from race.truth import (
    MINUTE,
    bursty,
    busy,
    copying,
    early,
    encoding,
    idle,
    light,
    recent,
    woke,
)

WEIGHTS: dict[Behaviour, int] = {
    idle: 38,
    early: 7,
    busy: 14,
    light: 13,
    bursty: 10,
    recent: 6,
    encoding: 5,
    copying: 3,
    woke: 4,
}
COARSE: dict[Behaviour, int] = {idle: 40, early: 8, busy: 30, recent: 12, encoding: 10}
"""Where only utilisation is exported: what it can show. The rest is a lie of its own."""


def populate(maker: Maker, count: int) -> None:
    """Add honest workloads, one of them sliced in some worlds."""
    rng = maker.rng
    weights = WEIGHTS if maker.profiling else COARSE
    for _ in range(count):
        (behaviour,) = rng.choices(list(weights), list(weights.values()))
        maker.workload(_pods(rng, behaviour))
    if maker.profiling and rng.random() < 0.4:
        maker.workload([[rng.choice((idle, busy, light))]], slices=("1",))
        maker.workload([[idle, rng.choice((idle, bursty))]], slices=("1", "2"))
    maker.stranger((), maker.name("node"))


def _pods(rng: Random, behaviour: Behaviour) -> list[list[Behaviour]]:
    """Return a workload's pods: often only one GPU, or one pod, does what the workload does."""
    shape = rng.choices([(1, 1), (1, 2), (1, 4), (2, 1), (3, 1)], [45, 20, 10, 15, 10])[0]
    pods = [[behaviour] * shape[1] for _ in range(shape[0])]
    if behaviour in {busy, light, bursty, woke} and rng.random() < 0.5:
        rest = rng.randrange(shape[0]), rng.randrange(shape[1])
        pods = [
            [behaviour if (pod, gpu) == rest else idle for gpu in range(shape[1])]
            for pod in range(shape[0])
        ]
    return pods


def live_a_day(maker: Maker) -> None:
    """Let some nodes have what every cluster has now and then."""
    rng = maker.rng
    if rng.random() < 0.5:
        cut = maker.times.end - rng.uniform(4, 60) * MINUTE
        gap = rng.uniform(20, 75)
        everywhere(maker, lambda strip: _restarted(strip, cut, gap), chance=0.5)
    if rng.random() < 0.3:
        everywhere(maker, _scraped_twice, chance=1.0)
    if rng.random() < 0.3:
        cut = maker.times.end - rng.uniform(4, 60) * MINUTE
        everywhere(maker, lambda strip: _renamed(strip, cut), chance=1.0)


def everywhere(maker: Maker, change: object, *, chance: float) -> None:
    """Replace the strips of some workloads by what a change makes of them."""
    assert callable(change)
    for workload in maker.workloads:
        if maker.rng.random() < chance:
            for gpu in workload.gpus:
                gpu.strips = [new for strip in gpu.strips for new in change(strip)]


def _restarted(strip: Strip, cut: float, gap: float) -> list[Strip]:
    before = strip.keep(lambda at: at <= cut)
    after = strip.keep(lambda at: at > cut + gap)
    after.target = {**after.target, "instance": "10.0.0.2:9400", "pod": "exporter-y"}
    return [before, after]


def _scraped_twice(strip: Strip) -> list[Strip]:
    again = strip.keep(lambda _: True)
    again.target = {**again.target, "instance": "10.0.0.9:9400"}
    return [strip, again]


def _renamed(strip: Strip, cut: float) -> list[Strip]:
    name = strip.labels.get("Hostname", "")
    return relabelled(strip, {"Hostname": "", "hostname": name}, cut, 1e12)

"""The race itself: worlds in one real Prometheus, the contestants over it, and who was right.

Every world has two hours of the server's time for itself, so that no world sees another. Ours is
the product's own cycle, five in a row. The plain rule is one PromQL query, asked once at the end:
a GPU series whose peak stayed below the threshold convicts its workload, if the pod is old enough.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import urlencode
from urllib.request import urlopen

from race.cluster import Maker, World
from race.honest import live_a_day, populate
from race.lies import LIES
from race.truth import MINUTE, SETTLE, WINDOW, Times
from support.prometheus import PrometheusServer, backfill, openmetrics
from support.worlds import ENGINE, UTIL, Line, unhurried_rules, view_of

from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.settings.schema import PrometheusSettings

SLOT = 7200.0
"""A world's share of the server's time: one block of its storage."""
HISTORY = 113 * MINUTE
CYCLES = 5
LATE = 6.0
"""Seconds after a whole minute at which a cycle runs."""
LIES_PER_WORLD = 5


def make(seed: int, end: float) -> World:
    """Return the world of a seed; every second one is healthy."""
    rng = Random(seed)  # noqa: S311 - a seeded race
    scrape = rng.choice((15.0, 30.0, 30.0, 60.0))
    times = Times(end - HISTORY, end, max(30.0, scrape))
    healthy = seed % 2 == 0
    maker = Maker(seed, times, scrape, rng, profiling=rng.random() < 0.85)
    populate(maker, rng.randint(8, 11) if healthy else 6)
    if not healthy:
        maker.profiling = True
        for lie in rng.sample(LIES, LIES_PER_WORLD):
            lie(maker)
    live_a_day(maker)
    return World(
        seed=seed,
        times=times,
        honor_labels=rng.random() < 0.3,
        healthy=healthy,
        workloads=maker.workloads,
        strangers=maker.strangers,
        sharing=maker.sharing,
        scrape=scrape,
    )


@contextmanager
def arena(directory: Path, seeds: Sequence[int]) -> Iterator[tuple[str, list[World]]]:
    """Make the worlds of these seeds and serve their telemetry.

    Yields:
        The server's URL and the worlds.
    """
    last = math.floor(time.time() / SLOT) * SLOT - SLOT
    worlds, data = [], directory / "data"
    for place, seed in enumerate(seeds):
        world = make(seed, last - place * SLOT - 5 * MINUTE)
        data = backfill(openmetrics(world.histories()), directory)
        worlds.append(world)
    blocks = f"{SLOT / 3600:g}h"
    sizes = ("min", "max")
    with PrometheusServer(
        directory / "server",
        data=data,
        arguments=tuple(f"--storage.tsdb.{size}-block-duration={blocks}" for size in sizes),
    ) as server:
        yield server.url, worlds


@dataclass(frozen=True)
class Result:
    """How one contestant did in one world. Workloads are named by `Tenant.ref`."""

    world: World
    threshold: float
    """What counts as work, for the truth."""
    wrong: tuple[str, ...]
    """Paused, although it worked within the window or was too young."""
    missed: tuple[str, ...]
    """Idle for two windows and more, and not paused."""
    unknown: tuple[str, ...] = ()
    told: tuple[tuple[str, str], ...] = ()
    """What was said of each workload at the end, for whoever looks into an exception."""

    @property
    def idle(self) -> int:
        """Return how many workloads had to be found."""
        return sum(
            one.must_be_found(self.world.times.end, threshold=self.threshold)
            for one in self.world.workloads
        )


async def ours(world: World, url: str, *, threshold: float) -> Result:
    """Let the product decide a world."""
    source = PrometheusSource(PrometheusSettings(url=url), clock=SystemClock())
    end = world.times.end
    paused: dict[str, float] = {}

    def view(_: float) -> ClusterView:
        tenants = [one.tenant for one in world.workloads if one.tenant.ref not in line.paused]
        return view_of(tenants, now=end, sharing=world.sharing)

    line = Line(source, view, rules=unhurried_rules(idle_threshold=threshold))
    told, unknown = {}, set()
    try:
        for number in range(CYCLES):
            moment = end - (CYCLES - 1 - number) * MINUTE + LATE
            decisions = await line.run(moment)
            told |= {ref: f"{one.reason.value}: {one.message}" for ref, one in decisions.items()}
            unknown = {ref for ref, one in decisions.items() if one.verdict is Verdict.UNKNOWN}
    finally:
        await source.close()
    paused = {ref: math.floor(at / MINUTE) * MINUTE for ref, at in line.paused.items()}
    return _judged(world, paused, threshold=threshold, unknown=unknown, told=told)


def plain(world: World, url: str, *, threshold: float, rule: float) -> Result:
    """Ask the plain rule about a world.

    Args:
        world: in the server's data.
        url: of the server.
        threshold: what counts as work, for the truth.
        rule: the rule's own threshold.
    """
    end = world.times.end
    prefix = "" if world.honor_labels else "exported_"
    named = f'{{{prefix}pod!=""}}'
    query = (
        f"max by ({prefix}namespace, {prefix}pod, UUID, GPU_I_ID) ("
        f"max_over_time({ENGINE}{named}[35m]) or max_over_time({UTIL}{named}[35m]) / 100"
        f") < {rule}"
    )
    asked = urlencode({"query": query, "time": f"{end:.3f}"})
    with urlopen(f"{url}/api/v1/query?{asked}", timeout=60) as answer:  # noqa: S310 - loopback
        rows = json.load(answer)["data"]["result"]
    convicted = {
        (row["metric"][f"{prefix}namespace"], row["metric"][f"{prefix}pod"]) for row in rows
    }
    paused = {
        one.tenant.ref: end
        for one in world.workloads
        for pod in one.tenant.pods
        if (one.tenant.namespace, pod.name) in convicted
        and end - (pod.created_at or 0.0) >= WINDOW + SETTLE
    }
    return _judged(world, paused, threshold=threshold)


def _judged(
    world: World,
    paused: dict[str, float],
    *,
    threshold: float,
    unknown: set[str] | None = None,
    told: dict[str, str] | None = None,
) -> Result:
    wrong, missed = [], []
    for one in world.workloads:
        ref, at = one.tenant.ref, paused.get(one.tenant.ref)
        if at is not None:
            if not one.is_idle(at, threshold=threshold, poll=world.times.poll):
                wrong.append(ref)
        elif one.must_be_found(world.times.end, threshold=threshold):
            missed.append(ref)
    return Result(
        world=world,
        threshold=threshold,
        wrong=tuple(wrong),
        missed=tuple(missed),
        unknown=tuple(sorted(unknown or ())),
        told=tuple((told or {}).items()),
    )

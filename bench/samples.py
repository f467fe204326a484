"""What questions cost the server: a screen against the whole window, and 8 h against 35 min.

A real Prometheus, back-filled; samples as it counts them itself (`stats=all`). The whole-window
question has the shape that the earlier tool asks in every cycle: the peak of engine activity, or
else utilisation, of each allocated GPU, joined with the nodes' hardware or else without.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

from support.manual_clock import ManualClock
from support.prometheus import PrometheusServer

from bench.figures import Figure, middle
from bench.fleet import END, METRICS, Fleet
from bench.relay import Relay
from gpu_pruner.loop.observation import Observer
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import Period
from gpu_pruner.model.units import HOUR, MINUTE, Seconds
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.settings.schema import PrometheusSettings, Settings

GPUS, FEWER = 10_000, 1_000
SHORT: Seconds = 35 * MINUTE
LONG: Seconds = 8 * HOUR
CANDIDATES = 50
REPEATS = 3
_SLACK: Seconds = 5 * MINUTE


def measure() -> list[Figure]:
    """Back-fill two fleets one after the other, and ask."""
    with tempfile.TemporaryDirectory() as folder:
        wide = _with_server(Path(folder) / "wide", Fleet(gpus=GPUS, seconds=SHORT + _SLACK), _wide)
        long = _with_server(Path(folder) / "long", Fleet(gpus=FEWER, seconds=LONG + _SLACK), _long)
    return [*wide, *long]


def _with_server(
    folder: Path, fleet: Fleet, ask: Callable[[Relay, str, Fleet], Awaitable[list[Figure]]]
) -> list[Figure]:
    data = fleet.stored(folder)
    with PrometheusServer(folder, data=data, arguments=("--query.timeout=2m",)) as server:
        relay = Relay(server.url, counting=True)
        with relay.serving() as url:
            return asyncio.run(_awaited(ask(relay, url, fleet)))


async def _awaited(work: Awaitable[list[Figure]]) -> list[Figure]:
    return await work


async def _wide(relay: Relay, url: str, fleet: Fleet) -> list[Figure]:
    screen = await _steady_screen(relay, url, window=SHORT)
    verify = await verifying(relay, url, fleet, window=SHORT)
    whole = await whole_window(relay, url, joined=True)  # last: the server tidies up after it
    bare = await whole_window(relay, url, joined=False)
    return [
        Figure(
            what=f"samples, {GPUS:,} GPUs, 35 min: the whole window against a screen",
            measured=whole.samples / screen.samples,
            unit="x",
            at_least=20,
            note=f"{whole.samples:,} against {screen.samples:,}, as Prometheus counts them",
        ),
        Figure(
            what="  the same without the join with the nodes' hardware",
            measured=bare.samples / screen.samples,
            unit="x",
            note=f"{bare.samples:,} against {screen.samples:,}",
        ),
        Figure(
            what="  the server's and our time for them, with the join",
            measured=whole.seconds / screen.seconds,
            unit="x",
            note=f"{whole.seconds:.2f} s against {screen.seconds:.2f} s, medians of {REPEATS}",
        ),
        Figure(
            what=f"time, verify of {CANDIDATES} GPUs against the whole window of all {GPUS:,}",
            measured=verify.seconds / whole.seconds,
            unit="x",
            note=f"{verify.seconds * 1000:.0f} ms in {verify.requests} requests against "
            f"{whole.seconds * 1000:.0f} ms; all fields, client's part included",
        ),
        Figure(
            what="  the same in samples",
            measured=verify.samples / whole.samples,
            unit="x",
            at_most=1 / 20,
            note=f"{verify.samples:,} against {whole.samples:,}",
        ),
    ]


async def _long(relay: Relay, url: str, fleet: Fleet) -> list[Figure]:
    short = await _steady_screen(relay, url, window=SHORT)
    long = await _steady_screen(relay, url, window=LONG)
    whole_short = await whole_window(relay, url, joined=True)
    whole_long = await whole_window(relay, url, joined=True, window=LONG)
    return [
        Figure(
            what=f"samples, {fleet.gpus:,} GPUs, a screen with a window of 8 h against 35 min",
            measured=long.samples / short.samples,
            unit="x",
            at_most=1,
            note=f"{long.samples:,} against {short.samples:,}",
        ),
        Figure(
            what="  the whole-window question, 8 h against 35 min",
            measured=whole_long.samples / whole_short.samples,
            unit="x",
            note=f"{whole_long.samples:,} against {whole_short.samples:,}",
        ),
        Figure(
            what=f"samples, {fleet.gpus:,} GPUs, 8 h: the whole window against a screen",
            measured=whole_long.samples / long.samples,
            unit="x",
        ),
    ]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one question took."""

    samples: int
    requests: int
    seconds: Seconds


async def _cost(relay: Relay, ask: Callable[[], Awaitable[object]]) -> Cost:
    """Ask several times; samples are the same each time, the time is a median."""
    costs = []
    for _ in range(REPEATS):
        relay.reset()
        begin = time.perf_counter()
        await ask()
        costs.append(Cost(relay.samples, relay.requests, time.perf_counter() - begin))
    return replace(costs[-1], seconds=middle(one.seconds for one in costs))


async def whole_window(relay: Relay, url: str, *, joined: bool, window: Seconds = SHORT) -> Cost:
    """Ask the earlier tool's kind of question."""
    engine, util, _ = METRICS
    by = "exported_namespace, exported_pod, exported_container, UUID, Hostname, modelName"
    allocated = f'{{exported_pod!=""}}[{window:g}s]'
    peak = f"max_over_time({engine}{allocated}) or max_over_time({util}{allocated}) / 100"
    query = f"(sum by ({by}) ({peak}) < 0.01)"
    if joined:
        hardware = "max by (Hostname, product_name) (node_dmi_info)"
        query = f"{query} * on (Hostname) group_left (product_name) {hardware} or {query}"
    form = urlencode({"query": query, "time": f"{END:.3f}"}).encode()

    def ask() -> None:
        with urlopen(f"{url}/api/v1/query", form) as answer:  # noqa: S310 - our own server
            answer.read()

    return await _cost(relay, lambda: asyncio.to_thread(ask))


async def _steady_screen(relay: Relay, url: str, *, window: Seconds) -> Cost:
    """Run cycles' first verb, from a cold start on; the cost is that of the later ones."""
    clock = ManualClock(END - (REPEATS + 1) * MINUTE)
    source = PrometheusSource(PrometheusSettings(url=url, timeout_seconds=120), clock=clock)
    observer = Observer(source, NoCluster(), _rules(window))

    async def look() -> None:
        seen = await observer.look(clock.now())
        if seen.failure:
            raise RuntimeError(seen.failure)
        await clock.sleep(MINUTE)

    await look()
    cost = await _cost(relay, look)
    await source.close()
    return cost


async def verifying(relay: Relay, url: str, fleet: Fleet, *, window: Seconds) -> Cost:
    """Verify a few candidates, as a cycle does before a warning."""
    clock = ManualClock(END)
    source = PrometheusSource(PrometheusSettings(url=url, timeout_seconds=120), clock=clock)
    period = Period.ending(END, length=window, step_seconds=MINUTE)
    devices = fleet.devices(CANDIDATES)
    cost = await _cost(relay, lambda: source.verify(devices, period))
    await source.close()
    return cost


class NoCluster:
    """A cluster that nobody looks at."""

    def view(self) -> ClusterView:
        """Return an empty view."""
        return ClusterView()


def _rules(window: Seconds) -> Rules:
    return Settings(window_seconds=window).rules()

"""What a screen of 40,000 GPUs costs the controller: CPU, event-loop lag, and memory.

The answers are those of a real Prometheus to the controller's own requests, recorded over several
cycles and then replayed by another process, so that the server's work is not measured with ours.
One cycle here is what `loop` does with telemetry: ask, absorb, and read the judged window.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time

from msgspec import structs
from support.manual_clock import ManualClock
from support.prometheus import PrometheusServer
from typing_extensions import override

from bench.figures import Figure, middle
from bench.fleet import END, Fleet, uuid
from bench.relay import Relay, replaying
from bench.samples import CANDIDATES, NoCluster, verifying, whole_window
from gpu_pruner.cli.collecting import settle
from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.loop.observation import Observer
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import Column, Steps
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.settings.schema import PrometheusSettings, Settings

GPUS = 40_000
CYCLES = 5
"""Measured after one cold start."""

HISTORY: Seconds = (CYCLES + 4) * MINUTE
_BEGIN = END - CYCLES * MINUTE
_BEAT: Seconds = 0.002
_MEGABYTE = 1e6
_PARTS = 10
"""One in so many GPUs is weighed: building all their aged tracks would take gigabytes."""


def measure() -> list[Figure]:
    """Record, then replay for time, then replay for memory."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(gpus=GPUS, seconds=HISTORY)
        data = fleet.stored(Path(folder))
        with PrometheusServer(Path(folder), data=data, arguments=("--query.timeout=2m",)) as server:
            relay = Relay(server.url, counting=False)
            with relay.serving() as url:
                asyncio.run(_Cycles(url).run(CYCLES))
                against_all = asyncio.run(_verify_against_all(relay, url, fleet))
    with replaying(relay.recorded) as url:
        del relay.recorded
        settle()
        cycles = _Cycles(url)
        asyncio.run(cycles.run(CYCLES))
        weight = _weight(url)
    return [*cycles.figures(), weight, against_all]


async def _verify_against_all(relay: Relay, url: str, fleet: Fleet) -> Figure:
    """Compare the verify of a few candidates with one question about the whole window of all."""
    # The few first: after the large question the server tidies its memory for a while.
    few = await verifying(relay, url, fleet, window=HISTORY)
    whole = await whole_window(relay, url, joined=True, window=HISTORY)
    return Figure(
        what=f"time, verify of {CANDIDATES} GPUs against the whole window of all {GPUS:,}",
        measured=few.seconds / whole.seconds,
        unit="x",
        at_most=1 / 20,
        note=f"{few.seconds * 1000:.0f} ms against {whole.seconds * 1000:.0f} ms, client's part "
        f"included; a window of {HISTORY / MINUTE:.0f} minutes, all the history that there is",
    )


@dataclass(slots=True)
class _Cost:
    """What the parts of the cycles after the cold start took."""

    asking: list[Seconds] = field(default_factory=list)
    absorbing: list[Seconds] = field(default_factory=list)
    reading: list[Seconds] = field(default_factory=list)
    lag: list[Seconds] = field(default_factory=list)


class _Source(PrometheusSource):
    """The real source, with its own share of the CPU time told apart."""

    cpu: Seconds = 0.0

    @override
    async def screen(self, *, now: Timestamp, back_to: Timestamp) -> Screen:
        begin = process_time()
        found = await super().screen(now=now, back_to=back_to)
        self.cpu = process_time() - begin
        return found


class _Cycles:
    """Observes as the loop does, and notes what that costs."""

    def __init__(self, url: str) -> None:
        self.cost = _Cost()
        self._clock = ManualClock(_BEGIN)
        settings = PrometheusSettings(url=url, timeout_seconds=120)
        self._source = _Source(settings, clock=self._clock)
        self._observer = Observer(self._source, NoCluster(), _rules())

    async def run(self, cycles: int) -> None:
        """Run one cold start, which is not measured, and so many cycles."""
        await self._look()
        self.cost = _Cost()
        for _ in range(cycles):
            await self._clock.sleep(MINUTE)
            await self._look()
        await self._source.close()

    async def _look(self) -> None:
        now = self._clock.now()
        with _lag() as lag:
            begin = process_time()
            seen = await self._observer.look(now)
            looked = process_time()
            evidence = self._observer.reading(now, honor_labels=None).evidence
            read = process_time()
            await asyncio.sleep(2 * _BEAT)
        if seen.failure or len(evidence) != GPUS:
            raise RuntimeError(seen.failure or f"{len(evidence)} of {GPUS} GPUs seen")
        self.cost.asking.append(self._source.cpu)
        self.cost.absorbing.append(looked - begin - self._source.cpu)
        self.cost.reading.append(read - looked)
        self.cost.lag.append(max(lag))

    def figures(self) -> Iterator[Figure]:
        """Return medians over the cycles."""
        cost, milli = self.cost, 1000
        parts = zip(cost.asking, cost.absorbing, cost.reading, strict=True)
        yield Figure(
            what=f"a screen of {GPUS:,} GPUs: our CPU",
            measured=middle(sum(one) for one in parts) * milli,
            unit="ms",
            at_most=250,
            note=f"median of {CYCLES} cycles on recorded answers of a real Prometheus",
        )
        yield Figure(what="  asking and decoding", measured=middle(cost.asking) * milli, unit="ms")
        yield Figure(what="  absorbing", measured=middle(cost.absorbing) * milli, unit="ms")
        yield Figure(
            what="  reading the window of every GPU",
            measured=middle(cost.reading) * milli,
            unit="ms",
        )
        yield Figure(
            what="  longest lag of the event loop",
            measured=middle(cost.lag) * milli,
            unit="ms",
            at_most=50,
            note="median over cycles of the longest lag in each",
        )


@contextmanager
def _lag() -> Iterator[list[Seconds]]:
    """Measure how late the event loop wakes a task, until the block ends."""
    loop, late = asyncio.get_running_loop(), [0.0]

    async def beat() -> None:
        while True:
            due = loop.time() + _BEAT
            await asyncio.sleep(_BEAT)
            late.append(loop.time() - due)

    task = loop.create_task(beat())
    try:
        yield late
    finally:
        task.cancel()


class _AgingSource(_Source):
    """Answers for a part of the fleet; at first as if it had always done what it does then."""

    aged = False

    @override
    async def screen(self, *, now: Timestamp, back_to: Timestamp) -> Screen:
        found = await super().screen(now=now, back_to=back_to)
        first = int(back_to // found.period.step_seconds)
        columns = [_aged(one, None if self.aged else first) for one in found.columns]
        self.aged = True
        return replace(found, columns=tuple(columns))


_WEIGHED = frozenset(uuid(number) for number in range(GPUS // _PARTS))


def _aged(column: Column, first: int | None) -> Column:
    """Return the weighed part of a column, reaching back to a step as if it had always been so."""
    kept = [(one, steps) for one, steps in column.series if one.device.uuid in _WEIGHED]
    if first is not None:
        before: dict[int, Steps] = {}  # what is one object stays one object
        for _, steps in kept:
            known, value = steps[0]
            before.setdefault(
                id(steps), tuple((step, value) for step in range(first, known)) + steps
            )
        kept = [(one, before[id(steps)]) for one, steps in kept]
    return structs.replace(column, series=kept)


def _weight(url: str) -> Figure:
    """Fill a table with a whole window's steps and weigh what stays of it."""
    gc.collect()
    tracemalloc.start()
    table = asyncio.run(_filled(url))
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    if len(table) != len(_WEIGHED):
        raise RuntimeError(f"{len(table)} of {len(_WEIGHED)} GPUs in the table")
    return Figure(
        what=f"the table of {GPUS:,} GPUs",
        measured=allocated * _PARTS / _MEGABYTE,
        unit="MB",
        at_most=90,
        note=f"allocated bytes, with the label sets that it holds, over a whole window; weighed on "
        f"{len(table):,} GPUs and multiplied",
    )


async def _filled(url: str) -> ScreenTable:
    clock = ManualClock(_BEGIN)
    source = _AgingSource(PrometheusSettings(url=url, timeout_seconds=120), clock=clock)
    observer = Observer(source, NoCluster(), _rules())
    for _ in range(3):
        await observer.look(clock.now())
        await clock.sleep(MINUTE)
    await source.close()
    return observer._table  # noqa: SLF001 - what is weighed is nobody else's business


def _rules() -> Rules:
    return Settings().rules()

"""Random histories through a real Prometheus: what we call idle, an independent opinion does too.

The screen's table is fed cycle by cycle, as a controller that runs for an hour would; what it finds
is verified over the full window. The opinion (`support.oracle`) is whole-window PromQL at the same
moments. Two servers hold the same past, one without the samples that were late: it is asked until
they arrive.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.histories import LENGTH, Past, past, stored
from support.manual_clock import ManualClock
from support.oracle import MINUTES, Device, Oracle
from support.prometheus import PrometheusServer, backfill, openmetrics
from support.worlds import MINUTE, Told, unhurried_rules, view_of

from gpu_pruner.decide.evidence import fold
from gpu_pruner.decide.plan import plan
from gpu_pruner.loop.observation import Observer
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.plan import Action, Decision, Verification
from gpu_pruner.model.signals import DeviceId, Period, Track
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.resolve.assemble import assemble
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.settings.schema import PrometheusSettings

pytestmark = pytest.mark.prometheus

BATCH = 60
BATCHES = 5
RULES = unhurried_rules(confirmations=1)
COLD_START = 110
"""Minute of the history at which the controller starts."""
ARRIVAL = 140
"""Minute at which the late samples arrive."""
DOWN = range(151, 159)
"""Minutes in which the controller does not run."""
JUDGED = [110, 115, 120, 126, 132, 137, 139, 141, 143, 146, 149, 160, 164, 167]
"""Minutes at which both are asked."""
AFTER = 7.0
"""Seconds after a whole minute at which a cycle runs."""
FOUND = 0.99


@dataclass
class Arrivals:
    """A telemetry source in which late samples arrive at one moment."""

    early: PrometheusSource
    complete: PrometheusSource
    arrival: float
    clock: ManualClock

    @property
    def _now(self) -> PrometheusSource:
        return self.complete if self.clock.now() >= self.arrival else self.early

    async def start(self) -> None:
        """Do nothing."""

    async def screen(self, *, now: float, back_to: float) -> Screen:
        return await self._now.screen(now=now, back_to=back_to)

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        return await self._now.verify(devices, period)

    async def close(self) -> None:
        await self.early.close()
        await self.complete.close()


@dataclass
class Controller:
    """The product's screen, table, resolve, plan, verify and fold, without its books."""

    source: Arrivals
    pasts: Sequence[Past]
    observer: Observer = field(init=False)

    def __post_init__(self) -> None:
        self.observer = Observer(self.source, Told(self._view, self.source.clock), RULES)

    def _view(self, now: float) -> ClusterView:
        return view_of([one.tenant(now) for one in self.pasts], now=self.pasts[0].begin)

    async def cycle(self, now: float, *, verified: bool) -> Mapping[str, Decision]:
        """Run one cycle and return its decisions by workload name; WARN means proven idle."""
        self.source.clock.at = now
        seen = await self.observer.look(now)
        assert not seen.failure
        reading = self.observer.reading(now, honor_labels=None)
        snapshot = assemble(seen.view, reading, now=now, rules=RULES)
        first = plan(snapshot, RULES)
        wanted = first.with_action(Action.VERIFY)
        if verified and wanted:
            first = plan(snapshot, RULES, verifications=await self._verify(wanted, now))
        return {one.workload.root.name: one for one in first.decisions}

    async def _verify(self, wanted: Iterable[Decision], now: float) -> Mapping[str, Verification]:
        """Measure all of them together: one question per period instead of one per workload."""
        by_period: dict[Period, list[Decision]] = {}
        for one in wanted:
            if one.verify is not None:
                by_period.setdefault(one.verify, []).append(one)
        found = {}
        for period, decisions in by_period.items():
            tracks = await self.source.verify(
                [device for one in decisions for device in held(one)], period
            )
            about: dict[str, list[Track]] = {}
            for track in tracks:
                about.setdefault(track.device.uuid, []).append(track)
            for one in decisions:
                evidence = tuple(
                    fold(device, about.get(device.uuid, ()), period=period, rules=RULES)
                    for device in held(one)
                )
                found[one.workload.root.uid] = Verification(at=now, evidence=evidence)
        return found


def held(decision: Decision) -> list[DeviceId]:
    return [one.device for pod in decision.workload.pods for one in pod.devices]


@dataclass
class Tally:
    """What the comparison of one batch counted."""

    idle: int = 0
    """Times that we called a workload idle."""
    exceptions: list[str] = field(default_factory=list)
    due: int = 0
    """Times that the opinion called one idle for two windows."""
    missed: list[str] = field(default_factory=list)


@contextmanager
def servers(directory: Path, pasts: Sequence[Past]) -> Iterator[tuple[str, str]]:
    """Serve the past before and after the late samples have arrived."""
    with ExitStack() as stack:
        urls = []
        for name, before in (("early", True), ("complete", False)):
            place = directory / name
            place.mkdir()
            data = backfill(openmetrics(stored(pasts, before_arrival=before)), place)
            urls.append(stack.enter_context(PrometheusServer(place / "server", data=data)).url)
        yield urls[0], urls[1]


async def compare(directory: Path, seeds: Sequence[int]) -> Tally:
    """Let both judge the histories of these seeds."""
    begin = math.floor(time.time() / MINUTE) * MINUTE - LENGTH - 3600
    arrival = begin + ARRIVAL * MINUTE
    pasts = [past(seed, begin=begin, arrival=arrival) for seed in seeds]
    tally = Tally()
    with servers(directory, pasts) as urls:
        sources = [
            PrometheusSource(PrometheusSettings(url=url), clock=SystemClock()) for url in urls
        ]
        source = Arrivals(*sources, arrival=arrival, clock=ManualClock())
        controller = Controller(source, pasts)
        try:
            waiting: set[str] = set()
            for minute in range(COLD_START, int(LENGTH / MINUTE)):
                if minute in DOWN:
                    continue
                at = begin + minute * MINUTE
                judged = minute in JUDGED
                decided = await controller.cycle(at + AFTER, verified=judged or bool(waiting))
                for one in pasts:
                    if one.name in waiting and not is_idle(decided[one.name]):
                        tally.missed.append(told(one, minute, decided[one.name]))
                waiting = set()
                if judged:
                    oracle = Oracle(urls[0] if at < arrival else urls[1])
                    waiting = _count(tally, oracle, pasts, minute, decided)
        finally:
            await source.close()
    return tally


def _count(
    tally: Tally,
    oracle: Oracle,
    pasts: Sequence[Past],
    minute: int,
    decided: Mapping[str, Decision],
) -> set[str]:
    """Compare one moment; return the workloads that the next cycle still may find."""
    at = pasts[0].begin + minute * MINUTE
    now, before = oracle.idle(at), oracle.idle(at - MINUTES * MINUTE)
    single, double = oracle.owned_by_one(at, MINUTES), oracle.owned_by_one(at, 3 * MINUTES)
    waiting = set()
    for one in pasts:
        devices: set[Device] = set(one.devices)
        ours = is_idle(decided[one.name])
        tally.idle += ours
        if ours and not devices <= now & single:
            tally.exceptions.append(told(one, minute, decided[one.name]))
        if devices <= now & before & double:
            tally.due += 1
            if not ours:
                waiting.add(one.name)
    return waiting


def is_idle(decision: Decision) -> bool:
    return decision.verdict is Verdict.IDLE and decision.action is Action.WARN


def told(one: Past, minute: int, decision: Decision) -> str:
    why = f"{decision.verdict.value}/{decision.reason.value}: {decision.message}"
    return f"seed {one.seed} minute {minute} {one.events}: {why}"


def assert_agreement(tally: Tally) -> None:
    assert not tally.exceptions
    assert tally.idle > BATCH
    assert tally.due > BATCH
    assert len(tally.missed) <= (1 - FOUND) * tally.due, tally.missed


@pytest.mark.timeout(300)
async def test_what_we_call_idle_is_idle_over_the_whole_window(tmp_path: Path) -> None:
    assert_agreement(await compare(tmp_path, range(BATCH)))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("batch", range(1, BATCHES))
async def test_so_it_is_in_every_further_history(tmp_path: Path, batch: int) -> None:
    assert_agreement(await compare(tmp_path, range(batch * BATCH, (batch + 1) * BATCH)))

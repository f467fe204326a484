"""Twenty-one ways in which GPU telemetry looks, told to a real Prometheus and decided by us.

Each row is a back-filled history under both label schemes. The product's own source, table, fold,
resolve and plan run over it for three cycles: found, confirmed and warned, due. What is idle is
therefore paused in the third, on a full-window measurement; all else is not, with its reason.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from support.prometheus import PrometheusServer, backfill, openmetrics
from support.worlds import (
    ENCODER,
    ENERGY,
    ENGINE,
    MINUTE,
    UTIL,
    Feed,
    Line,
    Pod,
    Tenant,
    Value,
    energy_of,
    labelled,
    unhurried_rules,
    view_of,
)

from gpu_pruner.model.plan import Action, Decision
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.settings.schema import PrometheusSettings

pytestmark = [pytest.mark.prometheus, pytest.mark.timeout(240)]

NOW = math.floor(time.time() / MINUTE) * MINUTE - 600.0
BEGIN = NOW - 100 * MINUTE
CYCLES = (NOW - 115.0, NOW - 55.0, NOW + 5.0)
"""Each a few seconds after a whole minute, as the samples of that minute are in."""
HEALTHY: Mapping[str, Value] = {ENGINE: 0.0, UTIL: 0.0, ENERGY: energy_of(since=BEGIN)}
OTHER = {"instance": "10.0.0.2:9400"}

Signals = Mapping[str, Value]


def at(minute: float, value: float, *, usual: float = 0.0) -> Value:
    """Return a signal that reads a value in one minute before the end, and else the usual one."""
    begin = NOW + minute * MINUTE
    return lambda moment: value if begin <= moment < begin + MINUTE else usual


def but(**changes: Value) -> Signals:
    """Return healthy idle signals with some changed."""
    names = {"engine": ENGINE, "util": UTIL, "energy": ENERGY, "encoder": ENCODER}
    return {**HEALTHY, **{names[name]: value for name, value in changes.items()}}


@dataclass(frozen=True)
class Expected:
    verdict: Verdict
    reason: Reason
    device: Reason | None = None
    """The first device's reason, where it is not the workload's."""


IDLE = Expected(Verdict.IDLE, Reason.DUE)
ACTIVE = Expected(Verdict.ACTIVE, Reason.GPU_ACTIVE)


def unknown(reason: Reason, *, device: Reason | None = None) -> Expected:
    return Expected(Verdict.UNKNOWN, reason, device)


@dataclass(frozen=True)
class Row:
    """One row of the table: a workload of one pod on its own node."""

    name: str
    expected: Expected
    devices: tuple[Signals, ...] = (HEALTHY,)
    """One per GPU of the pod."""
    slice: str = ""
    created_at: float | None = None
    feeds: tuple[Feed, ...] = field(default=())
    """Instead of `devices`; labels are completed with the pod's, unless they are told."""

    @property
    def tenant(self) -> Tenant:
        resource = "nvidia.com/mig-1g.10gb" if self.slice else "nvidia.com/gpu"
        count = 1 if self.feeds else len(self.devices)
        pod = Pod(f"{self.name}-0", f"node-{self.name}", count, self.created_at, resource)
        return Tenant(f"team-{self.name}", self.name, (pod,))

    def all_feeds(self) -> Iterator[Feed]:
        tenant, pod = self.tenant, self.tenant.pods[0]
        for feed in self.feeds:
            own = {"UUID": f"GPU-{self.name}-0"}
            whole = labelled(tenant, pod, own) | dict(feed.labels)
            told = {name: text for name, text in whole.items() if text}
            yield Feed(told, feed.values, feed.begin, feed.end, target=feed.target)
        if self.feeds:
            return
        for number, values in enumerate(self.devices):
            own = {"UUID": f"GPU-{self.name}-{number}"}
            mig = {"GPU_I_ID": self.slice, "GPU_I_PROFILE": "1g.10gb"} if self.slice else {}
            board = {name: value for name, value in values.items() if name == ENERGY and self.slice}
            rest = {name: value for name, value in values.items() if name not in board}
            yield Feed(labelled(tenant, pod, own | mig), rest, BEGIN, NOW)
            if board:
                yield Feed(labelled(tenant, pod, own), board, BEGIN, NOW)


def feed(values: Signals, begin: float = BEGIN, end: float = NOW, **labels: str) -> Feed:
    return Feed(labels, values, begin, end)


def minus(signals: Signals, *names: str) -> Signals:
    return {name: value for name, value in signals.items() if name not in names}


UNLABELLED = {"namespace": "", "pod": "", "container": ""}
FLAP = (NOW - 20 * MINUTE, NOW - 18 * MINUTE)
CUT = NOW - 17 * MINUTE
"""When an exporter was replaced."""
MOVED = NOW - 25 * MINUTE
"""When a GPU got its present owner."""


def outside(begin: float, end: float, signals: Signals) -> Signals:
    """Return signals without samples between two moments."""

    def hidden(value: Value) -> Value:
        def read(moment: float) -> float | None:
            if begin < moment < end:
                return None
            return value(moment) if callable(value) else value

        return read

    return {name: hidden(value) for name, value in signals.items()}


ROWS = (
    Row("quiet", IDLE),
    Row("wedged", unknown(Reason.CONTRADICTION), (but(util=100.0),)),
    Row("light", IDLE, (but(engine=0.008246),)),
    Row("recent", unknown(Reason.LOW_COVERAGE), feeds=(feed(HEALTHY, NOW - 10 * MINUTE),)),
    Row("encoding", ACTIVE, (but(encoder=60.0),)),
    Row("half-busy", ACTIVE, (HEALTHY, but(engine=0.7, util=80.0))),
    Row("garbage", unknown(Reason.OUT_OF_RANGE), (but(util=at(-12, 218322032.0)),)),
    Row("frozen", unknown(Reason.NOT_LIVE), (but(energy=5.0e9),)),
    Row("slice", IDLE, (minus(HEALTHY, UTIL),), slice="7"),
    Row("slice-util", unknown(Reason.NO_PRIMARY_SIGNAL), (minus(HEALTHY, ENGINE),), slice="7"),
    Row("util-only", IDLE, (minus(HEALTHY, ENGINE),)),
    Row("rescaled", ACTIVE, (but(util=0.5),)),
    Row("gap", IDLE, (outside(NOW - 15 * MINUTE, NOW - 13 * MINUTE, HEALTHY),)),
    Row("burst", ACTIVE, (but(engine=at(-30, 0.4)),)),
    Row(
        "restarted",
        IDLE,
        feeds=(
            feed(HEALTHY, end=CUT),
            Feed({}, HEALTHY, CUT + MINUTE, NOW, target={**OTHER, "pod": "exporter-y"}),
        ),
    ),
    Row(
        "renamed",
        IDLE,
        feeds=(
            feed(HEALTHY, end=CUT),
            feed(HEALTHY, CUT + MINUTE, Hostname="", hostname="node-renamed"),
        ),
    ),
    Row(
        "two-jobs",
        ACTIVE,
        feeds=(feed(HEALTHY), Feed({}, but(engine=0.3), BEGIN, NOW, target={"job": "annotated"})),
    ),
    Row(
        "flapping",
        ACTIVE,
        feeds=(
            feed(outside(*FLAP, HEALTHY)),
            feed(but(engine=0.5), FLAP[0] + 30, FLAP[1] - 30, **UNLABELLED),
        ),
    ),
    Row(
        "previous-owner",
        unknown(Reason.TOO_YOUNG, device=Reason.OWNER_CHANGED),
        created_at=MOVED,
        feeds=(
            feed(but(engine=0.9, util=95.0), end=MOVED - 30, namespace="team-b", pod="before-0"),
            feed(HEALTHY, MOVED + 30),
        ),
    ),
    Row(
        "slice-beside",
        IDLE,
        slice="1",
        feeds=(
            feed(minus(HEALTHY, UTIL, ENERGY), GPU_I_ID="1", GPU_I_PROFILE="1g.10gb"),
            feed({ENERGY: HEALTHY[ENERGY]}),
            feed(
                {ENGINE: 0.9},
                GPU_I_ID="2",
                GPU_I_PROFILE="1g.10gb",
                namespace="team-b",
                pod="sibling-0",
            ),
        ),
    ),
)
FREE = Feed({"UUID": "GPU-free", "Hostname": "node-quiet"}, HEALTHY, BEGIN, NOW)
"""An unallocated GPU: under honorLabels true it carries the exporter's own name."""
LIGHT_IS_WORK = 0.001


@pytest.fixture(scope="module", params=[False, True], ids=["exported", "honored"])
def honor_labels(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def server(
    honor_labels: bool,  # noqa: FBT001 - a fixture
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PrometheusServer]:
    directory = tmp_path_factory.mktemp("prometheus")
    feeds = [FREE, *(one for row in ROWS for one in row.all_feeds())]
    past = [one for each in feeds for one in each.histories(honor_labels=honor_labels)]
    data = backfill(openmetrics(past), directory)
    with PrometheusServer(directory, data=data) as running:
        yield running


@asynccontextmanager
async def line_over(server: PrometheusServer, **rules: object) -> AsyncIterator[Line]:
    source = PrometheusSource(PrometheusSettings(url=server.url), clock=SystemClock())
    view = view_of([row.tenant for row in ROWS], now=NOW)
    try:
        yield Line(source, lambda _: view, rules=unhurried_rules(**rules))
    finally:
        await source.close()


@pytest.fixture(scope="module")
def decided(server: PrometheusServer) -> Mapping[str, Decision]:
    async def run() -> Mapping[str, Decision]:
        async with line_over(server) as line:
            return await line.run(*CYCLES)

    return asyncio.run(run())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_row_of_the_table_gets_its_verdict_and_reason(
    decided: Mapping[str, Decision], row: Row
) -> None:
    decision = decided[row.tenant.ref]
    assert (decision.verdict, decision.reason) == (row.expected.verdict, row.expected.reason), (
        decision.message
    )
    wanted = Action.PAUSE if row.expected is IDLE else Action.NONE
    assert decision.action is wanted
    if row.expected.device is not None:
        assert decision.findings[0].reason is row.expected.device


async def test_light_work_is_work_under_the_recommended_threshold(
    server: PrometheusServer,
) -> None:
    async with line_over(server, idle_threshold=LIGHT_IS_WORK) as line:
        decided = await line.run(*CYCLES)
    light = next(row for row in ROWS if row.name == "light")
    assert decided[light.tenant.ref].verdict is Verdict.ACTIVE
    assert light.tenant.ref not in line.paused
    idle = {row.tenant.ref for row in ROWS if row.expected is IDLE and row is not light}
    assert line.paused.keys() == idle


async def test_an_unallocated_gpu_is_nobodys_whatever_name_it_carries(
    decided: Mapping[str, Decision],
) -> None:
    assert decided.keys() == {row.tenant.ref for row in ROWS}
    held = {one.evidence.device.uuid for each in decided.values() for one in each.findings}
    assert "GPU-free" not in held

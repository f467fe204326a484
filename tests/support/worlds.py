"""Small clusters with told telemetry, decided by the real cycle over a real telemetry source.

The telemetry side is `Feed`: one label set of one device, its metrics as functions of time. The
cluster side is `Tenant`: a StatefulSet whose pods hold devices. `Line` runs the product's own cycle
(screen, table, verify, fold, assemble, plan) over them; only people and the levers are played.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from support.manual_clock import ManualClock
from support.prometheus import History, as_stored, every
from support.story import told_rules

from gpu_pruner.loop.books import MemoryBooks
from gpu_pruner.loop.cycle import Cycle
from gpu_pruner.loop.execution import Executor
from gpu_pruner.loop.observation import Observer
from gpu_pruner.model.book import Book
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.letters import Letter
from gpu_pruner.model.orders import Delivery, Outcome, PauseOrder, Result
from gpu_pruner.model.plan import Decision, Plan
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.telemetry import TelemetrySource
from gpu_pruner.model.workload import (
    NodeRecord,
    OwnerObject,
    OwnerRef,
    PodPhase,
    PodRecord,
    RootRef,
)
from gpu_pruner.record.board import Board
from gpu_pruner.record.decisions import DecisionLog

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
SM = "DCGM_FI_PROF_SM_ACTIVE"
DRAM = "DCGM_FI_PROF_DRAM_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENCODER = "DCGM_FI_DEV_ENC_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
POWER = "DCGM_FI_DEV_POWER_USAGE"

MINUTE = 60.0
WINDOW = 35 * MINUTE
LONG = 7 * 86_400.0
"""How old everything is that is not said to be younger."""

Value = float | Callable[[float], float | None]
"""A constant, or the value at a moment; None: no sample."""


def energy_of(watts: float = 70.0, *, since: float = 0.0) -> Value:
    """Return an energy counter in millijoules that moves as a live GPU's does."""
    return lambda at: round((at - since) * watts * 1000.0)


@dataclass(frozen=True)
class Feed:
    """What one target exported about one device under one set of labels."""

    labels: Mapping[str, str]
    """As the exporter shows them; the workload is in namespace and pod."""
    values: Mapping[str, Value]
    """By metric."""
    begin: float
    end: float
    """First and last moment of a scrape."""
    scrape_seconds: float = 30.0
    target: Mapping[str, str] = field(default_factory=dict)
    """Target labels that differ from the usual exporter's, for example ``instance``."""

    def histories(self, *, honor_labels: bool) -> list[History]:
        """Return what Prometheus has stored of it."""
        stored = as_stored(self.labels, honor_labels=honor_labels, target=self.target)
        times = every(self.scrape_seconds, self.begin, self.end)
        found = []
        for metric, value in self.values.items():
            read = value if callable(value) else (lambda _, constant=value: constant)
            points = [(at, float(sample)) for at in times if (sample := read(at)) is not None]
            if points:
                found.append(History(metric, stored, points))
        return found


@dataclass(frozen=True)
class Pod:
    """A running, Ready pod."""

    name: str
    node: str
    devices: int = 1
    created_at: float | None = None
    """None: long ago."""
    resource: str = "nvidia.com/gpu"


@dataclass(frozen=True)
class Tenant:
    """A StatefulSet with its GPU pods."""

    namespace: str
    name: str
    pods: tuple[Pod, ...]

    @property
    def ref(self) -> str:
        """Return how decisions name it."""
        return f"statefulset/{self.namespace}/{self.name}"

    @property
    def gpus(self) -> int:
        """Return how many devices its pods hold."""
        return sum(pod.devices for pod in self.pods)


def view_of(
    tenants: Iterable[Tenant], *, now: float, sharing: Mapping[str, str] | None = None
) -> ClusterView:
    """Return what the API server says of them.

    Args:
        tenants: all there are.
        now: for the age of what is there for long.
        sharing: sharing strategy by node name; nodes that are not in it share nothing.
    """
    pods, owners, nodes = [], {}, {}
    for tenant in tenants:
        uid = f"uid-{tenant.namespace}-{tenant.name}"
        root = RootRef("StatefulSet", tenant.namespace, tenant.name, "apps", uid)
        size = len(tenant.pods)
        owners[uid] = OwnerObject(
            root=root, generation=1, observed_generation=1,
            desired=size, observed=size, ready=size, updated=size,
        )  # fmt: skip
        for pod in tenant.pods:
            nodes[pod.node] = NodeRecord(
                name=pod.node, ready=True, sharing=(sharing or {}).get(pod.node, "")
            )
            born = now - LONG if pod.created_at is None else pod.created_at
            pods.append(
                PodRecord(
                    uid=f"uid-{tenant.namespace}-{pod.name}-{born:.0f}",
                    namespace=tenant.namespace,
                    name=pod.name,
                    phase=PodPhase.RUNNING,
                    created_at=born,
                    node=pod.node,
                    requests={pod.resource: pod.devices},
                    owner=OwnerRef("apps", "StatefulSet", tenant.name, uid),
                    ready_since=born,
                    containers_started_at=born,
                )
            )
    return ClusterView(pods=tuple(pods), nodes=nodes, owners=owners)


def unhurried_rules(**changes: object) -> Rules:
    """Return the default rules without notice and without a budget: what is proven idle is due."""
    free = {
        "notice_seconds": 0.0,
        "budget_workloads_per_cycle": 10_000,
        "budget_gpu_ratio_per_cycle": 1.0,
        "budget_per_namespace_per_cycle": 10_000,
        "budget_per_hour": 10_000,
    }
    return told_rules(free | changes)


@dataclass
class Told:
    """A cluster as `loop` sees it, by the moment."""

    at: Callable[[float], ClusterView]
    clock: ManualClock

    def view(self) -> ClusterView:
        return self.at(self.clock.now())


class Hearing:
    """People who get every message."""

    async def deliver(
        self, letters: Sequence[Letter], *, warned: frozenset[RootRef]
    ) -> tuple[Delivery, ...]:
        return tuple(Delivery(root=one.root, kind=one.kind, via=("event",)) for one in letters)


@dataclass
class Levers:
    """Levers that only note when they were pulled first."""

    clock: ManualClock
    pulled: dict[str, float] = field(default_factory=dict)

    async def pause(
        self,
        order: PauseOrder,
        book: Book | None = None,
        *,
        verified_at: float | None = None,
        max_age_seconds: float | None = None,
    ) -> Outcome:
        self.pulled.setdefault(order.root.ref, self.clock.now())
        return Outcome(root=order.root, action="pause", result=Result.DONE)

    async def write_book(self, decision: Decision, book: Book) -> Outcome:
        raise AssertionError(decision)  # the books are in memory

    async def restore(self, root: RootRef, *, by: str, why: str) -> Outcome:
        raise AssertionError(root)  # nobody changes his mind here


class _Quiet(DecisionLog):
    def record(self, plan: Plan) -> int:
        return len(plan.decisions)


class Line:
    """The real cycle, at moments that the test chooses."""

    def __init__(
        self,
        source: TelemetrySource,
        at: Callable[[float], ClusterView],
        *,
        rules: Rules,
        honor_labels: bool | None = None,
    ) -> None:
        self.clock = ManualClock()
        self._levers = Levers(self.clock)
        books = MemoryBooks()
        self.cycle = Cycle(
            observer=Observer(source, Told(at, self.clock), rules),
            source=source,
            books=books,
            executor=Executor(Hearing(), self._levers, books, rules),
            board=Board(),
            clock=self.clock,
            rules=rules,
            honor_labels=honor_labels,
            log=_Quiet(),
        )

    @property
    def paused(self) -> Mapping[str, float]:
        """Return when each workload was paused, by `Tenant.ref`."""
        return self._levers.pulled

    async def run(self, *moments: float) -> dict[str, Decision]:
        """Run one cycle at each moment.

        Returns:
            The last cycle's decisions by `Tenant.ref`.
        """
        plan: Plan | None = None
        for moment in moments:
            self.clock.at = moment
            plan = (await self.cycle.run()).plan
        assert plan is not None
        assert "ScreenFailed" not in {one.name for one in plan.breakers}, plan.breakers
        return {one.workload.root.ref: one for one in plan.decisions}


def labelled(tenant: Tenant, pod: Pod, device: Mapping[str, str]) -> dict[str, str]:
    """Return a device's labels with its pod's."""
    return {
        "Hostname": pod.node,
        "modelName": "NVIDIA H100 80GB HBM3",
        **device,
        "namespace": tenant.namespace,
        "pod": pod.name,
        "container": "main",
    }

"""Days of a small cluster under the product's own cycle, and the truth about them.

The truth comes from the raw history alone: the samples that were shown, and the lives of the pods.
Nothing of `decide` and nothing of the ledger is asked. What is told here of each minute is what the
documentation says of the columns of a report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from support.ledgers import A100, H100, a_keeper
from support.manual_clock import ManualClock
from support.small_cluster import MINUTE, App, Gpu, SmallCluster, random_gpu
from support.story import told_rules
from support.worlds import Hearing

from gpu_pruner.act.actor import Actor
from gpu_pruner.loop.books import ClusterBooks
from gpu_pruner.loop.cycle import Cycle
from gpu_pruner.loop.execution import Executor
from gpu_pruner.loop.observation import Observer
from gpu_pruner.model.plan import Plan
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.workload import RootRef
from gpu_pruner.record.board import Board
from gpu_pruner.record.decisions import DecisionLog
from gpu_pruner.record.ledger.keeper import Keeper
from gpu_pruner.record.report import CycleReport
from gpu_pruner.settings.ledger import LedgerSettings

L40S = "NVIDIA L40S"
BEGIN = 1_769_860_800.0
WINDOW, SETTLE, NEEDED = 35, 5, 33
"""Minutes that are judged, more that a pod has to be Ready, and minutes that have to be seen."""
QUIET = 0.01
FRESH = 90.0
_FINE = 5.0
"""Seconds between two looks of the exact truth."""

ROWS: tuple[tuple[str, str, str, str, str, list[list[str]], bool], ...] = (
    ("Deployment", "apps", "team-a", "finetune", "alice", [[H100], [H100]], False),
    ("Notebook", "kubeflow.org", "team-a", "notebook-1", "alice", [[H100]], False),
    ("StatefulSet", "apps", "team-a", "train", "bob", [[H100] * 4], False),
    ("Deployment", "apps", "team-a", "kept", "bob", [[A100] * 2], True),
    ("Deployment", "apps", "team-b", "serve", "", [[A100], [A100]], False),
    ("StatefulSet", "apps", "team-b", "mixed", "carol", [[H100], [A100]], False),
    ("Notebook", "kubeflow.org", "team-b", "notebook-2", "carol", [[A100]], True),
    ("StatefulSet", "apps", "team-c", "evaluate", "alice", [[L40S] * 2], False),
    ("Notebook", "kubeflow.org", "team-c", "notebook-3", "", [[L40S]], False),
)
"""Kind, group, namespace, name, owner, the models of each pod, and whether it is exempt."""


class _Quiet(DecisionLog):
    def record(self, plan: Plan) -> int:
        return len(plan.decisions)


@dataclass
class _Written:
    """History that is written when the cycle ends."""

    keeper: Keeper

    def record(self, report: CycleReport) -> None:
        assert not report.failure, report.failure
        self.keeper.take(report)


def random_cluster(seed: int, minutes: int) -> SmallCluster:
    """Return the cluster of a seed."""
    rng = Random(seed)  # noqa: S311 - a seeded test
    apps = []
    for kind, group, namespace, name, owner, pods, exempt in ROWS:
        root = RootRef(kind, namespace, name, group, f"uid-{name}")
        made = [
            [random_gpu(rng, f"GPU-{name}-{place}-{n}", one, minutes) for n, one in enumerate(pod)]
            for place, pod in enumerate(pods)
        ]
        for pod in made:  # what one program does, all its GPUs do, but for a little
            for gpu in pod[1:]:
                gpu.engine = [one * 0.9 for one in pod[0].engine]
        apps.append(App(root, owner, made, exempt))
    return SmallCluster(apps, BEGIN, minutes, ManualClock(BEGIN), rng)


@dataclass
class Days:
    """The days, lived by `live`; what is true of them is in `sampled` and `exact`."""

    cluster: SmallCluster
    settings: LedgerSettings
    sampled: Counter[tuple[int, str, str]] = field(default_factory=Counter)
    """GPU seconds by app, model and state, as found at the moments of the cycles."""
    exact: Counter[tuple[int, str, str]] = field(default_factory=Counter)
    """The same to the second."""
    changes: Counter[int] = field(default_factory=Counter)
    """How often each app came into another state, or the controller was stopped and started."""
    pauses: int = 0

    def __post_init__(self) -> None:
        rng = self.cluster.rng
        self._phase = rng.uniform(2, 58)
        self._wakes: dict[int, float] = {}
        self._states: dict[int, str] = {}
        self._cycle: Cycle | None = None
        self._actor: Actor | None = None
        self._known: dict[tuple[str, int], tuple[str, float]] = {}
        self._before: float | None = None
        """When the running controller looked last."""
        downs = rng.sample(range(90, self.cluster.minutes), 3 * self.cluster.minutes // 1440)
        self._down = {one + n for one in downs for n in range(rng.choice((1, 3, 20, 75)))}

    async def live(self) -> None:
        """Live every minute: people wake what was paused, controllers stop and start."""
        for minute in range(45, self.cluster.minutes):
            now = BEGIN + minute * MINUTE + self._phase
            await self._people(now)
            self.cluster.clock.at = now
            self.cluster.settle(now)
            if minute in self._down:
                self._cycle = self._before = None
                continue
            if self._cycle is None:
                self._start(minute)
            self._count(now)
            assert self._cycle is not None
            await self._cycle.run()
            self.cluster.settle(now)
            self._before = now

    def _start(self, minute: int) -> None:
        cluster, rules = self.cluster, told_rules()
        self._actor = Actor(cluster.api, clock=cluster.clock, mode=Mode.SCALE_DOWN)
        books = ClusterBooks(self._actor)
        self._cycle = Cycle(
            observer=Observer(cluster, cluster, rules),
            source=cluster,
            books=books,
            executor=Executor(Hearing(), self._actor, books, rules),
            board=Board(),
            clock=cluster.clock,
            rules=rules,
            log=_Quiet(),
            history=_Written(a_keeper(self.settings, f"process-{minute}")),
        )

    async def _people(self, now: float) -> None:
        """Wake what has been paused for long enough, at any second of the minute that went by."""
        rng = self.cluster.rng
        for number, app in enumerate(self.cluster.apps):
            if self.cluster.is_paused(app) and number not in self._wakes:
                self._wakes[number] = now + rng.uniform(1, 9) * 3600
                self.pauses += 1
            if self._wakes.get(number, math.inf) <= now:
                self.cluster.clock.at = self._wakes.pop(number)
                if rng.random() < 0.5 or self._actor is None:
                    self.cluster.start_by_hand(app)
                else:
                    await self._actor.restore(app.root, by=app.owner or "somebody", why="needed")
                self.cluster.settle(self.cluster.clock.at)

    # The truth.

    def _count(self, now: float) -> None:
        """Add the time since the cycle before, if the same process ran then."""
        for number, app in enumerate(self.cluster.apps):
            state = self.state(app, now)
            self.changes[number] += self._before is None or state != self._states.get(number)
            self._states[number] = state
            if self._before is None:
                continue
            for gpu in app.gpus:
                self.sampled[number, gpu.model, state] += now - self._before
            for moment in range(round((now - self._before) / _FINE)):
                found = self.state(app, self._before + (moment + 0.5) * _FINE)
                for gpu in app.gpus:
                    self.exact[number, gpu.model, found] += _FINE

    def state(self, app: App, at: float) -> str:
        """Return what is true of a workload at a moment."""
        life = app.life(at)
        if life is None:
            return "paused"  # nobody else stops anything here
        newest = math.floor((at - BEGIN) / MINUTE) - 1
        found = [self._device(app, gpu, newest, at) for gpu in app.gpus]
        if "active" in found:
            return "active"
        settled = at - life.ready >= (WINDOW + SETTLE) * MINUTE
        return "idle" if settled and set(found) == {"idle"} else "unknown"

    def _device(self, app: App, gpu: Gpu, newest: int, at: float) -> str:
        known = self._known.get((gpu.uuid, newest))
        if known is None:
            known = self._known[gpu.uuid, newest] = self._looked(app, gpu, newest)
        state, sample = known
        return "unknown" if state == "idle" and at - sample > FRESH else state

    def _looked(self, app: App, gpu: Gpu, newest: int) -> tuple[str, float]:
        """Return what the minutes up to the newest say, and when the last sample in them was."""
        minutes = range(newest - WINDOW + 1, newest + 1)
        lit = [one for one in minutes if not gpu.dark[one]]
        sample = BEGIN + (max(lit, default=-WINDOW) + 1) * MINUTE
        if any(app.works(gpu, one, BEGIN) >= QUIET for one in lit):
            return "active", sample
        seen = sum(not (gpu.dark[one] and gpu.dark[one - 1]) for one in minutes)
        return ("idle" if seen >= NEEDED else "unknown"), sample


def hours(
    seconds: Counter[tuple[int, str, str]],
    apps: list[App],
    by: Callable[[App], str],
    *states: str,
) -> Counter[str]:
    """Return GPU hours in some states by whatever an app is called."""
    found: Counter[str] = Counter()
    for (number, _, state), spent in seconds.items():
        if state in states:
            found[by(apps[number])] += spent / 3600
    return found

"""A world in the making: workloads with their GPUs on nodes, each with the truth and its telemetry.

Builders of honest worlds (`honest`) and of lies (`lies`) put workloads into a `Maker`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from race.telemetry import BOARD, PROFILING, Strip, only, read, without
from race.truth import MUST_FIND, SETTLE, WINDOW, Times, Work, any_worked
from support.prometheus import History
from support.worlds import ENCODER, UTIL, Pod, Tenant

Behaviour = Callable[[Times, Random], Work]
MODEL = "NVIDIA H100 80GB HBM3"


@dataclass
class Gpu:
    """One device of one pod."""

    work: Work
    strips: list[Strip]

    @property
    def main(self) -> Strip:
        """Return its first strip: the one with the pod's labels."""
        return self.strips[0]


@dataclass
class Workload:
    """One StatefulSet of the race."""

    tenant: Tenant
    gpus: list[Gpu]
    lie: str = ""
    """What its telemetry lies about; empty: nothing."""

    @property
    def born_at(self) -> float:
        """Return when its youngest pod was created; 0 where all are old."""
        return max(pod.created_at or 0.0 for pod in self.tenant.pods)

    def is_idle(self, now: float, *, threshold: float, poll: float) -> bool:
        """Whether pausing it at a moment takes nothing from anybody."""
        works = [gpu.work for gpu in self.gpus]
        young = now - self.born_at < WINDOW
        return not young and not any_worked(works, now, threshold=threshold, poll=poll)

    def must_be_found(self, now: float, *, threshold: float) -> bool:
        """Whether it has been idle, and there, for so long that it has to be found by now."""
        spans = [span for gpu in self.gpus for span in gpu.work if span.is_work(threshold)]
        quiet = all(span.end <= now - MUST_FIND for span in spans)
        return quiet and now - self.born_at >= MUST_FIND + SETTLE


@dataclass
class World:
    """One cluster of the race, ready to be back-filled and judged."""

    seed: int
    times: Times
    honor_labels: bool
    healthy: bool
    workloads: list[Workload]
    strangers: list[Strip]
    """Telemetry of devices that no workload holds."""
    sharing: Mapping[str, str]
    """Sharing strategy by node."""
    scrape: float

    def histories(self) -> list[History]:
        """Return everything that Prometheus has stored of it."""
        strips = [strip for one in self.workloads for gpu in one.gpus for strip in gpu.strips]
        return [
            history
            for strip in (*strips, *self.strangers)
            for history in strip.histories(honor_labels=self.honor_labels)
        ]


@dataclass
class Maker:
    """Builds one world."""

    seed: int
    times: Times
    scrape: float
    rng: Random
    profiling: bool = True
    """Whether whole GPUs export profiling metrics."""
    workloads: list[Workload] = field(default_factory=list)
    strangers: list[Strip] = field(default_factory=list)
    sharing: dict[str, str] = field(default_factory=dict)
    _names: int = 0

    def __post_init__(self) -> None:
        offset = self.rng.uniform(1, self.scrape - 1)
        count = int((self.times.end - self.times.begin) // self.scrape)
        self.moments = [self.times.end - offset - n * self.scrape for n in range(count)][::-1]

    def name(self, what: str) -> str:
        """Return a name that no other part of the race has."""
        self._names += 1
        return f"{what}-{self.seed}-{self._names}"

    def workload(
        self,
        pods: Sequence[Sequence[Behaviour]],
        *,
        lie: str = "",
        node: str = "",
        created_at: float | None = None,
        slices: Sequence[str] = (),
    ) -> Workload:
        """Add a workload.

        Args:
            pods: behaviours of each pod's GPUs.
            lie: what its telemetry will lie about.
            node: of all its pods; empty: a node of its own for each.
            created_at: when its pods were created; None: long ago.
            slices: MIG instances of the GPUs of the only pod, all on one board.
        """
        name = self.name("workload")
        made, gpus = [], []
        board = f"GPU-{self.name('board')}" if slices else ""
        for number, behaviours in enumerate(pods):
            where = node or self.name("node")
            resource = "nvidia.com/mig-1g.10gb" if slices else "nvidia.com/gpu"
            pod = Pod(f"{name}-{number}", where, len(behaviours), created_at, resource)
            made.append(pod)
            for place, behaviour in enumerate(behaviours):
                work = behaviour(self.times, self.rng)
                if created_at is not None:
                    work = tuple(span for span in work if span.begin >= created_at)
                slice_ = slices[place] if slices else ""
                uuid = board or f"GPU-{self.name('device')}"
                gpu = self._gpu(work, f"team-{name}", pod, uuid=uuid, slice_=slice_)
                gpu.strips = gpu.strips[: 1 if place else 2]  # one board tells of its energy once
                gpus.append(gpu)
        one = Workload(Tenant(f"team-{name}", name, tuple(made)), gpus, lie)
        self.workloads.append(one)
        return one

    def _gpu(self, work: Work, namespace: str, pod: Pod, *, uuid: str, slice_: str) -> Gpu:
        sheet = read(work, self.moments, self.rng)
        device = {"UUID": uuid, "Hostname": pod.node, "modelName": MODEL}
        owner = {"namespace": namespace, "pod": pod.name, "container": "main"}
        if slice_:
            mig = {"GPU_I_ID": slice_, "GPU_I_PROFILE": "1g.10gb"}
            own = without(sheet, (*BOARD, UTIL, ENCODER))
            board = Strip(dict(device), only(sheet, BOARD))
            return Gpu(work, [Strip(device | mig | owner, own), board])
        strip = Strip(device | owner, sheet)
        if not self.profiling:
            strip.sheet = without(sheet, PROFILING)
        return Gpu(work, [strip])

    def stranger(self, work: Work, node: str, **owner: str) -> Strip:
        """Add telemetry of a device that no workload holds, and return it."""
        labels = {"UUID": f"GPU-{self.name('device')}", "Hostname": node, "modelName": MODEL}
        strip = Strip(labels | owner, read(work, self.moments, self.rng))
        self.strangers.append(strip)
        return strip

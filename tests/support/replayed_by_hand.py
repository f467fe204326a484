"""A past minute by minute, and what a controller would have done in it, worked out by hand.

Written from the rules in the documentation, with loops and without any of the product's code, so
that a replay has something to be compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from support.prometheus import History, as_stored

ENGINE, UTIL = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
VISIBLE = 5
"""Minutes for which the server shows a sample."""


@dataclass
class Gpu:
    """One GPU that one pod holds from a minute up to another; engine activity per minute."""

    uuid: str
    pod: str
    minutes: list[float | None]
    """None: no sample."""
    first: int
    end: int

    def sampled(self, minute: int) -> bool:
        return 0 <= minute < len(self.minutes) and self.minutes[minute] is not None

    def working(self, minute: int, threshold: float) -> bool:
        value = self.minutes[minute] if self.sampled(minute) else None
        return value is not None and value >= threshold

    def moved(self, minute: int) -> bool:
        before = range(minute - VISIBLE, minute)
        return self.sampled(minute) and any(self.sampled(one) for one in before)


@dataclass
class Owned:
    """One workload."""

    namespace: str
    name: str
    gpus: list[Gpu]
    owner: tuple[str, str] | None = None
    """Kind and name of what kube-state-metrics says owns its pods."""


@dataclass(frozen=True)
class Numbers:
    """One setting."""

    window: int
    threshold: float
    notice: int


@dataclass
class Sum:
    hours: float = 0.0
    pauses: int = 0
    workloads: int = 0
    regrets: int = 0


def verdict(gpu: Gpu, minute: int, numbers: Numbers) -> str:
    window = numbers.window
    judged = range(minute - window + 1, minute + 1)
    work = [one for one in judged if gpu.working(one, numbers.threshold)]
    if any(one >= gpu.first for one in work):
        return "active"
    if work:
        return "unknown"  # somebody else's
    seen = sum(gpu.sampled(one) or gpu.sampled(one - 1) for one in judged)
    moved = sum(gpu.moved(one) for one in judged)
    doubts = (
        not any(gpu.sampled(one) for one in (minute - 1, minute)),
        seen < int(0.945 * window),
        moved < min(10, window // 3),
        not any(gpu.moved(one) for one in range(minute - 3, minute + 1)),
    )
    if any(doubts):
        return "unknown"
    young = minute + 1 - gpu.first < window + 5 and gpu.first >= 5
    return "unknown" if young else "idle"


def together(one: Owned, minute: int, numbers: Numbers) -> str:
    held = [gpu for gpu in one.gpus if gpu.first <= minute < gpu.end]
    said = {verdict(gpu, minute, numbers) for gpu in held}
    if not held:
        return "gone"
    return next(word for word in ("active", "unknown", "idle") if word in said)


@dataclass
class Clock:
    """The clock of one workload."""

    confirmations: int = 0
    due: int | None = None
    frozen: int | None = None
    awake: int = 0
    """First minute in which it can be idle again after somebody brought it back."""


def looked(clock: Clock, said: str, minute: int, numbers: Numbers) -> bool:
    """Take one look; return whether it is paused."""
    if said in {"active", "gone"}:
        clock.confirmations, clock.due, clock.frozen = 0, None, None
        return False
    if clock.due is None:
        clock.confirmations += said == "idle"
        if said == "idle" and clock.confirmations >= 2:
            clock.due, clock.frozen = minute + numbers.notice, None
        return False
    stood = 0 if clock.frozen is None else minute - clock.frozen
    if stood > numbers.window:
        clock.due, clock.frozen = None, None
        return False
    if said == "unknown":
        clock.frozen = minute if clock.frozen is None else clock.frozen
        return False
    clock.due, clock.frozen = clock.due + stood, None
    return minute >= clock.due


def replayed(one: Owned, numbers: Numbers, *, lowest: float) -> Sum:
    """Return what a setting would have done to one workload."""
    total, clock, length = Sum(), Clock(), len(one.gpus[0].minutes)
    paused_at: int | None = None
    for minute in range(length):
        held = [gpu for gpu in one.gpus if gpu.first <= minute < gpu.end]
        working = any(gpu.working(minute, lowest) for gpu in held)
        if paused_at is not None:
            if held and not working:
                seen = [gpu for gpu in held if gpu.sampled(minute) or gpu.sampled(minute - 1)]
                total.hours += len(seen) / 60
                continue
            if working and minute - paused_at <= 60:
                total.regrets += 1
            clock = Clock(awake=minute + numbers.window + 5 - 1 if working else 0)
            paused_at = None
        said = together(one, minute, numbers)
        if said == "idle" and minute < clock.awake:
            said = "unknown"
        if looked(clock, said, minute, numbers):
            paused_at = minute
            total.pauses += 1
    total.workloads = int(total.pauses > 0)
    return total


@dataclass
class Recorder:
    """A past in the making."""

    begin: float
    length: int
    rng: Random
    workloads: list[Owned] = field(default_factory=list)

    def values(self, *, holes: bool = False) -> list[float | None]:
        """Return stretches of work and of silence."""
        found: list[float | None] = []
        while len(found) < self.length:
            lasting = self.rng.choice((3, 10, 30, 60, 100, 200))
            found += [self.rng.choice((0.0, 0.0, 0.0, 0.9, 0.004))] * lasting
        for _ in range(8 if holes else 0):
            at, lasting = self.rng.randrange(self.length), self.rng.choice((1, 2, 4, 9, 50))
            found[at : at + lasting] = [None] * lasting
        del found[self.length :]
        found[-1] = 0.0  # what is there now is what is asked about
        return found

    def histories(self) -> Iterator[History]:
        """Yield the series as a server holds them, two samples a minute."""
        for one in self.workloads:
            for gpu in one.gpus:
                yield from self._gpu(one, gpu)
            yield from self._owner(one)

    def _gpu(self, one: Owned, gpu: Gpu) -> Iterator[History]:
        told = {"UUID": gpu.uuid, "Hostname": "node-a", "modelName": "NVIDIA H100 80GB HBM3"}
        told |= {"namespace": one.namespace, "pod": gpu.pod, "container": "main"}
        moments = [
            (self.begin + 60 * minute + second, minute)
            for minute in range(gpu.first, gpu.end)
            for second in (10, 40)
            if gpu.sampled(minute)
        ]
        labels = as_stored(told, honor_labels=False)
        yield History(ENGINE, labels, [(at, gpu.minutes[minute]) for at, minute in moments])
        yield History(ENERGY, labels, [(at, 70_000 * (at - self.begin)) for at, _ in moments])

    def _owner(self, one: Owned) -> Iterator[History]:
        if one.owner is None:
            return
        kind, name = one.owner
        always = [(self.begin + 60.0 * minute, 1.0) for minute in range(0, self.length, 2)]
        told = {"namespace": one.namespace, "owner_is_controller": "true", "job": "state"}
        for pod in dict.fromkeys(gpu.pod for gpu in one.gpus):
            above = ("ReplicaSet", f"{name}-1") if kind == "Deployment" else (kind, name)
            labels = told | {"pod": pod, "owner_kind": above[0], "owner_name": above[1]}
            yield History("kube_pod_owner", labels, always)
        if kind == "Deployment":
            labels = told | {"replicaset": f"{name}-1", "owner_kind": kind, "owner_name": name}
            yield History("kube_replicaset_owner", labels, always)

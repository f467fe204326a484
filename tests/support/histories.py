"""Seeded random pasts of small workloads: bursts, gaps, flaps, restarts, owners, late samples.

One history is one workload of one pod with one to three devices on a node of its own. A history is
a list of samples that random events then edit, so that every event also meets every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from support.oracle import DRAM, ENCODER, ENERGY, ENGINE, UTIL, Device
from support.prometheus import History, as_stored
from support.worlds import Pod, Tenant

MINUTE = 60.0
LENGTH = 170 * MINUTE
SCRAPE = 30.0
STRANGER = {"namespace": "team-gone", "pod": "gone-0", "container": "main"}
UNLABELLED = {"namespace": "", "pod": "", "container": ""}
MODEL = "NVIDIA H100 80GB HBM3"
BURSTS = (0.0005, 0.002, 0.0099, 0.0101, 0.05, 0.9)
"""Engine activity around the threshold of 0.01, and far above."""
GARBAGE = (218322032.0, float("nan"), -1.0, 5.0)
EVENTS = 7
"""Most events of one history."""


@dataclass
class Sample:
    """One scraped value on its way to the server."""

    metric: str
    at: float
    value: float
    labels: dict[str, str]
    late: bool = False
    """Whether it reaches the server only with the others that are late."""


@dataclass
class Past:
    """One workload's past."""

    seed: int
    begin: float
    arrival: float
    """When everything that was late arrives."""
    samples: list[Sample] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    changed_at: float | None = None
    """When the present pod took over."""

    @property
    def name(self) -> str:
        return f"history-{self.seed}"

    @property
    def node(self) -> str:
        return f"node-{self.seed}"

    @property
    def end(self) -> float:
        return self.begin + LENGTH

    def tenant(self, now: float) -> Tenant:
        """Return the workload as the API server knows it at a moment."""
        changed = self.changed_at is not None and now >= self.changed_at
        name = f"{self.name}-{'new' if changed else 'old'}"
        sliced = bool(self.devices[0][1])
        resource = "nvidia.com/mig-1g.10gb" if sliced else "nvidia.com/gpu"
        born = self.changed_at if changed else None
        pod = Pod(name, self.node, len(self.devices), born, resource)
        return Tenant(f"team-{self.seed}", self.name, (pod,))

    def owner(self, at: float) -> dict[str, str]:
        """Return the pod labels that are right at a moment."""
        tenant = self.tenant(at)
        return {"namespace": tenant.namespace, "pod": tenant.pods[0].name, "container": "main"}

    def edit(
        self, change: Callable[[Sample], None], *, begin: float, end: float, metrics: Iterable[str]
    ) -> None:
        """Change samples of some metrics between two moments; nothing else."""
        wanted = set(metrics)
        for sample in self.samples:
            if begin < sample.at <= end and sample.metric in wanted:
                change(sample)

    def drop(self, *, begin: float, end: float, metrics: Iterable[str]) -> None:
        """Take samples away."""
        wanted = set(metrics)
        self.samples = [
            one for one in self.samples if not (begin < one.at <= end and one.metric in wanted)
        ]


ALL = (ENGINE, DRAM, UTIL, ENCODER, ENERGY)


def past(seed: int, *, begin: float, arrival: float) -> Past:
    """Return the past of a seed."""
    rng = Random(seed)  # noqa: S311 - a seeded test
    made = Past(seed, begin, arrival)
    kind = rng.choices(("whole", "util", "slice"), (70, 20, 10))[0]
    if rng.random() < 0.15:
        made.changed_at = begin + rng.uniform(20, 150) * MINUTE
        made.events.append("owner change")
    for number in range(rng.choice((1, 1, 2, 3)) if kind != "slice" else 1):
        _device(made, number, kind, rng)
    for _ in range(rng.choice((0, 1, 2, 3, 4, EVENTS))):
        event = rng.choice((_burst, _burst, _gap, _flap, _restart, _freeze, _broken, _late, _late))
        made.events.append(event.__name__.strip("_"))
        event(made, rng)
    return made


def _device(made: Past, number: int, kind: str, rng: Random) -> None:
    uuid = f"GPU-{made.seed:04d}-{number}"
    mig = {"GPU_I_ID": "3", "GPU_I_PROFILE": "1g.10gb"} if kind == "slice" else {}
    made.devices.append((uuid, mig.get("GPU_I_ID", "")))
    metrics = {"whole": ALL, "util": (UTIL, ENCODER, ENERGY), "slice": (ENGINE, DRAM, ENERGY)}
    offset, millijoules = rng.uniform(1, SCRAPE - 1), rng.uniform(1e9, 1e12)
    for place in range(int(LENGTH / SCRAPE)):
        at = made.begin + offset + place * SCRAPE
        millijoules += 70_000 * SCRAPE + rng.uniform(0, 1000)
        for metric in metrics[kind]:
            own = {"UUID": uuid, "Hostname": made.node, "modelName": MODEL}
            own |= mig if metric != ENERGY else {}
            labels = own | (made.owner(at) if metric != ENERGY or not mig else {})
            value = float(round(millijoules)) if metric == ENERGY else 0.0
            made.samples.append(Sample(metric, at, value, labels))


def _stretch(made: Past, rng: Random, shortest: float, longest: float) -> tuple[float, float]:
    begin = made.begin + rng.uniform(5, 168) * MINUTE
    return begin, begin + rng.uniform(shortest, longest) * MINUTE


def _burst(made: Past, rng: Random) -> None:
    begin, end = _stretch(made, rng, 0.5, 10)
    metric = rng.choice((ENGINE, ENGINE, UTIL, ENCODER, DRAM))
    value = {ENGINE: rng.choice(BURSTS), DRAM: rng.choice((0.004, 0.2))}.get(
        metric, float(rng.randint(1, 100))
    )
    uuid = rng.choice(made.devices)[0]

    def change(sample: Sample) -> None:
        if sample.labels["UUID"] == uuid:
            sample.value = value

    made.edit(change, begin=begin, end=end, metrics=(metric,))


def _gap(made: Past, rng: Random) -> None:
    begin, end = _stretch(made, rng, 0.5, rng.choice((3, 15)))
    made.drop(begin=begin, end=end, metrics=rng.choice((ALL, ALL, (ENGINE,), (UTIL,), (ENERGY,))))


def _flap(made: Past, rng: Random) -> None:
    begin, end = _stretch(made, rng, 0.5, 8)
    other = rng.choice((UNLABELLED, UNLABELLED, STRANGER))
    made.edit(lambda one: one.labels.update(other), begin=begin, end=end, metrics=ALL)


def _restart(made: Past, rng: Random) -> None:
    begin, end = _stretch(made, rng, 0.3, 2.5)
    made.drop(begin=begin, end=end, metrics=ALL)
    new = {"+instance": f"10.0.0.{rng.randint(2, 9)}:9400", "+pod": "exporter-y"}
    made.edit(lambda one: one.labels.update(new), begin=end, end=made.end, metrics=ALL)


def _freeze(made: Past, rng: Random) -> None:
    begin, end = _stretch(made, rng, 3, 60)
    held: dict[str, float] = {}

    def change(sample: Sample) -> None:
        sample.value = held.setdefault(sample.labels["UUID"], sample.value)

    made.edit(change, begin=begin, end=end, metrics=(ENERGY,))


def _broken(made: Past, rng: Random) -> None:
    begin, _ = _stretch(made, rng, 0, 1)
    value = rng.choice(GARBAGE)

    def change(sample: Sample) -> None:
        sample.value = value

    made.edit(change, begin=begin, end=begin + MINUTE, metrics=(rng.choice((ENGINE, UTIL)),))


def _late(made: Past, rng: Random) -> None:
    """Let samples of the minutes before the arrival come with it, often with work among them."""
    begin = made.arrival - rng.uniform(0.5, rng.choice((3, 8))) * MINUTE
    metrics = rng.choice((ALL, ALL, (ENGINE,), (UTIL, ENCODER)))
    value = rng.choice((0.0, 0.0, 0.9))

    def change(sample: Sample) -> None:
        sample.late = True
        if sample.metric in {ENGINE, UTIL} and value:
            sample.value = value

    made.edit(change, begin=begin, end=made.arrival, metrics=metrics)


def stored(pasts: Iterable[Past], *, before_arrival: bool) -> list[History]:
    """Return what the server holds, before or after the late samples have come.

    Names with a plus are the target's labels: they go over the exporter's own.
    """
    series: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, float]]] = {}
    for one in pasts:
        for sample in one.samples:
            if sample.late and before_arrival:
                continue
            told = {key: text for key, text in sample.labels.items() if text and key[0] != "+"}
            target = {key[1:]: text for key, text in sample.labels.items() if key[0] == "+"}
            labels = as_stored(told, honor_labels=False, target=target)
            key = (sample.metric, tuple(sorted(labels.items())))
            series.setdefault(key, []).append((sample.at, sample.value))
    return [
        History(metric, dict(labels), sorted(points)) for (metric, labels), points in series.items()
    ]

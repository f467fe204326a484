"""What a GPU can be seen doing, and the per-step evidence of it.

A *track* is one exported series of one signal of one device, reduced to one value per step
(`observe` makes tracks). *Evidence* is what a judged period of tracks says about one device
(`decide.evidence` folds tracks into it). Screen and verify speak in the same two values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import TypeAlias

import msgspec

from gpu_pruner.model.units import Seconds, Timestamp


class Signal(StrEnum):
    """A kind of measurement. Units are those of a `Track`, whatever the exporter's own are."""

    ENGINE = "engine"
    """Share of time the compute or graphics engine was busy, ratio 0-1. Primary."""
    SM = "sm"
    """Share of time an SM had a warp resident, ratio 0-1. Primary where ENGINE is absent."""
    TENSOR = "tensor"
    """Share of time the tensor pipe was busy, ratio 0-1."""
    DRAM = "dram"
    """Share of time device memory was being read or written, ratio 0-1."""
    UTIL = "util"
    """NVML utilisation in the exporter's own scale (0-100, or 0-1); only `== 0` is scale-proof."""
    ENCODER = "encoder"
    """Video encoder utilisation, percent."""
    DECODER = "decoder"
    """Video decoder utilisation, percent."""
    JPEG = "jpeg"
    """JPEG engine utilisation, percent."""
    OFA = "ofa"
    """Optical-flow engine utilisation, percent."""
    COPY = "copy"
    """Memory-copy utilisation, percent."""
    PCIE = "pcie"
    """PCIe traffic, bytes per second."""
    NVLINK = "nvlink"
    """NVLink traffic, bytes per second."""
    POWER = "power"
    """Board power, watts."""
    ENERGY = "energy"
    """Energy since the driver was loaded, joules."""
    TEMPERATURE = "temperature"
    """GPU temperature, degrees Celsius."""
    MEMORY = "memory"
    """Frame-buffer memory in use, bytes."""
    XID = "xid"
    """Code of the last Xid error; never reset by the exporter."""


Meter: TypeAlias = tuple[str, Signal]
"""A device's model, as the exporter names it, and one signal of it."""


class DeviceId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One thing a pod can hold: a whole GPU, or one MIG slice of it.

    A Struct, because tens of thousands are looked up by it each minute.

    Source: DCGM labels ``UUID`` (of the physical GPU, also for slices) and ``GPU_I_ID``.
    """

    uuid: str
    """UUID of the physical GPU, as exported."""
    mig_instance: str = ""
    """GPU instance id of a MIG slice; empty for a whole GPU."""

    @property
    def board(self) -> DeviceId:
        """Return the physical GPU that this is, or is a slice of."""
        return self if not self.mig_instance else DeviceId(self.uuid)

    def __str__(self) -> str:
        """Write it as people name it: the UUID, with the slice behind a slash."""
        return f"{self.uuid}/{self.mig_instance}" if self.mig_instance else self.uuid


@dataclass(frozen=True, slots=True, order=True)
class PodName:
    """Namespace and name, as metric labels give them: which pod, but not which incarnation."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Write it as ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SeriesLabels:
    """Who and where a series says it is about. `resolve` checks it before anybody believes it."""

    exported: PodName | None = None
    """``exported_namespace``/``exported_pod``: the workload where honorLabels is false."""
    native: PodName | None = None
    """``namespace``/``pod``: the workload where honorLabels is true, else the exporter itself."""
    pod_uid: str = ""
    """``pod_uid``, where the exporter is asked to add it."""
    node: str = ""
    """``Hostname`` or ``hostname``; for display and the node check, never a key."""
    model: str = ""
    """``modelName``."""
    mig_profile: str = ""
    """``GPU_I_PROFILE`` of a slice, for example ``1g.10gb``."""
    replica: str = ""
    """``vgpu``: number of a time-slicing or MPS share. Present means the device is shared."""
    job: str = ""
    """Prometheus ``job``, or the scrape address of a directly scraped exporter."""


Steps: TypeAlias = tuple[tuple[int, float], ...]
"""(step number, value), ascending; step n covers (n x step, (n+1) x step] seconds. Steps without a
sample are absent. Not-a-number is kept as it came."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The device of a series, and everything else that its labels say.

    Compared as an object, because a hundred thousand are looked up each minute: whoever reads
    labels makes one for all label sets that say the same.
    """

    device: DeviceId
    labels: SeriesLabels


class Track(msgspec.Struct, frozen=True, gc=False):
    """One series of one signal of one device, one value per step in which it had a sample."""

    device: DeviceId
    signal: Signal
    metric: str
    """The metric's own name, for people."""
    labels: SeriesLabels
    steps: Steps
    """Peaks per step."""


class Column(msgspec.Struct, frozen=True, gc=False):
    """One metric of all devices over a slice: what a screen consists of.

    Many series share one tuple of steps, because most devices say the same; whoever reads a column
    need read each tuple only once.
    """

    signal: Signal
    metric: str
    """The metric's own name, for people."""
    series: Sequence[tuple[Subject, Steps]]
    """With peaks per step; or, where `moves` is set, with 1 in a step at whose end the value is
    another than a step before, and 0 where it is the same. Entries that speak of
    the same step of the same device say the same."""
    moves: bool = False


@dataclass(frozen=True, slots=True)
class Period:
    """A judged stretch of whole steps: first <= n <= last."""

    first: int
    last: int
    step_seconds: Seconds

    @property
    def steps(self) -> int:
        """Return how many steps there are; at least 0."""
        return max(0, self.last - self.first + 1)

    @property
    def start(self) -> Timestamp:
        """Return when the first step begins."""
        return self.first * self.step_seconds

    @property
    def end(self) -> Timestamp:
        """Return when the last step ends."""
        return (self.last + 1) * self.step_seconds

    @classmethod
    def ending(cls, moment: Timestamp, *, length: Seconds, step_seconds: Seconds) -> Period:
        """Return the period of whole steps of at least this length that ends at or before a moment.

        Args:
            moment: Unix seconds; the last whole step that is over by then is the last.
            length: seconds; rounded up to whole steps.
            step_seconds: length of a step in seconds.
        """
        last = int(moment // step_seconds) - 1
        count = int(-(-length // step_seconds))
        return cls(first=last - count + 1, last=last, step_seconds=step_seconds)

    def reaching(self, moment: Timestamp) -> Period:
        """Return the period with the steps after it that have begun by a moment.

        Args:
            moment: Unix seconds. The step that it lies in is unfinished, and the last one.
        """
        begun = ceil(moment / self.step_seconds) - 1
        return Period(self.first, max(self.last, begun), self.step_seconds)


@dataclass(frozen=True, slots=True)
class SignalEvidence:
    """What one signal of one device showed over a period, all its series together (maximum)."""

    signal: Signal
    metric: str
    """Name of the metric as exported, for people."""
    seen_steps: int
    """Steps of the period with a sample in them or in the step before."""
    active_steps: int
    """Steps whose peak counts as work under the rules."""
    last_active_at: Timestamp | None
    """End of the newest step that counts as work; None where there is none in the period."""
    invalid_steps: int
    """Steps with a value out of range or not a number."""
    changes: int
    """Steps whose value differs from the one seen before it."""
    newest_at: Timestamp
    """End of the newest step with a sample."""
    loud_steps: int = 0
    """Steps whose value is far above noise (UTIL at 5 and more), so that an idle ENGINE contradicts
    it; 0 for signals without such a mark."""
    peak: float | None = None
    """Highest value in the signal's unit; None where only facts were kept (the screen)."""
    peak_at: Timestamp | None = None
    """End of the step of that peak."""
    last_changed_at: Timestamp | None = None
    """End of the newest step that counts as a change; None where none does."""


class Draw(msgspec.Struct, frozen=True, gc=False):
    """Mean power of a device over a stretch of a period, by its energy counter."""

    watts: float
    """At least this much."""
    begin: Timestamp
    end: Timestamp


class DeviceEvidence(msgspec.Struct, frozen=True, gc=False):
    """Everything that is known about one device over one period."""

    device: DeviceId
    period: Period
    signals: tuple[SignalEvidence, ...]
    """At most one entry per signal, in the order of `Signal`. A missing signal was not exported."""
    owners: tuple[SeriesLabels, ...] = ()
    """Distinct label sets that named a pod in the period, the newest last."""
    node: str = ""
    """Node name as the exporter tells it; empty where it does not."""
    model: str = ""
    shared: bool = False
    """True where the labels show time-slicing or MPS replicas."""
    draw: Draw | None = None
    """The highest mean power over the period, or over a stretch of it in which the primary signal
    was not seen; None where energy was not counted, where only facts were kept (the screen), and
    for slices."""

    def of(self, signal: Signal) -> SignalEvidence | None:
        """Return the evidence of one signal, or None where the device does not export it."""
        return next((one for one in self.signals if one.signal is signal), None)

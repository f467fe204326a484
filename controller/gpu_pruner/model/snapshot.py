"""Everything one cycle decides from, as one value. `resolve.assemble` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_pruner.model.audience import Audience
from gpu_pruner.model.book import Book
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Meter, Period
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import GpuPod, Intent, OwnerObject, RootRef, Veto


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A root with all its GPU pods, its people's wishes, and what is remembered of it."""

    root: RootRef
    pods: tuple[GpuPod, ...] = ()
    """Live GPU pods, sorted by namespace and name. Empty for a paused root."""
    other_pods_left: int = 0
    """Live pods under the root that request no GPU, where known."""
    owner: OwnerObject | None = None
    """The root object itself; None for bare pods and for kinds that we cannot read."""
    lever: str | None = None
    """Name of the lever that would pause it, or None; `obstacle` then says why."""
    obstacle: Reason | None = None
    """Why it can never be paused, or None."""
    vetoes: tuple[Veto, ...] = ()
    """In order of weight: the first is the one that people are shown."""
    intent: Intent = Intent()
    book: Book = Book()
    audience: Audience = Audience()
    """Who is told about it. Nothing is decided by it."""
    warn_only: bool = False
    """Its owner is warned as in a rehearsal, and it is not paused."""
    tried_last: bool = False
    """A pause of it was tried and did not happen: others take their turn before it."""

    @property
    def gpus(self) -> int:
        """Return how many GPUs its live pods request."""
        return sum(pod.record.gpus for pod in self.pods)


SCREEN_FAILED = "ScreenFailed"
"""Name of the breaker that is open while telemetry is not complete."""

ALL_HELD = "AllHeld"
"""Name of the one breaker that people open themselves: nothing is broken then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A reason to do nothing at all in this cycle, for one sentence to the operator."""

    name: str
    """CamelCase word, also the metric label."""
    message: str
    """What is wrong and what would fix it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One cycle's view. The same snapshot, rules and clock give the same plan."""

    now: Timestamp
    period: Period
    """The period that the screen's evidence covers."""
    scrape_interval_seconds: Seconds
    workloads: tuple[Workload, ...] = ()
    """Sorted by root."""
    allocated_gpus: int = 0
    """GPUs requested by all live pods; the base of the budget's ratio."""
    breakers: tuple[Breaker, ...] = ()
    unattributed: tuple[str, ...] = ()
    """Devices with telemetry that no live GPU pod could be found for, for `check` and metrics."""
    loose: tuple[DeviceEvidence, ...] = ()
    """Evidence of those devices, sorted by device: it can still accuse their node's telemetry."""
    silenced: Mapping[DeviceId, Timestamp] = field(default_factory=dict)
    """Devices that fell quiet together with many others, and until when they are held unknown."""
    proven: frozenset[Meter] = frozenset()
    """Meters that were seen to show work."""
    unattended: Mapping[str, Timestamp] = field(default_factory=dict)
    """Since when nobody looked after the clock of a warning, by root uid: no replica led then."""

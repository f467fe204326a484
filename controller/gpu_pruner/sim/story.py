"""The story that `make demo` tells: eight workloads, and how each must end.

Half of them are idle and are paused, two of those are given back; the others stay for a reason.
`judge` compares the ending with this; `stage` plays it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpu_pruner.model.units import MINUTE, Seconds
from gpu_pruner.sim.world import Behaviour, Node, Override, Workload, World

WINDOW: Seconds = 35 * MINUTE
NOTICE: Seconds = 15 * MINUTE
"""The controller's own defaults: the demo runs with the numbers that a cluster would."""


class Ending(StrEnum):
    """How a workload's part must end."""

    PAUSED = "paused"
    RESUMED = "resumed"
    """Paused, then given back by a person."""
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One workload's part in the story."""

    workload: Workload
    ending: Ending
    reasons: frozenset[str]
    """Reasons that the controller may show at the end."""
    told: str
    """What this part shows, for the person who watches."""

    @property
    def ref(self) -> str:
        """Return ``kind/namespace/name``."""
        one = self.workload
        return f"{one.kind.lower()}/{one.namespace}/{one.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A world, and how its workloads must end."""

    nodes: tuple[Node, ...]
    parts: tuple[Part, ...]
    patience: Seconds
    """Simulated seconds after which a story that is not over has failed."""

    @property
    def world(self) -> World:
        """Return the world that the story begins with."""
        return World(nodes=self.nodes, workloads=tuple(part.workload for part in self.parts))


_IDLE = Behaviour()
_BUSY = Behaviour(activity=((0.0, 0.62),))
_LEFT = Behaviour(activity=((-120.0, 0.81), (2.0, 0.0)))
"""Works until minute 2, then nobody comes back."""
_HOLES = Behaviour(gaps=tuple((start, start + 9.0) for start in range(12, 600, 24)))
"""Nine minutes of every 24 without samples: never 33 of 35."""

PAUSED_REASONS = frozenset({"Paused"})
RESUMED_REASONS = frozenset({"Restored", "TooYoung", "LowCoverage", "OwnerChanged", "PodNotReady"})
"""After the restore the pods are young, and their telemetry is shorter than the window."""


def _part(ending: Ending, told: str, reasons: frozenset[str], workload: Workload) -> Part:
    return Part(workload=workload, ending=ending, reasons=reasons, told=told)


FIRST_STORY = Story(
    nodes=(
        Node(name="node-a", gpus=8),
        Node(name="node-b", gpus=8, model="NVIDIA A100-SXM4-80GB"),
        Node(name="node-c", gpus=4, model="NVIDIA L40S"),
    ),
    patience=150 * MINUTE,
    parts=(
        _part(
            Ending.RESUMED,
            "two GPUs, idle since minute 2",
            RESUMED_REASONS,
            Workload(kind="Deployment", namespace="team-a", name="train", gpus=2, behaviour=_LEFT),
        ),
        _part(
            Ending.RESUMED,
            "three idle replicas: comes back with three",
            RESUMED_REASONS,
            Workload(kind="Deployment", namespace="team-b", name="serve", replicas=3),
        ),
        _part(
            Ending.PAUSED,
            "two idle pods",
            PAUSED_REASONS,
            Workload(kind="StatefulSet", namespace="team-b", name="batch", replicas=2),
        ),
        _part(
            Ending.PAUSED,
            "an idle notebook: its stop annotation is the lever",
            PAUSED_REASONS,
            Workload(kind="Notebook", namespace="team-c", name="notebook-1"),
        ),
        _part(
            Ending.KEPT,
            "one busy GPU of four keeps the pod",
            frozenset({"GpuActive"}),
            Workload(
                kind="Deployment",
                namespace="team-a",
                name="finetune",
                gpus=4,
                overrides=(Override(gpu=3, behaviour=_BUSY),),
            ),
        ),
        _part(
            Ending.KEPT,
            "one busy replica keeps both",
            frozenset({"GpuActive"}),
            Workload(
                kind="StatefulSet",
                namespace="team-c",
                name="workers",
                replicas=2,
                overrides=(Override(pod=1, behaviour=_BUSY),),
            ),
        ),
        _part(
            Ending.KEPT,
            "holes in the metrics prove nothing",
            frozenset({"LowCoverage", "Stale", "NoSeries", "NotLive"}),
            Workload(kind="Deployment", namespace="team-c", name="evaluate", behaviour=_HOLES),
        ),
        _part(
            Ending.KEPT,
            "idle, and exempt by its owner's annotation",
            frozenset({"Exempt"}),
            Workload(
                kind="Deployment",
                namespace="team-b",
                name="standby",
                annotations={"gpu-pruner.io/exempt": "true"},
            ),
        ),
    ),
)

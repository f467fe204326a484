"""What the simulated world holds: nodes, namespaces, workloads, and what each GPU does when.

Frozen values, also readable from YAML. Minutes count from the begin of the simulation and may be
negative. A *step list* is ``[[from_minute, value], …]`` in ascending order; each value holds until
the next, and the first also holds before it. A *span list* is ``[[from_minute, to_minute], …]``.
Keys that are not known are refused, so that a typing error is not a silent default.
Used by `cluster`, `meter`, `kubelet` and the demo.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from gpu_pruner.errors import ConfigurationError

Steps: TypeAlias = tuple[tuple[float, float], ...]
Spans: TypeAlias = tuple[tuple[float, float], ...]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class Behaviour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one GPU does while a pod holds it."""

    activity: Steps = ((0.0, 0.0),)
    """True load, 0-1. Power, energy, temperature and the signals below follow it."""
    engine: Steps | None = None
    """What the engine-activity metric says instead of the load, ratio 0-1."""
    util: Steps | None = None
    """What the utilisation metric says instead of the load, percent."""
    encoder: Steps = ((0.0, 0.0),)
    """Video encoder load, percent."""
    gaps: Spans = ()
    """When the device's series are missing."""
    energy_frozen: Spans = ()
    """When the energy counter stands still."""
    memory_mib: Count = 8192
    """Device memory that the pod holds."""


class Override(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A behaviour for some of a workload's GPUs. The first that matches is taken."""

    pod: int | None = None
    """Index of the pod; None for every pod."""
    gpu: int | None = None
    """Index of the GPU within the pod; None for every GPU."""
    behaviour: Behaviour


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workload that exists when the simulation begins."""

    kind: str
    """``Deployment``, ``ReplicaSet``, ``StatefulSet``, ``Notebook``, ``LeaderWorkerSet``,
    ``InferenceService``, ``DaemonSet`` or ``Pod``."""
    namespace: str
    name: str
    replicas: Count = 1
    """Ignored for a Notebook, a Pod and a DaemonSet (one pod per node with GPUs free)."""
    group_size: Count = 1
    """Pods of each replica of a LeaderWorkerSet."""
    gpus: Count = 1
    """GPUs of each pod."""
    resource: str = "nvidia.com/gpu"
    node: str = ""
    """Where its pods must run; empty: anywhere."""
    started_minutes_ago: float = 120.0
    """When it was created, before the simulation's begin."""
    pods_deleted: tuple[float, ...] = ()
    """Minutes at which its pods are deleted, so that its controller makes new ones."""
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    behaviour: Behaviour = Behaviour()
    overrides: tuple[Override, ...] = ()

    def behaviour_of(self, pod: int, gpu: int) -> Behaviour:
        """Return what a GPU of a pod does.

        Args:
            pod: index of the pod within the workload.
            gpu: index of the GPU within the pod.
        """
        for override in self.overrides:
            if override.pod in {None, pod} and override.gpu in {None, gpu}:
                return override.behaviour
        return self.behaviour


class Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine with GPUs and a DCGM exporter."""

    name: str
    gpus: Count = 8
    model: str = "NVIDIA H100 80GB HBM3"
    ready: bool = True
    mig: tuple[str, ...] = ()
    """Profiles of the MIG slices on *each* GPU, for example ``[1g.10gb, 1g.10gb]``."""
    shares: Annotated[int, msgspec.Meta(ge=1)] = 1
    """How many pods may hold each GPU at once, by time-slicing. Above 1 the node offers
    ``nvidia.com/gpu.shared``; the loads of those who share a GPU add up. Not together with `mig`.
    """
    labels: dict[str, str] = {}
    exporter_gaps: Spans = ()
    """When the exporter does not answer."""


class Namespace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A namespace with wishes of its own. Those that workloads name exist without an entry."""

    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class World(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that exists when the simulation begins."""

    nodes: tuple[Node, ...] = (Node(name="node-1"),)
    workloads: tuple[Workload, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    seed: int = 1
    collect_seconds: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    """How often an exporter reads its GPUs."""
    absent_kinds: tuple[str, ...] = ()
    """Kinds that this API server does not know, for example ``Notebook``."""

    @classmethod
    def load(cls, path: Path) -> World:
        """Read a world from a YAML file.

        Raises:
            ConfigurationError: the file cannot be read or is not a world; names the place.
        """
        try:
            return cls.parse(path.read_bytes())
        except OSError as error:
            raise ConfigurationError(str(error.strerror), path=str(path)) from error
        except ConfigurationError as error:
            raise ConfigurationError(str(error), path=str(path)) from error

    @classmethod
    def parse(cls, document: bytes | str) -> World:
        """Read a world from YAML text.

        Raises:
            ConfigurationError: it is not a world; names the place as a path from ``$``.
        """
        try:
            return msgspec.yaml.decode(document, type=cls)
        except msgspec.DecodeError as error:
            raise ConfigurationError(f"not a simulated world: {error}"[:400]) from error

    def workload(self, kind: str, *, namespace: str, name: str) -> Workload | None:
        """Return the description of a workload, or None for one that was made later."""
        key = (kind, namespace, name)
        matches = (one for one in self.workloads if (one.kind, one.namespace, one.name) == key)
        return next(matches, None)


def value_at(steps: Steps, minute: float) -> float:
    """Return the value of a step list at a minute; 0 for an empty list."""
    value = steps[0][1] if steps else 0.0
    for start, level in steps:
        if start > minute:
            break
        value = level
    return value


def integral(steps: Steps, *, start: float, end: float) -> float:
    """Return the integral of a step list over minutes, in value x minutes."""
    if end <= start:
        return 0.0
    edges = [start, *(at for at, _ in steps if start < at < end), end]
    return sum(value_at(steps, left) * (right - left) for left, right in pairwise(edges))


def within(spans: Spans, minute: float) -> bool:
    """Tell whether a minute lies in one of the spans, begin included, end not."""
    return any(start <= minute < end for start, end in spans)

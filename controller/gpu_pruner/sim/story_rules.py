"""What a story must keep to beyond the types of its fields: names, ranges, order, size, room.

Pure. `story_file` puts the line before every fault.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from gpu_pruner.settings.document import Keys
from gpu_pruner.sim.occupancy import SHARED
from gpu_pruner.sim.resources import BUILT_IN, OTHERS_KINDS
from gpu_pruner.sim.story import Ending, Part, Story
from gpu_pruner.sim.world import Behaviour, Node, Spans, Steps

KINDS = (
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "Notebook",
    "LeaderWorkerSet",
    "InferenceService",
    "DaemonSet",
    "Pod",
)
"""Kinds whose pods a simulated cluster makes."""

MOST_DEVICES, MOST_PODS = 512, 256
"""What one process plays at the default speed on two cores."""
LONGEST_MINUTES = 24 * 60.0
"""A simulated day; it takes 48 minutes at the default speed."""

OLDEST_MINUTES = 10 * 365 * 24 * 60.0
"""Ten years: no workload is older, and every clock can tell the time of it."""

_NEVER_PAUSED = frozenset({"Pod", "DaemonSet"})
_SINGLE = frozenset({"Notebook", "Pod"})
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
"""A DNS label, short enough for the names that controllers make of it."""
_MIG = re.compile(r"[0-9]g\.[0-9]+gb")
_RATIO, _PERCENT = (0.0, 1.0), (0.0, 100.0)


class Fault(NamedTuple):
    """One thing that is wrong."""

    keys: Keys
    """Path of the place: names, and numbers of items from 0."""
    message: str


def faults_of(story: Story) -> Iterator[Fault]:
    """Yield everything that is wrong with a story."""
    if not 0 < story.minutes <= LONGEST_MINUTES:
        yield Fault(("minutes",), f"must be above 0 and at most {LONGEST_MINUTES:.0f}")
    if not story.workloads:
        yield Fault(("workloads",), "must hold at least one workload")
    for kind in story.absent_kinds:
        if kind not in {one.kind for one in (*BUILT_IN, *OTHERS_KINDS)}:
            yield Fault(("absent_kinds",), f"{kind!r} is no kind of this cluster")
    yield from _twice("nodes", [one.name for one in story.nodes])
    yield from _twice("workloads", [one.ref for one in story.workloads])
    yield from _twice("namespaces", [one.name for one in story.namespaces])
    yield from _size(story)
    for number, space in enumerate(story.namespaces):
        yield from _within(("namespaces", str(number)), _named("name", space.name))
    for number, node in enumerate(story.nodes):
        yield from _within(("nodes", str(number)), _of_node(node))
    for number, part in enumerate(story.workloads):
        yield from _within(("workloads", str(number)), _of_part(part, story))


def _within(keys: Keys, faults: Iterator[Fault]) -> Iterator[Fault]:
    return (Fault((*keys, *one.keys), one.message) for one in faults)


def _twice(key: str, names: list[str]) -> Iterator[Fault]:
    for number, name in enumerate(names):
        if name in names[:number]:
            yield Fault((key, str(number)), f"{name!r} is there already")


def _size(story: Story) -> Iterator[Fault]:
    # What is empty costs time as well, and none must become large by hiding behind a zero.
    devices = sum(max(1, one.gpus) * one.shares * max(1, len(one.mig)) for one in story.nodes)
    if devices > MOST_DEVICES:
        yield Fault(("nodes",), f"have {devices} GPUs and parts; at most {MOST_DEVICES} are played")
    pods = sum(max(1, one.replicas) * max(1, one.group_size) for one in story.workloads)
    if pods > MOST_PODS:
        yield Fault(("workloads",), f"have {pods} pods; at most {MOST_PODS} are played")


def _of_node(node: Node) -> Iterator[Fault]:
    yield from _named("name", node.name)
    if node.mig and node.shares > 1:
        yield Fault(("shares",), "cannot be shared and cut into MIG slices at once")
    for number, profile in enumerate(node.mig):
        if not _MIG.fullmatch(profile):
            yield Fault(("mig", str(number)), f"{profile!r} is no profile such as '1g.10gb'")
    yield from _spans(("exporter_gaps",), node.exporter_gaps)


def _of_part(part: Part, story: Story) -> Iterator[Fault]:
    yield from _named("name", part.name)
    yield from _named("namespace", part.namespace)
    if part.kind not in KINDS:
        yield Fault(("kind",), f"{part.kind!r} is none of {', '.join(KINDS)}")
    elif part.kind in story.absent_kinds:
        yield Fault(("kind",), "is among the absent_kinds")
    if part.kind in _SINGLE and part.replicas != 1:
        yield Fault(("replicas",), f"a {part.kind} has one pod")
    if part.kind != "LeaderWorkerSet" and part.group_size != 1:
        yield Fault(("group_size",), "only a LeaderWorkerSet has groups")
    if not 0 <= part.started_minutes_ago <= OLDEST_MINUTES:
        yield Fault(("started_minutes_ago",), "must be 0 or more, and at most ten years")
    if not all(0 < one <= LONGEST_MINUTES for one in part.pods_deleted):
        yield Fault(("pods_deleted",), "must be minutes after the begin")
    if not part.told.isprintable():
        yield Fault(("told",), "must be one line, without control characters")
    if part.gpus < 1:
        yield Fault(("gpus",), "must be at least 1: only what requests GPUs is looked at")
    yield from _room(part, story)
    yield from _role(part)
    yield from _within(("behaviour",), _of_behaviour(part.behaviour))
    for number, one in enumerate(part.overrides):
        inner = ("overrides", str(number), "behaviour")
        yield from _within(inner, _of_behaviour(one.behaviour))


def _room(part: Part, story: Story) -> Iterator[Fault]:
    """A workload that can never be placed would only be a slip."""
    named = [one for one in story.nodes if part.node in {"", one.name}]
    if not named:
        yield Fault(("node",), f"there is no node {part.node!r}")
        return
    offered = Counter[str]()
    for node in named:
        for name, count in _offers(node).items():
            offered[name] = max(offered[name], count)
    if not offered[part.resource]:
        known = ", ".join(sorted(offered)) or "none"
        where = f"node {part.node}" if part.node else "any node"
        yield Fault(("resource",), f"{part.resource!r} is not on {where}; there is {known}")
    elif part.gpus > offered[part.resource]:
        told = f"no node has {part.gpus} of {part.resource}; the most is {offered[part.resource]}"
        yield Fault(("gpus",), told)


def _offers(node: Node) -> Counter[str]:
    if node.shares > 1:
        return Counter({SHARED: node.gpus * node.shares})
    if node.mig:
        return Counter(f"nvidia.com/mig-{one}" for one in node.mig for _ in range(node.gpus))
    return Counter({"nvidia.com/gpu": node.gpus})


def _role(part: Part) -> Iterator[Fault]:
    if part.ending in {Ending.PAUSED, Ending.RESUMED} and part.kind in _NEVER_PAUSED:
        yield Fault(("ending",), f"a {part.kind} is never paused")
    if part.keep and part.ending not in {Ending.KEPT, Ending.OPEN}:
        yield Fault(("keep",), f"what is kept by a person is not {part.ending.value}")


def _of_behaviour(one: Behaviour) -> Iterator[Fault]:
    yield from _steps(("activity",), one.activity, _RATIO)
    yield from _steps(("engine",), one.engine or (), _RATIO)
    yield from _steps(("util",), one.util or (), _PERCENT)
    yield from _steps(("encoder",), one.encoder, _PERCENT)
    yield from _spans(("gaps",), one.gaps)
    yield from _spans(("energy_frozen",), one.energy_frozen)


def _steps(keys: Keys, steps: Steps, limits: tuple[float, float]) -> Iterator[Fault]:
    low, high = limits
    for number, (minute, value) in enumerate(steps):
        if not math.isfinite(minute) or not low <= value <= high:
            told = f"must be a minute and a value from {low:g} to {high:g}"
            yield Fault((*keys, str(number)), told)
    if any(after[0] <= before[0] for before, after in pairwise(steps)):
        yield Fault(keys, "must be in the order of their minutes")


def _spans(keys: Keys, spans: Spans) -> Iterator[Fault]:
    for number, (begin, end) in enumerate(spans):
        if not (math.isfinite(begin) and math.isfinite(end) and begin < end):
            yield Fault((*keys, str(number)), "must begin before it ends")


def _named(key: str, name: str) -> Iterator[Fault]:
    if not _NAME.fullmatch(name):
        told = "must be 1 to 40 of a-z, 0-9 and '-', with a letter or digit at both ends"
        yield Fault((key,), told)

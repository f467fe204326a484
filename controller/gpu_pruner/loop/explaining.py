"""One workload as somebody asks about it: measured in full, and decided as a cycle would.

Answers which workloads a question is about, and what the plan says of each when its devices are
measured over the whole window. The same plan, the same verification and the same rules as a cycle;
it keeps the tracks, for pictures, and never notifies, acts or remembers. `loop.cycle` calls it for
`explain` and for the API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from typing_extensions import override

from gpu_pruner.decide.plan import plan
from gpu_pruner.loop.verification import Measures, verify
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.plan import Decision, Verification
from gpu_pruner.model.rules import Mode, Rules
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period, Track
from gpu_pruner.model.snapshot import Snapshot, Workload
from gpu_pruner.model.workload import GpuPod, RootRef
from gpu_pruner.resolve.attribution import node_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody asks about: exactly one of the three."""

    root: RootRef | None = None
    """By kind, namespace and name; a pod stands for the root that it belongs to."""
    node: str = ""
    """Every workload with a GPU pod on this node."""
    device: str = ""
    """Every workload that holds this GPU, by UUID, or by UUID and slice."""

    @override
    def __str__(self) -> str:
        """Write it as people do."""
        if self.root is not None:
            return self.root.ref
        return f"node/{self.node}" if self.node else f"gpu/{self.device}"

    def is_about(self, workload: Workload) -> bool:
        """Whether a workload is meant."""
        if self.root is None:
            return any(map(self._names, workload.pods))
        if self.root.kind == "Pod":
            names = {(pod.record.namespace, pod.record.name) for pod in workload.pods}
            if (self.root.namespace, self.root.name) in names:
                return True
        return workload.root.ref == self.root.ref

    def names_device(self, evidence: DeviceEvidence) -> bool:
        """Whether a device is the one that is asked about, or a slice of it."""
        return self.device in {evidence.device.uuid, str(evidence.device)}

    def _names(self, pod: GpuPod) -> bool:
        if self.node:
            return node_key(pod.record.node) == node_key(self.node)
        return any(map(self.names_device, pod.devices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """One workload, decided on a measurement of its devices over the whole window."""

    decision: Decision
    screened: Decision
    """What a cycle knows of it without a measurement."""
    verification: Verification | None
    """None where it holds no device that could be measured."""
    tracks: tuple[Track, ...] = ()
    """What was measured, of its devices and their boards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that is known about what somebody asked."""

    snapshot: Snapshot
    view: ClusterView
    rules: Rules
    """That the decisions were made with."""
    examined: tuple[Examined, ...] = ()
    """Sorted by root; empty where nothing that holds GPUs is called so."""

    def is_there(self, question: Question) -> bool:
        """Whether what was asked about exists, with or without GPUs, as far as we watch it."""
        if self.examined:
            return True
        if question.root is not None:
            return question.root.ref in {one.root.ref for one in self.view.owners.values()}
        if question.node:
            return node_key(question.node) in map(node_key, self.view.nodes)
        return any(question.names_device(one) for one in self.snapshot.loose)

    def names(self) -> frozenset[str]:
        """Return everything that could have been asked about."""
        return frozenset(self._names())

    def _names(self) -> Iterator[str]:
        yield from (f"node/{name}" for name in self.view.nodes)
        yield from (f"gpu/{one.device.uuid}" for one in self.snapshot.loose)
        for workload in self.snapshot.workloads:
            yield workload.root.ref
            for pod in workload.pods:
                yield f"pod/{pod.record.namespace}/{pod.record.name}"
                yield from (f"gpu/{one.device.uuid}" for one in pod.devices)


async def answered(
    question: Question,
    snapshot: Snapshot,
    view: ClusterView,
    *,
    source: Measures,
    clock: Clock,
    rules: Rules,
) -> Answer:
    """Measure what a question is about, and decide on it.

    The plan is made of the whole snapshot, because other workloads of a node can accuse its
    telemetry, and others may stand before it in the budget.

    Args:
        question: what is asked.
        snapshot: a cycle's view, with every workload.
        view: the cluster that it was made of.
        source: what to measure with.
        clock: for the moment of the measurement.
        rules: of the cycle.

    Returns:
        The answer; empty where nothing in the snapshot is meant.
    """
    meant = [one for one in snapshot.workloads if question.is_about(one)]
    uids = frozenset(one.root.uid for one in meant)
    if not meant:
        return Answer(snapshot=snapshot, view=view, rules=rules)
    # In a thread: a large fleet takes longer than an event loop may stand still.
    first = await asyncio.to_thread(plan, snapshot, rules)
    wanted = await asyncio.to_thread(plan, snapshot, rules, examined=uids)
    screened, asked = _by_uid(first.decisions, uids), _by_uid(wanted.decisions, uids)
    recorder = _Recorder(source)
    measurable = [one for one in asked.values() if any(pod.devices for pod in one.workload.pods)]
    verified = await verify(measurable, recorder, clock=clock, rules=rules)
    final = await asyncio.to_thread(plan, snapshot, rules, verifications=verified, examined=uids)
    return Answer(
        snapshot=snapshot,
        view=view,
        rules=rules,
        examined=tuple(
            Examined(
                decision=one,
                screened=screened[uid],
                verification=verified.get(uid),
                tracks=recorder.about(one),
            )
            for uid, one in _by_uid(final.decisions, uids).items()
        ),
    )


def as_it_runs(
    question: Question, snapshot: Snapshot, view: ClusterView, *, rules: Rules
) -> tuple[Snapshot, Rules]:
    """Return a snapshot, and rules, as the controller that gave its warnings has them.

    Somebody who looks from outside does not know the controller's mode. The books tell it, and a
    warning is no less given because the onlooker's own mode is another.

    Args:
        question: whose books tell first.
        snapshot: of the onlooker.
        view: the cluster, with the books as they are.
        rules: of the onlooker.
    """
    books = {one.root.uid: view.books[one.root.uid].book.warned_mode
             for one in snapshot.workloads
             if one.root.uid in view.books and question.is_about(one)}  # fmt: skip
    mode = next((Mode(one) for one in books.values() if one in set(Mode)), rules.mode)
    workloads = tuple(
        replace(one, book=replace(one.book, warned_mode=mode.value))
        if one.book.warned_mode
        else one
        for one in snapshot.workloads
    )
    return replace(snapshot, workloads=workloads), replace(rules, mode=mode)


def _by_uid(decisions: tuple[Decision, ...], uids: frozenset[str]) -> dict[str, Decision]:
    ordered = sorted(decisions, key=lambda one: one.workload.root.order)
    return {one.workload.root.uid: one for one in ordered if one.workload.root.uid in uids}


@dataclass(slots=True)
class _Recorder:
    """Passes measurements on, and keeps the tracks."""

    source: Measures
    tracks: list[Track] = field(default_factory=list)

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        """Measure."""
        found = await self.source.verify(devices, period)
        self.tracks.extend(found)
        return found

    def about(self, decision: Decision) -> tuple[Track, ...]:
        """Return the tracks of one workload's devices, and of their boards."""
        held = {one.device for pod in decision.workload.pods for one in pod.devices}
        held |= {one.board for one in held}
        return tuple(dict.fromkeys(one for one in self.tracks if one.device in held))

"""What changed for many devices at once between two complete screens.

It answers which devices lost their data while their pods run on, which fell quiet together, and
which meters were seen to show work. One device that is lost or quiet is that device's own affair
(`device`); many in the same minute are more likely a broken pipeline. It never judges a workload.
`loop.cycle` feels the pulse of every complete screen, keeps it, and applies it to the snapshot.

It is a cache: without the pulse before (a cold start) nothing counts as lost or fallen quiet.

Source: ARCHITECTURE section 6, breakers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from gpu_pruner.decide.breaker import data_lost
from gpu_pruner.decide.device import Yardstick, needed_for, primary_of
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Meter
from gpu_pruner.model.snapshot import Snapshot
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.model.workload import PodPhase, RootRef

_TOGETHER: Seconds = 2 * MINUTE
"""Devices whose work ended within this time fell quiet together; quiet for less is not quiet."""

_REMEMBERED: Seconds = 5 * _TOGETHER
"""For how long a device that fell quiet may be joined by others."""

_LEAST_SILENCED = 8
_LEAST_ROOTS = 3
_LEAST_SHARE = 0.30
"""Of the allocated GPUs."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A device with data, as one complete screen showed it."""

    pod: str
    """uid of the pod that holds it."""
    root: RootRef
    busy: bool
    worked_at: Timestamp | None
    """End of the newest step with work in the judged period; None where there is none."""
    needed: Seconds
    """How long it has to be quiet."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A device that fell quiet in a moment shared with many."""

    pod: str
    since: Timestamp
    until: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What is remembered from one complete screen to the next."""

    beats: Mapping[DeviceId, Beat] = field(default_factory=dict)
    lost: Mapping[DeviceId, tuple[str, Timestamp]] = field(default_factory=dict)
    """Devices that lost their data within the last window: pod uid, and when it was noticed."""
    fallen: Mapping[DeviceId, Timestamp] = field(default_factory=dict)
    """Devices that were seen busy and are quiet since this moment, a few minutes ago."""
    silenced: Mapping[DeviceId, Silence] = field(default_factory=dict)
    proven: frozenset[Meter] = frozenset()


def feel(
    snapshot: Snapshot,
    view: ClusterView,
    *,
    before: Pulse | None,
    rules: Rules,
    proven: frozenset[Meter] = frozenset(),
) -> Pulse:
    """Compare a complete screen with the one before it.

    Args:
        snapshot: assembled from a complete screen.
        view: for the nodes' readiness.
        before: the pulse of the last complete screen; None at a cold start.
        rules: for the window.
        proven: meters that showed work before, as the telemetry source remembers.
    """
    standing = _standing(snapshot, view)
    yardstick = Yardstick(
        rules=rules,
        at=snapshot.now,
        scrape_interval_seconds=snapshot.scrape_interval_seconds,
    )
    beats = dict(_beats(snapshot, standing, yardstick))
    last = before or Pulse()
    fallen = _fallen(last, beats, now=snapshot.now)
    return Pulse(
        beats=beats,
        lost=_lost(last, beats, standing=standing, since=snapshot.now - rules.window_seconds)
        | _newly_lost(last, beats, standing=standing, now=snapshot.now),
        fallen=fallen,
        silenced=_still_silent(last, beats, now=snapshot.now)
        | _silenced(fallen, beats, allocated=snapshot.allocated_gpus, rules=rules),
        proven=last.proven | proven | _proven(snapshot),
    )


def applied(snapshot: Snapshot, pulse: Pulse | None) -> Snapshot:
    """Return the snapshot with what the pulse says about it: a breaker, and devices to doubt."""
    if pulse is None:
        return snapshot
    with_data = len(pulse.beats) + len(pulse.lost)
    found = (*snapshot.breakers, *data_lost(len(pulse.lost), of=with_data))
    return replace(
        snapshot,
        breakers=tuple(sorted(found, key=lambda one: (one.name, one.message))),
        silenced={
            device: one.until for device, one in pulse.silenced.items() if snapshot.now < one.until
        },
        proven=pulse.proven,
    )


def _standing(snapshot: Snapshot, view: ClusterView) -> set[str]:
    """Return the uids of pods that run, on Ready nodes: only theirs can lose their data."""
    ready = {name for name, node in view.nodes.items() if node.ready}
    return {
        pod.record.uid
        for workload in snapshot.workloads
        for pod in workload.pods
        if pod.record.node in ready
        and pod.record.phase is PodPhase.RUNNING
        and not pod.record.terminating
    }


def _beats(
    snapshot: Snapshot, standing: set[str], yardstick: Yardstick
) -> Iterator[tuple[DeviceId, Beat]]:
    """Yield every device that a standing pod holds and that has data of its own."""
    for workload in snapshot.workloads:
        for pod in workload.pods:
            if pod.record.uid not in standing:
                continue
            for one in pod.devices:
                beat = None if one.shared else _beat(pod.record.uid, workload.root, one, yardstick)
                if beat is not None:
                    yield one.device, beat


def _beat(pod: str, root: RootRef, evidence: DeviceEvidence, yardstick: Yardstick) -> Beat | None:
    """Return the beat of a device; None where it has no data to be judged by."""
    primary = primary_of(evidence)
    if primary is None or yardstick.at - primary.newest_at > yardstick.freshness_seconds:
        return None
    worked_at: Timestamp | None = None
    for one in evidence.signals:
        at = one.last_active_at
        if at is not None and (worked_at is None or at > worked_at):
            worked_at = at
    busy = worked_at is not None and yardstick.at - worked_at < _TOGETHER
    return Beat(pod, root, busy, worked_at, needed_for(primary, yardstick.rules))


def _lost(
    last: Pulse, beats: Mapping[DeviceId, Beat], *, standing: set[str], since: Timestamp
) -> dict[DeviceId, tuple[str, Timestamp]]:
    """Return the losses that still count: the pod runs on, and a window has not yet passed."""
    return {
        device: (pod, at)
        for device, (pod, at) in last.lost.items()
        if device not in beats and pod in standing and at > since
    }


def _newly_lost(
    last: Pulse, beats: Mapping[DeviceId, Beat], *, standing: set[str], now: Timestamp
) -> dict[DeviceId, tuple[str, Timestamp]]:
    return {
        device: (beat.pod, now)
        for device, beat in last.beats.items()
        if device not in beats and beat.pod in standing
    }


def _fallen(
    last: Pulse, beats: Mapping[DeviceId, Beat], *, now: Timestamp
) -> dict[DeviceId, Timestamp]:
    """Return the devices whose work was seen, and seen to end, a few minutes ago."""
    found: dict[DeviceId, Timestamp] = {}
    for device, since in last.fallen.items():
        beat = beats.get(device)
        if beat is not None and beat.worked_at == since and now - since <= _REMEMBERED:
            found[device] = since
    for device, was in last.beats.items():
        beat = beats.get(device)
        if was.busy and beat is not None and not beat.busy and beat.worked_at is not None:
            found[device] = beat.worked_at
    return found


def _silenced(
    fallen: Mapping[DeviceId, Timestamp],
    beats: Mapping[DeviceId, Beat],
    *,
    allocated: int,
    rules: Rules,
) -> dict[DeviceId, Silence]:
    """Return the devices that are part of a crowd that fell quiet within the same two minutes."""
    crowded: dict[DeviceId, Silence] = {}
    ordered = sorted(fallen.items(), key=lambda item: (item[1], item[0]))
    begin = 0
    for end, (_, since) in enumerate(ordered):
        while since - ordered[begin][1] > _TOGETHER:
            begin += 1
        crowd = ordered[begin : end + 1]
        if len(crowd) < max(_LEAST_SILENCED, _LEAST_SHARE * allocated):
            continue
        if len({beats[device].root for device, _ in crowd}) < _LEAST_ROOTS:
            continue
        for device, at in crowd:
            beat = beats[device]
            until = at + beat.needed + rules.window_seconds
            crowded[device] = Silence(beat.pod, at, until)
    return crowded


def _still_silent(
    last: Pulse, beats: Mapping[DeviceId, Beat], *, now: Timestamp
) -> dict[DeviceId, Silence]:
    """Return the silences that have not ended: by work, by another pod, or by time."""
    kept: dict[DeviceId, Silence] = {}
    for device, silence in last.silenced.items():
        beat = beats.get(device)
        if beat is not None:
            works = beat.worked_at is not None and beat.worked_at > silence.since
            if works or beat.pod != silence.pod:
                continue
        if now < silence.until:
            kept[device] = silence
    return kept


def _proven(snapshot: Snapshot) -> frozenset[Meter]:
    """Return the meters that show work on any device, held or not."""
    held = (one for work in snapshot.workloads for pod in work.pods for one in pod.devices)
    return frozenset(
        (evidence.model, one.signal)
        for evidence in (*held, *snapshot.loose)
        if evidence.model
        for one in evidence.signals
        if one.last_active_at is not None
    )

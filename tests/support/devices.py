"""Simulated devices for cases: what each step of each signal reads, and which labels it carries.

A device is `idle`, `busy`, or a mapping of what differs from an idle one:

    engine: 0.008                  every step reads this (any `Signal` by name)
    engine: 0.4 at -20m            one step does, the others are quiet
    encoder: 60 from 5m to 10m     some steps do
    engine: absent | nan           never exported | not a number
    engine: gone from -20m         no sample of this signal in a stretch
    energy: moving | frozen        likewise power and temperature
    energy: 70W                    what it draws; moving is next to nothing
    energy: 70W and 500W from -14m to -10m   more in a stretch
    energy: 70W reset at -10m      the counter begins anew
    energy: moving until -20m      it stands still since; from -5m: it did before
    gap: -25m to -15m              no sample of anything
    slice: "1", uuid: GPU-x        a MIG slice of that board
    labels: exported | native | none
    previous: team-b/old until -20m      another pod's name before
    unlabelled: -20m to -15m             the exporter's own name meanwhile
    also: team-b/other                   a second, equal set of series for another pod
    twin: {engine: 0.9}                  the same device once more, scraped by a second job
    restarted: from -20m                 since then the series carry another job
    uid: p-1, node: node-9, replica: "0", model: NVIDIA GB10
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from support.telling_time import START, stretch

from gpu_pruner.model.signals import DeviceId, PodName, SeriesLabels, Signal, Track

STEP_SECONDS = 60.0
COUNTED_FROM = START - 86_400.0
"""When the driver was loaded, from which on energy counts."""

EXPORTER = PodName("gpu-operator", "dcgm-exporter-1")
MODEL = "NVIDIA H100 80GB HBM3"
TIMED = {"previous", "unlabelled", "restarted"}
"""Keys of a spec that make labels change over time."""

BUSY = {"engine": 0.9, "util": 95}

Spec = Mapping[str, object]
Reading = Callable[[float], float | None]
Steps = tuple[tuple[int, float], ...]

_METRICS = {
    Signal.ENGINE: "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    Signal.UTIL: "DCGM_FI_DEV_GPU_UTIL",
    Signal.ENERGY: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
}
_SIGNALS = {str(one): one for one in Signal}
_SLICE_READS = {Signal.ENGINE: "0", Signal.ENERGY: "moving"}
_GPU_READS = _SLICE_READS | {Signal.UTIL: "0"}
_MOVING = {Signal.ENERGY, Signal.POWER, Signal.TEMPERATURE}


def device_spec(text: object) -> dict[str, object]:
    """Return a device's mapping: ``idle`` and ``busy`` are short for one."""
    if isinstance(text, Mapping):
        return dict(text)
    return {"idle": {}, "busy": dict(BUSY)}[str(text)]


@lru_cache(maxsize=4096)
def reading(text: str, signal: Signal) -> Reading | None:
    """Return what a signal reads at the end of a step; None where it is never exported."""
    if text == "absent":
        return None
    if text.startswith("moving"):
        when = text.partition(" ")[2]
        first, last = stretch(when) if when else (-math.inf, math.inf)
        if signal is Signal.ENERGY:
            return lambda at: min(max(at, first), last) / 10
        return lambda at: 40 + at / STEP_SECONDS % 30  # watts and degrees come and go
    if text == "frozen":
        return lambda _: 34.0
    if signal is Signal.ENERGY and "W" in text:
        return _counter(text)
    return _told(text)


def _counter(text: str) -> Reading:
    """Read how many watts a device draws, as the joules that its counter says."""
    usual, _, more = text.partition(" ")
    word, _, rest = more.partition(" ")
    watts = float(usual.rstrip("W"))
    if word == "reset":
        _, anew = stretch(rest)
        return lambda at: watts * (at - anew if at > anew else at - COUNTED_FROM)
    if not word:
        return lambda at: watts * (at - COUNTED_FROM)
    extra, _, when = rest.partition(" ")
    begin, end = stretch(when.removeprefix("from "))
    added = float(extra.rstrip("W")) - watts
    return lambda at: watts * (at - COUNTED_FROM) + added * max(0.0, min(at, end) - begin)


def _told(text: str) -> Reading:
    value, _, when = text.partition(" ")
    if value == "gone":
        first, until = stretch(when)
        return lambda at: None if first < at <= until else 0.0
    loud = math.nan if value == "nan" else float(value)
    if not when:
        return lambda _: loud
    quiet = 0.0
    begin, end = stretch(when)
    return lambda at: loud if begin < at and at - STEP_SECONDS < end <= math.inf else quiet


@lru_cache(maxsize=1 << 14)
def steps_of(text: str, signal: Signal, ends: tuple[tuple[int, float], ...]) -> Steps:
    """Return the samples of a signal; those of devices that are told alike are one value."""
    read = reading(text, signal)
    if read is None:
        return ()
    return tuple((step, value) for step, end in ends if (value := read(end)) is not None)


@lru_cache(maxsize=1 << 10)
def ends_of(first: int, last: int, width: float, gap: str) -> tuple[tuple[int, float], ...]:
    """Return the steps with their ends, but for those in a gap."""
    ends = [(step, (step + 1) * width) for step in range(first, last + 1)]
    return tuple((step, end) for step, end in ends if not gap or not _within(end, gap))


@dataclass
class Device:
    """One device of a story."""

    id: DeviceId
    spec: dict[str, object]
    pod: PodName | None = None
    node: str = "node-1"
    step_seconds: float = STEP_SECONDS
    readings: dict[Signal, str] = field(default_factory=dict)
    """What is told of each signal that it exports."""

    def __post_init__(self) -> None:
        told = dict(_SLICE_READS if self.id.mig_instance else _GPU_READS)
        told |= {_SIGNALS[key]: str(self.spec[key]) for key in self.spec if key in _SIGNALS}
        self.readings = {signal: text for signal, text in told.items() if text != "absent"}

    def tracks(self, first: int, last: int) -> list[Track]:
        """Return the device's tracks over the steps first <= n <= last."""
        ends = ends_of(first, last, self.step_seconds, str(self.spec.get("gap", "")))
        groups: dict[tuple[SeriesLabels, ...], tuple[tuple[int, float], ...]] = {}
        if not TIMED & self.spec.keys():
            groups[self._labels(0.0)] = ends
        else:
            for one in ends:
                labels = self._labels(one[1])
                groups[labels] = (*groups.get(labels, ()), one)
        found: list[Track] = []
        for labels, inside in groups.items():
            for signal, text in self.readings.items():
                steps, name = steps_of(text, signal, inside), _METRICS.get(signal, signal.name)
                found += [Track(self._of(signal), signal, name, one, steps) for one in labels]
        found += self._twins(ends)
        return [track for track in found if track.steps]

    def _twins(self, ends: tuple[tuple[int, float], ...]) -> list[Track]:
        """Return what a second job says about the device."""
        told = self.spec.get("twin", {})
        found: list[Track] = []
        for name, text in (told if isinstance(told, Mapping) else {}).items():
            signal = Signal(name)
            steps = steps_of(str(text), signal, ends)
            labels = replace(self._labels(0.0)[0], job="second")
            found.append(Track(self._of(signal), signal, _METRICS[signal], labels, steps))
        return found

    def _of(self, signal: Signal) -> DeviceId:
        return self.id.board if signal in _MOVING else self.id

    def _labels(self, end: float) -> tuple[SeriesLabels, ...]:
        owner = self.pod
        if "previous" in self.spec:
            name, _, when = str(self.spec["previous"]).partition(" ")
            owner = pod_name(name) if _within(end, when) else owner
        scheme = self.spec.get("labels", "exported")
        if owner is None or scheme == "none":
            return (self._signed(None, "exported"),)
        if "unlabelled" in self.spec and _within(end, str(self.spec["unlabelled"])):
            return (self._signed(None, "exported"),)
        own = self._signed(owner, str(scheme))
        if "restarted" in self.spec and _within(end, str(self.spec["restarted"])):
            own = replace(own, job="second")
        if "also" not in self.spec:
            return (own,)
        return own, self._signed(pod_name(str(self.spec["also"])), str(scheme))

    def _signed(self, owner: PodName | None, scheme: str) -> SeriesLabels:
        return signed(
            owner,
            scheme,
            uid=str(self.spec.get("uid", "")) if owner is not None else "",
            node=str(self.spec.get("node", self.node)),
            model=str(self.spec.get("model", MODEL)),
            replica=str(self.spec.get("replica", "")),
            mig_profile="1g.10gb" if self.id.mig_instance else "",
        )


@lru_cache(maxsize=1 << 14)
def signed(  # one object for the labels of all series of a device, as a source makes them
    owner: PodName | None,
    scheme: str,
    *,
    uid: str,
    node: str,
    model: str,
    replica: str,
    mig_profile: str,
) -> SeriesLabels:
    """Return the labels under which a device's samples are stored."""
    return SeriesLabels(
        exported=owner if scheme == "exported" else None,
        native=owner if owner is not None and scheme == "native" else EXPORTER,
        pod_uid=uid,
        node=node,
        model=model,
        replica=replica,
        mig_profile=mig_profile,
    )


def pod_name(text: str) -> PodName:
    """Read ``namespace/name``."""
    namespace, _, name = text.partition("/")
    return PodName(namespace, name)


def _within(end: float, text: str) -> bool:
    begin, last = stretch(text)
    return begin < end <= last

"""What every GPU would measure at a moment: pure arithmetic over the world and its holdings.

Imitates a Hopper GPU behind dcgm-exporter: engine activity is an average over the collect
interval, utilisation a look at its end, and energy a counter in millijoules that always grows.
The counter is a closed-form integral, so back-filled history and live scrapes agree to the
millijoule whatever was asked for when. It never reads a clock. Called by `exporter` and `history`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.sim.identity import fraction
from gpu_pruner.sim.occupancy import Device, Holding, Occupancy
from gpu_pruner.sim.world import Behaviour, World, integral, value_at, within

_WEEK: Seconds = 7 * 24 * 3600.0
_CONTEXT_WATTS = 32.0
"""What a CUDA context costs whatever it does (measured on such boards: 26-66 W)."""
_IDLE = Behaviour(memory_mib=0)


@dataclass(frozen=True, slots=True)
class Board:
    """Figures of a GPU model, of the size that public measurements give."""

    idle_watts: float
    busy_watts: float
    memory_mib: int
    sm_clock_mhz: int


_BOARDS = {
    "H100": Board(70.0, 640.0, 81559, 1980),
    "H200": Board(75.0, 660.0, 143771, 1980),
    "A100": Board(52.0, 390.0, 81920, 1410),
    "L40S": Board(35.0, 330.0, 46068, 2520),
    "L4": Board(13.0, 70.0, 23034, 2040),
    "T4": Board(10.0, 68.0, 15360, 1590),
}
_UNKNOWN_BOARD = Board(50.0, 300.0, 40960, 1500)


def board_of(model: str) -> Board:
    """Return the figures of a model by its marketing name; of a middling GPU if unknown."""
    words = model.replace("-", " ").split()
    return next((_BOARDS[word] for word in words if word in _BOARDS), _UNKNOWN_BOARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one device shows from one collect to the next."""

    engine: float
    """Ratio 0-1."""
    load: float
    """True load at the end of the interval, ratio 0-1."""
    util_percent: int
    encoder_percent: int
    power_watts: float
    energy_millijoules: int
    temperature_celsius: int
    memory_used_mib: int
    memory_free_mib: int
    sm_clock_mhz: int


class Meter:
    """Reads the devices of a world at any moment, past or present."""

    def __init__(self, world: World, occupancy: Occupancy, *, begin: Timestamp) -> None:
        self._world = world
        self._occupancy = occupancy
        self._begin = begin

    def minute(self, moment: Timestamp) -> float:
        """Return a moment in minutes since the begin of the simulation."""
        return (moment - self._begin) / MINUTE

    def collected_at(self, node: str, moment: Timestamp) -> Timestamp:
        """Return when a node's exporter last read its GPUs; each node has its own phase."""
        interval = self._world.collect_seconds
        phase = fraction(self._world.seed, "phase", node) * interval
        return math.floor((moment - phase) / interval) * interval + phase

    def is_missing(self, device: Device, moment: Timestamp) -> bool:
        """Tell whether the device's series are missing at a moment."""
        holder = self._occupancy.holder(device, moment)
        return holder is not None and within(holder.behaviour.gaps, self.minute(moment))

    def read(self, device: Device, moment: Timestamp) -> Reading:
        """Return what the exporter shows of a device at a moment: the last collect before it."""
        at = self.collected_at(device.node, moment)
        holder = self._occupancy.holder(device, at)
        behaviour = holder.behaviour if holder else _IDLE
        minute, board = self.minute(at), board_of(device.model)
        load = min(1.0, sum(self._load(one, at) for one in self._sharers(device, at)))
        util = load * 100 if behaviour.util is None else value_at(behaviour.util, minute)
        noise = fraction(self._world.seed, device.uuid, at) - 0.5
        used = min(self._memory_mib(device, at), board.memory_mib)
        return Reading(
            engine=self._engine(device, at),
            load=load,
            util_percent=round(util),
            encoder_percent=round(value_at(behaviour.encoder, minute)) if holder else 0,
            power_watts=self._watts(device, at) + 3.0 * noise,
            energy_millijoules=self._energy(device, at),
            temperature_celsius=round(31 + 42 * load + 2 * noise),
            memory_used_mib=used,
            memory_free_mib=board.memory_mib - used,
            sm_clock_mhz=board.sm_clock_mhz if load > 0 else 345,
        )

    def _load(self, holder: Holding, at: Timestamp) -> float:
        return value_at(holder.behaviour.activity, self.minute(at))

    def _memory_mib(self, device: Device, at: Timestamp) -> int:
        return sum(one.behaviour.memory_mib for one in self._sharers(device, at))

    def _sharers(self, device: Device, at: Timestamp) -> tuple[Holding, ...]:
        """Return who holds the device at a moment: of a shared GPU, everybody on the board."""
        devices = self._board(device) if device.share else (device,)
        found = (self._occupancy.holder(one, at) for one in devices)
        return tuple(one for one in found if one is not None)

    def _engine(self, device: Device, at: Timestamp) -> float:
        holder = self._occupancy.holder(device, at)
        if holder is not None and holder.behaviour.engine is not None:
            return value_at(holder.behaviour.engine, self.minute(at))
        interval = self._world.collect_seconds
        devices = self._board(device) if device.share else (device,)
        work = sum(self._work(one, start=at - interval, end=at) for one in devices)
        return min(1.0, work / interval)

    def _work(self, device: Device, *, start: Timestamp, end: Timestamp) -> Seconds:
        """Return the integral of the load, in busy seconds."""
        total = 0.0
        for one in self._occupancy.holders(device):
            left, right = max(start, one.since), min(end, one.until)
            if left < right:
                start_minute, end_minute = self.minute(left), self.minute(right)
                load = integral(one.behaviour.activity, start=start_minute, end=end_minute)
                total += load * MINUTE
        return total

    def _watts(self, device: Device, at: Timestamp) -> float:
        board = board_of(device.model)
        loads = [
            self._load(one, at)
            for other in self._board(device)
            if (one := self._occupancy.holder(other, at)) is not None
        ]
        span = board.busy_watts - board.idle_watts - _CONTEXT_WATTS
        busy = sum(loads) * self._part(device) * span
        return board.idle_watts + (_CONTEXT_WATTS if loads else 0.0) + busy

    def _part(self, device: Device) -> float:
        """Return how much of the board a device at full load makes work: a slice only its part."""
        return 1 / len(self._board(device)) if device.mig_instance else 1.0

    def _board(self, device: Device) -> tuple[Device, ...]:
        """Return the device itself, or all slices or shares of the GPU that it is one of."""
        if not (device.mig_instance or device.share):
            return (device,)
        return tuple(one for one in self._occupancy.devices[device.node] if one.uuid == device.uuid)

    def _energy(self, device: Device, at: Timestamp) -> int:
        at = self._thawed(device, at)
        board = board_of(device.model)
        origin = self._begin - _WEEK
        start = fraction(self._world.seed, "energy", device.uuid) * 1e9
        span = board.busy_watts - board.idle_watts - _CONTEXT_WATTS
        others = self._board(device)
        joules = board.idle_watts * (at - origin)
        joules += _CONTEXT_WATTS * self._held_seconds(others, at)
        work = sum(self._work(one, start=origin, end=at) for one in others)
        joules += work * span * self._part(device)
        return round(start + joules * 1000)

    def _held_seconds(self, devices: tuple[Device, ...], at: Timestamp) -> Seconds:
        """Return how long the board had any context: the union of all holdings before a moment."""
        spans = sorted(
            (one.since, min(one.until, at))
            for device in devices
            for one in self._occupancy.holders(device)
            if one.since < at
        )
        total, reached = 0.0, -math.inf
        for since, until in spans:
            total += max(0.0, until - max(since, reached))
            reached = max(reached, until)
        return total

    def _thawed(self, device: Device, at: Timestamp) -> Timestamp:
        """Return the moment whose energy the counter shows: the begin of a freeze within it."""
        holder = self._occupancy.holder(device, at)
        for start, end in holder.behaviour.energy_frozen if holder else ():
            if start <= self.minute(at) < end:
                return self._begin + start * MINUTE
        return at

"""What is true of a told world, found out from its raw readings and nothing of `decide`."""

from __future__ import annotations

import itertools
import math

from support.devices import Device
from support.telling_time import moment
from support.world import World

from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import Signal

RANGES = {Signal.ENGINE: (0.0, 1.1), Signal.UTIL: (0.0, 100.0), Signal.ENCODER: (0.0, 100.0)}
QUIET_BELOW = {Signal.UTIL: 1e-300, Signal.ENCODER: 1e-300}
NEEDED_OF_35 = 33


def samples(device: Device, signal: Signal, *, now: float, back: float) -> dict[int, float]:
    """Return every sample of a signal by step, from one step before the stretch on."""
    last = int(now // 60) - 1
    first = last - int(back // 60)
    found: dict[int, float] = {}
    for track in device.tracks(first, last):
        if track.signal is signal:
            for step, value in track.steps:
                found[step] = max(value, found.get(step, -math.inf))
    return found


def is_quiet(device: Device, rules: Rules, *, now: float, back: float) -> bool:
    """Whether nothing on the device shows work or garbage in the stretch."""
    last = int(now // 60) - 1
    first = last - int(back // 60) + 1
    for signal, (low, high) in RANGES.items():
        limit = QUIET_BELOW.get(signal, rules.idle_threshold)
        for step, value in samples(device, signal, now=now, back=back).items():
            inside = first <= step <= last
            if inside and not (low <= value <= high and value < limit):
                return False
    return True


def is_covered(device: Device, *, now: float, back: float) -> bool:
    """Whether the primary signal is there, all the time, until now."""
    steps = int(back // 60)
    last = int(now // 60) - 1
    signal = Signal.ENGINE if Signal.ENGINE in device.readings else Signal.UTIL
    found = samples(device, signal, now=now, back=back)
    seen = [n for n in range(last - steps + 1, last + 1) if n in found or n - 1 in found]
    fresh = any(now - (step + 1) * 60 <= 90 for step in found)
    return fresh and len(seen) >= int(steps * 0.945)


def is_alive(device: Device, *, now: float, back: float) -> bool:
    """Whether energy, or where there is none temperature, moved ten times."""
    told = [one for one in (Signal.ENERGY, Signal.TEMPERATURE) if one in device.readings]
    if not told:
        return False
    found = samples(device, told[0], now=now, back=back)
    values = [found[step] for step in sorted(found)]
    return sum(a != b for a, b in itertools.pairwise(values)) >= 10


def is_idle(device: Device, rules: Rules, *, now: float) -> bool:
    """Whether a device by itself deserves to be called idle."""
    util_only = Signal.ENGINE not in device.readings
    back = rules.window_seconds * (2 if util_only else 1)
    return bool(
        device.readings.keys() & {Signal.ENGINE, Signal.UTIL}
        and is_quiet(device, rules, now=now, back=back)
        and is_covered(device, now=now, back=back)
        and is_alive(device, now=now, back=back)
    )


def are_idle_shares(world: World, node: str, rules: Rules, *, now: float) -> bool:
    """Whether every shared device of a node is idle by engine activity."""
    return all(
        Signal.ENGINE in device.readings and is_idle(device, rules, now=now)
        for device in world.devices()
        if "replica" in device.spec and device.node == node and is_placed(device)
    )


def is_placed(device: Device) -> bool:
    """Whether anything tells that a device is of its node: the name of the node, or of a pod.

    Of one that names neither nobody can know.
    """
    told = str(device.spec.get("node", device.node)).partition(".")[0]
    return told == device.node or device.spec.get("labels") != "none"


def is_provably_idle(world: World, name: str, rules: Rules, *, now: float) -> bool:
    """Whether every device of a workload, as told, deserves to be called idle."""
    spec = world.workloads[name]
    for device in world.devices():
        if not device.id.uuid.startswith(f"GPU-{name}-"):
            continue
        labelled = device.spec.get("labels", "exported") != "none"
        if not (labelled and is_idle(device, rules, now=now)):
            return False
        if "replica" in device.spec and not are_idle_shares(world, device.node, rules, now=now):
            return False
    return all(_is_settled(pod, rules, now=now) for pod in spec["pods"])


def _is_settled(pod: dict[str, object], rules: Rules, *, now: float) -> bool:
    """Whether a pod is long Ready, or pending for too long to count."""
    if pod.get("phase") == "Pending":
        return now - moment(str(pod["created"])) > rules.shield_seconds
    gpus = pod["gpus"]
    requests = pod.get("requests", {"nvidia.com/gpu": len(gpus) if isinstance(gpus, list) else 0})
    ready = now - moment(str(pod.get("ready", "-7d")))
    return (
        "terminating" not in pod
        and isinstance(gpus, list)
        and requests == {"nvidia.com/gpu": len(gpus)}
        and ready >= rules.window_seconds + rules.settle_seconds
    )

"""Full-window checks of the roots that a plan wants to warn or pause. The verify is the truth.

Called by `loop.cycle` between the first plan and the second. A check that fails refuses its own
root only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from gpu_pruner.decide.evidence import measured
from gpu_pruner.errors import ObservationError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.plan import Decision, Verification
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period, Track


class Measures(Protocol):
    """What a verification needs of a telemetry source: its full-window question."""

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        """Return the tracks of these devices and their boards; see `model.telemetry`."""
        ...


async def verify(
    decisions: Iterable[Decision], source: Measures, *, clock: Clock, rules: Rules
) -> Mapping[str, Verification]:
    """Measure the devices of each decision over the period it names, and on to now.

    Returns:
        Verification by root uid; one for every decision with a period.
    """
    found: dict[str, Verification] = {}
    for decision in decisions:
        if decision.verify is not None:
            found[decision.workload.root.uid] = await _verify_one(
                decision, source, clock=clock, rules=rules
            )
    return found


async def _verify_one(
    decision: Decision, source: Measures, *, clock: Clock, rules: Rules
) -> Verification:
    period = decision.verify
    devices = tuple(device.device for pod in decision.workload.pods for device in pod.devices)
    at = clock.now()
    if period is None or not devices:
        return Verification(at=at, failure="no device is known to verify")
    try:
        tracks = await source.verify(devices, period.reaching(at))
    except ObservationError as error:
        return Verification(at=at, failure=str(error))

    def over(stretch: Period) -> tuple[DeviceEvidence, ...]:
        return tuple(
            measured(device, _about(device, tracks), period=stretch, at=at, rules=rules)
            for device in devices
        )

    recent = () if decision.window is None else over(decision.window)
    return Verification(at=at, evidence=over(period), recent=recent)


def _about(device: DeviceId, tracks: tuple[Track, ...]) -> tuple[Track, ...]:
    return tuple(track for track in tracks if track.device in (device, device.board))

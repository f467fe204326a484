"""What a telemetry source hands over: Prometheus and the direct scraper speak in these alike."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from gpu_pruner.model.signals import Column, DeviceId, Meter, Period, Track
from gpu_pruner.model.survey import Survey
from gpu_pruner.model.units import Seconds, Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The newest slice of telemetry for all devices. It nominates; it never convicts."""

    period: Period
    """Steps that the slice covers; the first may have been seen before."""
    columns: tuple[Column, ...]
    """Per metric, all devices: primary and activity signals as peaks, liveness as movement. Some
    metrics may be told of for the later steps only."""
    scrape_interval_seconds: Seconds
    """Estimated time between samples of one series."""
    clock_skew_seconds: Seconds = 0.0
    """The source's clock minus ours."""
    proven: frozenset[Meter] = frozenset()
    """Meters that showed work in the last days, as far as the source can tell."""
    notes: tuple[str, ...] = ()
    """For the operator: label scheme found, unknown metric names, informational notes."""


class TelemetrySource(Protocol):
    """Where telemetry comes from. Real ones: `observe.prometheus`, `observe.scrape`."""

    async def start(self) -> None:
        """Begin background work, where the source has any."""
        ...

    async def screen(self, *, now: Timestamp, back_to: Timestamp) -> Screen:
        """Return the newest whole steps for all devices.

        Args:
            now: our time, Unix seconds.
            back_to: begin of the slice; the source may widen it to whole steps but not narrow it,
                unless it holds no older data.

        Raises:
            ObservationError: no complete answer. Nothing may then be concluded in this cycle.
        """
        ...

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        """Return every track of these devices over the full period, all fields, labelled or not.

        Tracks of a slice's board (energy, power, temperature) are included.

        Raises:
            ObservationError: no complete answer; these devices' workloads are then refused.
        """
        ...

    async def survey(self, *, now: Timestamp) -> Survey:
        """Tell what there is to be had, for a person who sets it up; never asked in a cycle.

        Args:
            now: our time, Unix seconds.

        Raises:
            ObservationError: no complete answer.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...

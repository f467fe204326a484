"""The first verb: one screen of telemetry and one view of the cluster, with what is wrong of both.

Called by `loop.cycle`. Keeps the table of per-device facts between cycles; a failed screen leaves
the table as it was and shows as a breaker, never as idleness.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.errors import ObservationError
from gpu_pruner.loop.ports import Cluster, Hubs
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence, DeviceId, Period
from gpu_pruner.model.telemetry import Screen, TelemetrySource
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.resolve.assemble import Reading

SHORTEST_SLICE: Seconds = 3 * MINUTE
"""A screen asks for at least this much, so that a late sample is seen after all (§6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one cycle has to go by."""

    at: Timestamp
    view: ClusterView
    screen: Screen | None
    """None where the telemetry source gave no complete answer."""
    failure: str = ""
    """Why there is no screen, in one sentence with the fix."""


class Observer:
    """Asks the telemetry source and the cluster, and remembers the newest facts per device."""

    def __init__(
        self,
        source: TelemetrySource,
        cluster: Cluster,
        rules: Rules,
        *,
        hubs: Hubs | None = None,
        windows: int = 2,
    ) -> None:
        """Begin with nothing seen.

        Args:
            source: of telemetry.
            cluster: as it is known.
            rules: to judge by.
            hubs: JupyterHubs, where there are any.
            windows: of so many the first look asks for; devices with utilisation only need two.
        """
        self._windows = windows
        self._source = source
        self._cluster = cluster
        self._hubs = hubs
        self._rules = rules
        self._scrape_interval: Seconds = MINUTE / 2
        self._step_seconds: Seconds = MINUTE
        self._seen_until: Timestamp | None = None
        self._table = ScreenTable()
        self._evidence: Mapping[DeviceId, DeviceEvidence] = {}

    def obey(self, rules: Rules) -> None:
        """Go by other rules from the next look on."""
        self._rules = rules

    async def look(self, now: Timestamp) -> Observation:
        """Return this cycle's observation and absorb its screen into the table."""
        failure = ""
        screen: Screen | None = None
        try:
            screen = await self._source.screen(now=now, back_to=self._back_to(now))
        except ObservationError as error:
            failure = str(error)
        else:
            self._scrape_interval = screen.scrape_interval_seconds
            self._step_seconds = screen.period.step_seconds
            self._seen_until = screen.period.end
            # In a thread: a large fleet takes longer than the event loop may stand still.
            self._evidence = await asyncio.to_thread(self._absorbed, screen)
        if self._hubs is not None:
            await self._hubs.look()
        return Observation(at=now, view=self.view(), screen=screen, failure=failure)

    def view(self) -> ClusterView:
        """Return the cluster as it is known now, with JupyterHub servers as of the last look."""
        view = self._cluster.view()
        return view if self._hubs is None else self._hubs.laid_over(view)

    def reading(self, now: Timestamp, *, honor_labels: bool | None) -> Reading:
        """Return what is known of every device over the judged window.

        The window ends with the newest step that a screen covered, so that a cycle between two
        steps does not count the unfinished one as a gap.

        Args:
            now: the end of the window where no screen was ever answered.
            honor_labels: which pod labels hold the workload; None: by meaning.
        """
        return Reading(
            period=self._period(now),
            scrape_interval_seconds=self._scrape_interval,
            evidence=self._evidence,
            honor_labels=honor_labels,
        )

    def _absorbed(self, screen: Screen) -> Mapping[DeviceId, DeviceEvidence]:
        """Absorb a screen, and return what is known of the window that ends with it."""
        self._table.absorb(screen, self._rules)
        return self._table.evidence(self._period(screen.period.end))

    def _period(self, now: Timestamp) -> Period:
        return Period.ending(
            now if self._seen_until is None else self._seen_until,
            length=self._rules.window_seconds,
            step_seconds=self._step_seconds,
        )

    def _back_to(self, now: Timestamp) -> Timestamp:
        """Return where the slice must begin: the last success and two scrapes, or the window.

        A hole of a device that came back is looked into once, because its samples may be late.
        """
        latest = now - max(SHORTEST_SLICE, 3 * self._scrape_interval)
        cold_start = now - self._windows * self._rules.window_seconds - SHORTEST_SLICE
        if self._seen_until is None:
            return cold_start
        begin = min(latest, self._seen_until - 2 * self._scrape_interval)
        if self._table.hole_from is not None:
            begin = min(begin, self._table.hole_from * self._step_seconds)
        return max(cold_start, begin)

"""Telemetry from Prometheus, or anything that answers like it.

`screen` asks for the newest steps of all devices, `verify` for a full period of a few; both by the
same per-step queries (`promql`). It answers with tracks, or raises an `ObservationError`; partial
answers are errors. It chooses no owners and decides nothing. Called by `loop` only.

One source has one connection and one thread, in which requests and decoding run one after another.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from prometheus_api_client import PrometheusConnect

from gpu_pruner.errors import IncompleteData, PrometheusError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.signals import DeviceId, Period, Track
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp, rfc3339
from gpu_pruner.observe import backends, notes, promql
from gpu_pruner.observe import prometheus_probe as probing
from gpu_pruner.observe.labels import Identities
from gpu_pruner.observe.profiles import Field, fields_of
from gpu_pruner.observe.prometheus_probe import Names, Probe
from gpu_pruner.observe.prometheus_replies import QueryTooLarge, Series, points
from gpu_pruner.observe.prometheus_transport import RETRY, Transport
from gpu_pruner.observe.promql import Scope, Slice
from gpu_pruner.observe.tracks import Steps, TrackTable
from gpu_pruner.settings.schema import PrometheusSettings

SHORTEST_SCREEN: Seconds = 3 * MINUTE
"""A screen covers at least this, or three scrapes, so that late samples are seen after all."""

_SERVER_SHARE = 0.9
"""Share of our time limit that the server gets, so that it is the one that says why it gave up."""

_PATIENCE = 10
"""A screen or verify is given up after this many time limits: no endless cutting into parts."""

_NAMES_EVERY: Seconds = 4 * MINUTE
"""Distance of the moments at which a verify looks which metrics there were. A sample is visible
for five minutes, so none is missed between two of them."""

_LOST_SHARE = 0.9
"""With fewer series than this share of the most since the last probe, the next cycle probes."""

_LABELS = msgspec.json.Decoder(dict[str, str])
T = TypeVar("T")


def _labels(metric: bytes) -> dict[str, str]:
    return _LABELS.decode(metric)


class PrometheusSource:
    """A `TelemetrySource` over the query API."""

    def __init__(self, settings: PrometheusSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._transport = Transport(settings, clock=clock)
        self._client = PrometheusConnect(
            self._transport.url, session=self._transport, method="POST", retry=RETRY
        )
        server_timeout = settings.timeout_seconds * _SERVER_SHARE
        self._timeout = {"timeout": f"{server_timeout:g}"}
        self._parameters: Mapping[str, str] = self._timeout
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="prometheus")
        self._fields = fields_of(settings.profiles)
        self._scope = _scope(settings)
        self._identities = Identities(_labels, node_label=settings.node_label)
        self._probe: Probe | None = None
        self._probed_at: Timestamp = 0.0
        self._held = 0
        self._interval: Seconds | None = None
        self._give_up_at = 0.0
        self._closed = False

    async def start(self) -> None:
        """Do nothing: the first screen connects, and says what is wrong if it cannot."""

    async def screen(self, *, now: Timestamp, back_to: Timestamp) -> Screen:
        """Return the newest whole steps for all devices; see `TelemetrySource`.

        A slice that begins long ago (cold start) is asked for in parts, so that no answer is
        unbounded.
        """
        return await self._run(lambda: self._screen(now, back_to))

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        """Return every track of these devices over the full period; see `TelemetrySource`.

        Values that are not a number or below zero come as tracks of their own.
        """
        return await self._run(lambda: self._verify(devices, period))

    async def close(self) -> None:
        """Stop after the request that is under way, and release connections."""
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._transport.close()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._timed, work)

    def _timed(self, work: Callable[[], T]) -> T:
        self._give_up_at = time.monotonic() + _PATIENCE * self._settings.timeout_seconds
        return work()

    def _screen(self, now: Timestamp, back_to: Timestamp) -> Screen:
        probe = self._known(now)
        interval = self._interval or probing.DEFAULT_INTERVAL
        length = max(now - back_to, SHORTEST_SCREEN, 3 * interval)
        step = probing.step_seconds(interval)
        period = Period.ending(now, length=length, step_seconds=step)
        table = TrackTable()
        for field, silence_matters in probe.screened:
            query = promql.peaks if silence_matters else promql.work
            for part in promql.slices_for_all(period, probe.series):
                self._ask(query, field, part, table)
        if not len(table):
            raise PrometheusError(self._nothing(now))
        self._look_again(len(table))
        return Screen(
            period=period,
            tracks=table.tracks(period),
            scrape_interval_seconds=interval,
            clock_skew_seconds=self._transport.clock_skew_seconds,
            notes=self._notes(probe),
        )

    def _verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        uuids = tuple(sorted({device.uuid for device in devices}))
        table = TrackTable()
        for part in promql.slices_for(uuids, period):
            for field in self._exported(part):
                self._ask(promql.peaks, field, part, table)
                self._ask(promql.flaws, field, part, table)
        return table.tracks(period, devices)

    def _exported(self, part: Slice) -> list[Field]:
        """Return the fields that some devices exported at any time of a period."""
        width = _NAMES_EVERY
        whole = Period(int(part.period.start // width), int(part.period.end // width), width)
        answer = self._range(promql.names(self._fields, part, self._scope), whole)
        found = {_labels(bytes(one.metric)).get("__name__") for one in answer}
        return [one for one in self._fields if one.metric in found]

    def _ask(
        self,
        query: Callable[[Field, Slice, Scope], str],
        field: Field,
        part: Slice,
        table: TrackTable,
    ) -> None:
        """Ask for one field of one slice, in smaller parts where the server wants that."""
        step = int(part.period.step_seconds)
        try:
            answer = self._range(query(field, part, self._scope), part.period)
        except QueryTooLarge:
            smaller = part.split()
            if not smaller:
                raise
            for one in smaller:
                self._ask(query, field, one, table)
            return
        named = (
            (identity, bytes(one.values))
            for one in answer
            if (identity := self._identities.of(bytes(one.metric))) is not None
        )
        numbers = _Numbers(step)
        table.take(field, named, read=lambda values: _steps(values, numbers))

    def _range(self, query: str, period: Period) -> list[Series]:
        self._check_time()
        step = period.step_seconds
        answer: list[Series] = self._client.custom_query_range(
            query,
            start_time=datetime.fromtimestamp(period.start + step, UTC),
            end_time=datetime.fromtimestamp(period.end, UTC),
            step=f"{step:g}",
            params=dict(self._parameters),
        )
        return answer

    def _instant(self, query: str, at: Timestamp) -> list[Series]:
        self._check_time()
        answer: list[Series] = self._client.custom_query(
            query, params={"time": f"{at:.3f}", **self._parameters}
        )
        return answer

    def _check_time(self) -> None:
        if self._closed:
            raise PrometheusError(f"{self._transport.server} is no longer asked: we are stopping")
        if time.monotonic() > self._give_up_at:
            raise PrometheusError(
                f"{self._transport.server} is too slow for the whole question; check its load, or "
                "raise prometheus.timeout_seconds"
            )

    def _known(self, now: Timestamp) -> Probe:
        """Return what telemetry there is; probed anew when that is older than ten minutes."""
        old = abs(now - self._probed_at) >= probing.PROBE_EVERY
        if self._probe is None or self._interval is None or old:
            probe = self._look(now)
            if probe.sample:
                with suppress(QueryTooLarge):  # the interval stays what it was
                    self._measure(self._instant(probing.samples_query(probe, self._scope), now))
            self._probe, self._probed_at, self._held = probe, now, 0
        return self._probe

    def _look(self, now: Timestamp) -> Probe:
        """Probe the server.

        Raises:
            IncompleteData: it holds several clusters, and which is ours is not set.
            PrometheusError: it has nothing for us.
        """
        profiles, label = self._settings.profiles, self._settings.cluster_label
        if backends.is_tenancy(self._transport.url):
            raise PrometheusError(f"{self._transport.server} {backends.TENANCY}")
        try:
            rows = self._instant(probing.names_query(profiles, self._scope), now)
            names = probing.read_names(rows, self._fields, profiles)
        except QueryTooLarge:
            names = Names(known=self._fields, unknown={})
        self._parameters = {**self._timeout, **backends.parameters(self._transport.backend())}
        if not names.known:
            raise PrometheusError(self._nothing(now))
        query = probing.probe_query(names.known, self._scope, cluster_label=label)
        probe = probing.read_probe(self._instant(query, now), names)
        if not probe.devices:
            raise PrometheusError(self._nothing(now))
        if probe.clusters > 1 and not self._settings.cluster:
            raise IncompleteData(
                f"{self._transport.server} holds {probe.clusters} clusters (label {label}), in "
                "which pods may have the same names; set prometheus.cluster (--prometheus-cluster) "
                "to the name of this one"
            )
        return probe

    def _look_again(self, series: int) -> None:
        """Probe anew in the next cycle if many series are gone: they may have new names."""
        if series < self._held * _LOST_SHARE:
            self._probed_at = -math.inf
        self._held = max(self._held, series)

    def _measure(self, samples: Iterable[Series]) -> None:
        """Take over the scrape interval, but let jitter not change the steps."""
        found = probing.scrape_interval(samples)
        known = self._interval
        if found is not None and (
            known is None or abs(found - known) > known * probing.INTERVAL_TOLERANCE
        ):
            self._interval = found

    def _nothing(self, now: Timestamp) -> str:
        """Say that there is no telemetry, and what there is instead."""
        others = probing.read_hint(self._instant(probing.hint_query(), now))
        what = f"{self._transport.server} has no DCGM series at {rfc3339(now)}"
        if others:
            return f"{what} under a name that we know; it has {', '.join(others)}"
        return (
            f"{what}; check that dcgm-exporter runs and is scraped (its ServiceMonitor), and that "
            "our token or tenant header may see it"
        )

    def _notes(self, probe: Probe) -> tuple[str, ...]:
        tls = () if self._transport.verify else ("TLS certificates are not checked",)
        return (*notes.found(probe, self._settings), *tls, *self._transport.take_notes())


def _scope(settings: PrometheusSettings) -> Scope:
    limit = f'{settings.cluster_label}="{promql.quoted(settings.cluster)}"'
    return Scope(matcher=limit if settings.cluster else "", node_label=settings.node_label)


class _Numbers(dict[float, int]):
    """From a moment to the number of the step that ends with it, worked out once per answer."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._step = step

    def __missing__(self, at: float) -> int:
        number = self[at] = round(at / self._step) - 1
        return number


def _steps(values: bytes, numbers: _Numbers) -> Steps:
    """Return the points of a range, numbered by the step that each is the end of."""
    return tuple([(numbers[at], value) for at, value in points(values)])

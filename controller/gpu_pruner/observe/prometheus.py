"""Telemetry from Prometheus, or anything that answers like it.

`screen` asks for the newest steps of all devices, `verify` for a full period of a few, both per
step (`promql`). It answers with columns and tracks, or raises an `ObservationError`; partial
answers are errors. It chooses no owners and decides nothing. Called by `loop` only.

One source has one connection and one thread, in which requests and decoding run one after another.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import msgspec

from gpu_pruner.errors import IncompleteData, ObservationError, PrometheusError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.foreign import quoted
from gpu_pruner.model.signals import (
    Column,
    DeviceId,
    Meter,
    Period,
    Signal,
    Steps,
    Subject,
    Track,
)
from gpu_pruner.model.survey import Survey
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp, rfc3339
from gpu_pruner.observe import backends, notes, promql
from gpu_pruner.observe import prometheus_meters as meters
from gpu_pruner.observe import prometheus_probe as probing
from gpu_pruner.observe import prometheus_survey as surveying
from gpu_pruner.observe.labels import Subjects
from gpu_pruner.observe.profiles import Field, fields_of
from gpu_pruner.observe.prometheus_probe import Ask, Names, Probe
from gpu_pruner.observe.prometheus_queries import Queries
from gpu_pruner.observe.prometheus_replies import QueryTooLarge, Series, points
from gpu_pruner.observe.prometheus_slices import Slices, slice_seconds
from gpu_pruner.observe.promql import Scope, Slice
from gpu_pruner.observe.tracks import TrackTable, agreeing
from gpu_pruner.settings.schema import PrometheusSettings

_NAMES_EVERY: Seconds = 4 * MINUTE
"""Distance of the moments at which a verify looks which metrics there were. A sample is visible
for five minutes, so none is missed between two of them."""

_LOST_SHARE = 0.9
"""With fewer series than this share of the most since the last probe, the next cycle probes."""

_FAR = 10_000
"""Steps around a period in which a point may lie."""

_LABELS = msgspec.json.Decoder(dict[str, str])
T = TypeVar("T")


def _labels(metric: bytes) -> dict[str, str]:
    return _LABELS.decode(metric)


class PrometheusSource:
    """A `TelemetrySource` over the query API."""

    def __init__(self, settings: PrometheusSettings, *, clock: Clock, brief: bool = False) -> None:
        """Prepare; nothing is asked yet.

        Args:
            settings: of the server.
            clock: ours.
            brief: for one look by a person who waits: of the past only what a check tells of is
                asked, and what failed is not tried again. Such a screen must never be judged by.
        """
        self._brief = brief
        self._settings = settings
        self._queries = Queries(settings, clock=clock)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="prometheus")
        self._fields = fields_of(settings.profiles)
        self._scope = _scope(settings)
        self._subjects = Subjects(_labels, node_label=settings.node_label)
        self._probe: Probe | None = None
        self._probed_at: Timestamp = 0.0
        self._unprobed = ""
        self._held = 0
        self._interval: Seconds | None = None
        self._slices = Slices(brief=brief)
        self._proven: frozenset[Meter] = frozenset()
        self._proven_at = -math.inf
        self._doubted = True

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

    async def survey(self, *, now: Timestamp) -> Survey:
        """Tell what this server has to offer, for a person; never asked in a cycle.

        Raises:
            ObservationError: no complete answer, in the words of a failed screen.
        """
        return await self._run(lambda: self._survey(now))

    async def close(self) -> None:
        """Stop after the request that is under way, and release connections."""
        self._queries.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._timed, work)

    def _timed(self, work: Callable[[], T]) -> T:
        self._queries.begin()
        try:
            return work()
        except (msgspec.DecodeError, ValueError, OverflowError) as error:
            what = f"{type(error).__name__}: {quoted(str(error))}"
            raise PrometheusError(
                f"{self._queries.server} answers what cannot be read ({what}); check that "
                "prometheus.url leads to a Prometheus API"
            ) from error

    def _screen(self, now: Timestamp, back_to: Timestamp) -> Screen:
        if self._brief and self._unprobed:
            raise PrometheusError(self._unprobed)
        probe = self._known(now)
        interval = self._interval or probing.DEFAULT_INTERVAL
        step = probing.step_seconds(interval)
        period = Period.ending(
            now, length=max(now - back_to, slice_seconds(interval)), step_seconds=step
        )
        table, read = TrackTable(), Read(period)
        moved: list[Column] = []
        for field, ask in probe.screened:
            asked = self._slices.of(ask, period, interval=interval)
            for part in promql.slices_for_all(asked, probe.series):
                if ask is Ask.MOVES:
                    series = self._moves(field, part, read, named=probe.speechless > 0)
                    moved.append(Column(field.signal, field.metric, series, moves=True))
                else:
                    query = promql.peaks if ask is Ask.PEAKS else promql.work
                    table.take(field, self._ask(query, field, part), read=read)
        self._look_again(len(table))
        if not len(table):
            raise PrometheusError(f"{self._queries.server} {notes.unprovable(probe, period)}")
        self._slices.done(period, moved)
        return Screen(
            period=period,
            columns=(*table.screened(period), *moved),
            scrape_interval_seconds=interval,
            clock_skew_seconds=self._queries.transport.clock_skew_seconds,
            proven=self._meters(now, probe),
            notes=self._notes(probe),
        )

    def _survey(self, now: Timestamp) -> Survey:
        if self._unprobed:  # a person waits: what failed a moment ago is not asked again
            raise PrometheusError(self._unprobed)
        probe = self._known(now)
        product, version = self._queries.transport.product()
        jobs = self._queries.instant(surveying.jobs_query(probe, self._scope), now)
        answer = self._queries.instant(surveying.models_query(probe, self._scope), now)
        models = surveying.read_models(answer)
        self._doubted = surveying.has_doubtful(models)
        return Survey(
            server=self._queries.server,
            product=product.value,
            version=version,
            interval_seconds=self._interval,
            jobs=surveying.read_jobs(jobs),
            models=models,
            only_util=probe.weaker.get(Signal.UTIL, 0),
        )

    def _meters(self, now: Timestamp, probe: Probe) -> frozenset[Meter]:
        """Return the meters that showed work in the last days; asked once a day.

        What they prove is not needed by most models, so a failure is no failure of the screen, and
        a brief look asks only where a model needs it.
        """
        if self._brief and not self._doubted:
            return frozenset()
        if abs(now - self._proven_at) < meters.ASK_EVERY:
            return self._proven
        found: set[Meter] = set()
        try:
            for field, query in meters.questions(probe.fields, self._scope):
                for day in meters.days(now):
                    found |= meters.read(field, self._queries.range(query, day))
        except (ObservationError, msgspec.DecodeError):
            self._proven_at = now - meters.ASK_EVERY + meters.ASK_AGAIN
        else:
            self._proven, self._proven_at = frozenset(found), now
        return self._proven

    def _moves(
        self, field: Field, part: Slice, read: Read, *, named: bool
    ) -> list[tuple[Subject, Steps]]:
        """Ask in which steps each device moved; with its labels only where others lack them."""
        query = promql.named_moves if named else promql.moves
        found = self._ask(query, field, part)
        series = [(subject, read(values)) for subject, values in found]
        return agreeing(series) if named else series

    def _verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        uuids = tuple(sorted({device.uuid for device in devices}))
        table, read = TrackTable(), Read(period)
        for part in promql.slices_for(uuids, period):
            fields = {one.metric: one for one in self._exported(part)}
            if fields:
                self._ask_everything(fields, part, table, read)
        return table.tracks(period, devices)

    def _ask_everything(
        self, fields: Mapping[str, Field], part: Slice, table: TrackTable, read: Read
    ) -> None:
        """Ask for all peaks and flaws of a slice's devices in one question."""

        def query(one: Slice) -> str:
            return promql.everything(fields.values(), one, self._scope)

        for answer in self._queries.parts(query, part):
            found: dict[str, list[tuple[Subject, bytes]]] = {}
            for series in answer:
                metric = bytes(series.metric)
                subject = self._subjects.of(metric)
                if subject is not None:
                    asked = _labels(metric).get(promql.ASKED, "").removeprefix(promql.FLAWED)
                    found.setdefault(asked, []).append((subject, bytes(series.values)))
            for asked, group in found.items():
                if asked not in fields:
                    raise PrometheusError(f"{self._queries.server} answers what was not asked")
                table.take(fields[asked], group, read=read)

    def _exported(self, part: Slice) -> list[Field]:
        """Return the fields that some devices exported at any time of a period."""
        width = _NAMES_EVERY
        whole = Period(int(part.period.start // width), int(part.period.end // width), width)
        answer = self._queries.range(promql.names(self._fields, part, self._scope), whole)
        found = {_labels(bytes(one.metric)).get("__name__") for one in answer}
        return [one for one in self._fields if one.metric in found]

    def _ask(
        self,
        query: Callable[[Field, Slice, Scope], str],
        field: Field,
        part: Slice,
    ) -> Iterator[tuple[Subject, bytes]]:
        """Yield the series of one field of one slice, with what `Read` reads their points from."""
        find = self._subjects.of
        for answer in self._queries.parts(lambda one: query(field, one, self._scope), part):
            for series in answer:
                subject = find(bytes(series.metric))
                if subject is not None:
                    yield subject, bytes(series.values)

    def _known(self, now: Timestamp) -> Probe:
        """Return what telemetry there is; probed anew when that is older than ten minutes."""
        old = abs(now - self._probed_at) >= probing.PROBE_EVERY
        if self._probe is None or self._interval is None or old:
            try:
                probe = self._look(now)
            except ObservationError as error:
                self._unprobed = str(error)
                raise
            if probe.sample:
                with suppress(QueryTooLarge):  # the interval stays what it was
                    self._measure(
                        self._queries.instant(probing.samples_query(probe, self._scope), now)
                    )
            self._probe, self._probed_at, self._held, self._unprobed = probe, now, 0, ""
        return self._probe

    def _look(self, now: Timestamp) -> Probe:
        """Probe the server.

        Raises:
            IncompleteData: it holds several clusters, and which is ours is not set.
            PrometheusError: it has nothing for us.
        """
        profiles, label = self._settings.profiles, self._settings.cluster_label
        if backends.is_tenancy(self._queries.transport.url):
            raise PrometheusError(f"{self._queries.server} {backends.TENANCY}")
        try:
            rows = self._queries.instant(probing.names_query(profiles, self._scope), now)
            names = probing.read_names(rows, self._fields, profiles)
        except QueryTooLarge:
            names = Names(known=self._fields, unknown={})
        self._queries.send_also(backends.parameters(self._queries.transport.backend()))
        if not names.known:
            raise PrometheusError(self._nothing(now))
        query = probing.probe_query(names.known, self._scope, cluster_label=label)
        probe = probing.read_probe(self._queries.instant(query, now), names)
        if not probe.devices:
            raise PrometheusError(self._nothing(now))
        if probe.clusters > 1 and not self._settings.cluster:
            raise IncompleteData(
                f"{self._queries.server} holds {probe.clusters} clusters (label {label}), in "
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
        others = probing.read_hint(self._queries.instant(probing.hint_query(), now))
        what = f"{self._queries.server} has no DCGM series at {rfc3339(now)}"
        if others:
            return f"{what} under a name that we know; it has {', '.join(others)}"
        return (
            f"{what}; check that dcgm-exporter runs and is scraped (its ServiceMonitor), and that "
            "our token or tenant header may see it"
        )

    def _notes(self, probe: Probe) -> tuple[str, ...]:
        tls = () if self._queries.transport.verify else ("TLS certificates are not checked",)
        return (*notes.found(probe, self._settings), *tls, *self._queries.transport.take_notes())


def _scope(settings: PrometheusSettings) -> Scope:
    limit = f'{settings.cluster_label}="{promql.quoted(settings.cluster)}"'
    return Scope(matcher=limit if settings.cluster else "", node_label=settings.node_label)


class Read(dict[bytes, Steps]):
    """From the points of a range to steps, each numbered by the step that the point is the end of.

    What is the same for many series is read once, and is one object. Points that lie far from
    what was asked are left out: a step of another century would be a mask of gigabytes.
    """

    def __init__(self, period: Period) -> None:
        super().__init__()
        self._step = int(period.step_seconds)
        self._near = range(period.first - _FAR, period.last + _FAR)
        self._numbers: dict[float, int] = {}

    def __call__(self, values: bytes) -> Steps:
        """Return the steps of a range, given as the JSON of its points."""
        return self[values]

    def __missing__(self, values: bytes) -> Steps:
        """Read points that were not met before."""
        numbers = self._numbers
        found = points(values)
        for at, _ in found:
            if at not in numbers:
                numbers[at] = round(at / self._step) - 1
        steps = self[values] = tuple(
            [(numbers[at], value) for at, value in found if numbers[at] in self._near]
        )
        return steps

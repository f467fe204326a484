"""History from Prometheus, or anything that answers like it, for `gpu-pruner backtest`.

It asks for the past what a screen asks for the present, in parts of equal and aligned length, and
hands over the same columns; answers about closed time come from the cache. Who owned the pods it
asks of kube-state-metrics, where that is scraped by the same server. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec
from typing_extensions import override

from gpu_pruner.errors import PrometheusError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.signals import Column, Meter, Period, PodName, Subject
from gpu_pruner.model.units import HOUR, MINUTE, Seconds, Timestamp
from gpu_pruner.observe import prometheus_probe as probing
from gpu_pruner.observe import promql
from gpu_pruner.observe.answer_cache import AnswerCache, Rows
from gpu_pruner.observe.labels import EXPORTED_NAMESPACE, EXPORTED_POD, NAMESPACE, POD
from gpu_pruner.observe.profiles import Field
from gpu_pruner.observe.prometheus import PrometheusSource, Read
from gpu_pruner.observe.prometheus_probe import Ask
from gpu_pruner.observe.promql import Scope, Slice
from gpu_pruner.observe.tracks import TrackTable, agreeing
from gpu_pruner.settings.schema import PrometheusSettings

_LENGTHS = (1440, 720, 360, 180, 60)
"""Steps of a part: those of a day, or a fraction of it, so that parts of two runs are the same."""

_CLOSED: Seconds = HOUR
"""An answer is kept when its range has been over for so long: late samples have arrived by then."""

_OWNERS_STEP: Seconds = 10 * MINUTE
"""Distance of the moments at which owners are looked up. A pod that lives shorter than a window
and a notice is never paused, so that none that matters is missed."""

_QUERIES: Mapping[Ask, Callable[[Field, Slice, Scope], str]] = {
    Ask.PEAKS: promql.bare_peaks,
    Ask.WORK: promql.bare_work,
    Ask.MOVES: promql.bare_moves,
}

_LABELS = msgspec.json.Decoder(dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What there is to be asked about."""

    period: Period
    scrape_interval_seconds: Seconds
    parts: tuple[Period, ...]
    """The period in pieces, ascending."""
    proven: frozenset[Meter]
    notes: tuple[str, ...]


class PrometheusPast(PrometheusSource):
    """The history that one server holds."""

    def __init__(self, settings: PrometheusSettings, *, clock: Clock, cache: AnswerCache) -> None:
        super().__init__(settings, clock=clock)
        self._clock = clock
        self._cache = cache
        # Who asks decides what a server of several tenants answers.
        tenant = [f"{key}={value.get_secret_value()}" for key, value in settings.headers.items()]
        self._whose = [self._queries.transport.url, *sorted(tenant)]

    async def outline(self, *, now: Timestamp, length: Seconds) -> Outline:
        """Return what history will be asked for.

        Args:
            now: end of it, Unix seconds.
            length: of it, seconds.

        Raises:
            ObservationError: no complete answer, or no telemetry now.
        """
        return await self._run(lambda: self._outline(now, length))

    async def columns(self, part: Period) -> tuple[Column, ...]:
        """Return what a screen over one part of the outline would show.

        Raises:
            ObservationError: no complete answer, even in smaller pieces.
        """
        return await self._run(lambda: self._columns(part))

    async def roots(self, pods: Iterable[PodName], period: Period) -> Mapping[PodName, str]:
        """Return the roots of pods as ``kind/name``, as far as kube-state-metrics told them.

        Raises:
            ObservationError: no complete answer.
        """
        names = sorted({pod.name for pod in pods})
        return await self._run(lambda: self._roots(names, period))

    def _outline(self, now: Timestamp, length: Seconds) -> Outline:
        probe = self._known(now)
        interval = self._interval or probing.DEFAULT_INTERVAL
        period = Period.ending(now, length=length, step_seconds=probing.step_seconds(interval))
        most = promql.POINTS_PER_ANSWER // max(1, probe.series)
        each = next((one for one in _LENGTHS if one <= most), _LENGTHS[-1])
        firsts = [period.first, *range((period.first // each + 1) * each, period.last + 1, each)]
        lasts = [*(one - 1 for one in firsts[1:]), period.last]
        return Outline(
            period=period,
            scrape_interval_seconds=interval,
            parts=tuple(
                replace(period, first=first, last=last)
                for first, last in zip(firsts, lasts, strict=True)
            ),
            proven=self._meters(now, probe),
            notes=self._notes(probe),
        )

    def _columns(self, part: Period) -> tuple[Column, ...]:
        if self._probe is None:
            raise PrometheusError("history is asked for before its outline")
        table, read = TrackTable(), Read(part)
        moved: list[Column] = []
        for field, ask in self._probe.screened:
            query = _QUERIES[ask]
            for one in promql.slices_for_all(part, self._probe.series):
                if ask is Ask.MOVES:
                    series = [(subject, read(at)) for subject, at in self._ask(query, field, one)]
                    moved.append(Column(field.signal, field.metric, agreeing(series), moves=True))
                else:
                    table.take(field, self._ask(query, field, one), read=read)
        return (*table.screened(part), *moved)

    @override
    def _ask(
        self,
        query: Callable[[Field, Slice, Scope], str],
        field: Field,
        part: Slice,
    ) -> Iterator[tuple[Subject, bytes]]:
        find = self._subjects.of
        for metric, values in self._rows(lambda one: query(field, one, self._scope), part):
            subject = find(metric)
            if subject is not None:
                yield subject, values

    def _rows(self, query: Callable[[Slice], str], part: Slice) -> Rows:
        """Return an answer, kept or new; a question that is too large is asked in pieces."""
        period = part.period
        closed = period.end + _CLOSED < self._clock.now()
        bounds = (f"{period.first}", f"{period.last}", f"{period.step_seconds:g}")
        question = (*self._whose, query(part), *bounds)
        if closed and (kept := self._cache.get(question)) is not None:
            return kept
        rows = [
            (bytes(one.metric), bytes(one.values))
            for answer in self._queries.parts(query, part)
            for one in answer
        ]
        if closed:
            self._cache.put(question, rows)
        return rows

    def _roots(self, names: list[str], period: Period) -> Mapping[PodName, str]:
        owners = self._owned("kube_pod_owner", POD, EXPORTED_POD, names=names, over=period)
        sets = sorted({name for kind, name in owners.values() if kind == "ReplicaSet"})
        above = self._owned("kube_replicaset_owner", "replicaset", "", names=sets, over=period)
        found: dict[PodName, str] = {}
        for pod, (kind, name) in owners.items():
            root = (kind, name)
            if kind == "ReplicaSet":
                root = above.get(PodName(pod.namespace, name), root)
            found[pod] = f"{root[0].lower()}/{root[1]}"
        return found

    def _owned(
        self, metric: str, label: str, exported: str, *, names: list[str], over: Period
    ) -> dict[PodName, tuple[str, str]]:
        """Return the controller's kind and name of each object of a namespace."""
        coarse = Period(
            int(over.start // _OWNERS_STEP), int(over.end // _OWNERS_STEP), _OWNERS_STEP
        )
        labels = [NAMESPACE, EXPORTED_NAMESPACE, label, *filter(None, (exported,))]
        by = ", ".join([*labels, "owner_kind", "owner_name"])
        found: dict[PodName, tuple[str, str]] = {}
        for begin in range(0, len(names), promql.MATCH_BATCH):
            batch = "|".join(map(promql.literal, names[begin : begin + promql.MATCH_BATCH]))
            series = " or ".join(
                self._scope.selector(metric, f'{one}=~"{batch}"', 'owner_is_controller="true"')
                for one in filter(None, (label, exported))
            )
            query = _always(f"group by ({by}) ({series})")
            for part in promql.slices_for_all(coarse, promql.MATCH_BATCH):
                for row, _ in self._rows(query, part):
                    told = _LABELS.decode(row)
                    namespace = told.get(EXPORTED_NAMESPACE) or told.get(NAMESPACE, "")
                    name = told.get(exported, "") or told.get(label, "")
                    kind, owner = told.get("owner_kind", ""), told.get("owner_name", "")
                    if namespace and name and kind and owner:
                        found[PodName(namespace, name)] = kind, owner
        return found


def _always(query: str) -> Callable[[Slice], str]:
    return lambda _: query

"""Telemetry from DCGM exporters directly, with the window kept in memory.

For clusters without Prometheus, and for the demo. A background task scrapes all exporters at the
set interval; `screen` and `verify` answer from memory, in the same tracks as Prometheus' source. A
failing exporter is a gap with a note; all failing is an `ObservationError`. After a restart the
memory is empty, so a whole window passes before anything can be called idle.

Cost: about 16 bytes per field, device and minute of memory. Meant for up to a few hundred nodes.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

import structlog

from gpu_pruner.errors import ObservationError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.signals import DeviceId, Period, Track
from gpu_pruner.model.survey import Survey
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.observe.exporters import Fetcher, Target, expand
from gpu_pruner.observe.exposition import read_labels, read_page
from gpu_pruner.observe.labels import Subjects
from gpu_pruner.observe.notes import advice, unread
from gpu_pruner.observe.profiles import fields_of, unknown_names
from gpu_pruner.observe.tracks import TrackTable
from gpu_pruner.settings.schema import ScrapeSettings

SHORTEST_SCREEN: Seconds = 3 * MINUTE
_SPARE_STEPS = 5
"""Kept beyond the window, for slices that begin on a whole step and for late cycles."""
_NAMED_FAILURES = 3

_log = structlog.get_logger(__name__)


class ScrapeSource:
    """A `TelemetrySource` that scrapes by itself between `start` and `close`."""

    def __init__(self, settings: ScrapeSettings, *, clock: Clock, keep_seconds: Seconds) -> None:
        """Make a source that has not begun to scrape.

        Args:
            settings: exporters and times. The interval is in seconds of the clock, timeouts are
                real seconds.
            clock: paces the scrapes and dates the samples.
            keep_seconds: how long samples are remembered: the longest period ever asked for.
        """
        self._settings = settings
        self._clock = clock
        self._step = float(max(MINUTE, math.ceil(settings.interval_seconds)))
        self._keep_steps = math.ceil(keep_seconds / self._step) + _SPARE_STEPS
        self._table = TrackTable()
        self._fields = {one.metric: one for one in fields_of(settings.profiles)}
        self._subjects: dict[str, Subjects[str]] = {}
        self._others: dict[str, frozenset[str]] = {}
        self._nameless: dict[str, int] = {}
        self._failures: Mapping[str, str] = {}
        self._targets = 0
        self._first_step: int | None = None
        self._fetcher: Fetcher | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Scrape once, and go on in the background. Failing exporters are no error here."""
        fetcher = self._fetcher = Fetcher(self._settings.timeout_seconds)
        due = self._clock.now()
        await self._round(fetcher)
        self._task = asyncio.create_task(self._scrape_on(fetcher, due), name="scrape")

    async def screen(self, *, now: Timestamp, back_to: Timestamp) -> Screen:
        """Return the newest whole steps for all devices; see `TelemetrySource`.

        Raises:
            ObservationError: no exporter could be scraped in the newest round.
        """
        self._check_alive()
        if self._first_step is None or len(self._failures) >= self._targets:
            raise ObservationError(self._all_failed())
        interval = self._settings.interval_seconds
        length = max(now - back_to, SHORTEST_SCREEN, 3 * interval)
        asked = Period.ending(now, length=length, step_seconds=self._step)
        held = max(asked.first, min(self._first_step, asked.last))
        period = Period(held, asked.last, self._step)
        return Screen(
            period=period,
            columns=self._table.screened(period),
            scrape_interval_seconds=interval,
            notes=(*self._failures.values(), *self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        if nameless := sum(self._nameless.values()):
            yield f"{nameless} samples name no device (no UUID label) and are left out"
        others = frozenset[str]().union(*self._others.values())
        yield from unread(unknown_names(others, self._settings.profiles))
        yield from advice(self._settings.profiles)

    async def survey(self, *, now: Timestamp) -> Survey:  # noqa: ARG002 - as the port has it
        """Tell what the exporters have to offer, for a person; never asked in a cycle."""
        exported = {
            (one.labels.model, metric, one.device) for metric, one in self._table.exported()
        }
        models: dict[str, dict[str, int]] = {}
        for model, metric, _ in exported:
            metrics = models.setdefault(model, {})
            metrics[metric] = metrics.get(metric, 0) + 1
        return Survey(
            server=f"{self._targets} exporter{'s' * (self._targets != 1)}, scraped directly",
            interval_seconds=self._settings.interval_seconds,
            models=models,
            failures=self._failures,
        )

    async def verify(self, devices: Collection[DeviceId], period: Period) -> tuple[Track, ...]:
        """Return every track of these devices over the full period; see `TelemetrySource`.

        Steps from before the first scrape are absent.

        Raises:
            ObservationError: the period's steps are not of the length that is kept.
        """
        self._check_alive()
        if period.step_seconds != self._step:
            raise ObservationError(
                f"samples are kept in steps of {self._step:g} s, not {period.step_seconds:g} s"
            )
        return self._table.tracks(period, devices)

    async def close(self) -> None:
        """Stop scraping and release connections."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._fetcher is not None:
            self._fetcher.close()

    async def _scrape_on(self, fetcher: Fetcher, due: Timestamp) -> None:
        """Scrape at the interval for ever; a round that takes longer makes the next one late."""
        while True:
            now = self._clock.now()
            due = next_round(due, now=now, interval=self._settings.interval_seconds)
            await self._clock.sleep(due - now)
            await self._round(fetcher)

    async def _round(self, fetcher: Fetcher) -> None:
        """Scrape every exporter once."""
        targets, failures = await self._find_targets()
        results = await asyncio.gather(*(self._scrape(fetcher, target) for target in targets))
        failures |= {
            target.name: failure
            for target, failure in zip(targets, results, strict=True)
            if failure is not None
        }
        self._targets = len(targets) + len(failures.keys() - {one.name for one in targets})
        self._tell(failures)
        self._failures = dict(sorted(failures.items()))
        gone = self._subjects.keys() - {target.name for target in targets}
        for name in gone:
            del self._subjects[name]
            self._others.pop(name, None)
            self._nameless.pop(name, None)
        self._table.forget_before(self._step_at(self._clock.now()) - self._keep_steps)

    async def _find_targets(self) -> tuple[tuple[Target, ...], dict[str, str]]:
        """Return the addresses to scrape, each once, and what could not be resolved."""
        urls, logins = self._settings.exporters, self._settings.logins
        found: set[Target] = set()
        failures: dict[str, str] = {}
        answers = await asyncio.gather(
            *(expand(url, logins.get(url)) for url in urls), return_exceptions=True
        )
        for url, answer in zip(urls, answers, strict=True):
            if isinstance(answer, ObservationError):
                failures[url.partition("?")[0]] = str(answer)  # a query may hold a secret
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found.update(answer)
        return tuple(sorted(found)), failures

    async def _scrape(self, fetcher: Fetcher, target: Target) -> str | None:
        """Scrape one exporter into the table; return why it failed, or None."""
        at = self._clock.now()
        try:
            self._absorb(target, await fetcher.page(target), at)
        except ObservationError as error:
            return str(error)
        return None

    def _absorb(self, target: Target, text: str, at: Timestamp) -> None:
        """Take a page into the table, whole or not at all."""
        if target.name not in self._subjects:
            self._subjects[target.name] = Subjects(
                read_labels, job=target.name, node_label=self._settings.node_label
            )
        subjects = self._subjects[target.name]
        try:
            page = read_page(text, self._fields)
            samples = [
                (one.field, subject, one.value)
                for one in page.samples
                if (subject := subjects.of(one.series)) is not None
            ]
        except ObservationError as error:
            raise ObservationError(f"exporter {target.name}: {error}") from error
        self._others[target.name] = page.others
        self._nameless[target.name] = len(page.samples) - len(samples)
        if not samples:
            raise ObservationError(f"exporter {target.name}: a page without any GPU metric we know")
        step = self._step_at(at)
        for field, subject, value in samples:
            self._table.record(field, subject, ((step, value),))
        if self._first_step is None:
            self._first_step = step

    def _step_at(self, moment: Timestamp) -> int:
        """Return the step that a sample of this moment belongs to: step n is (n·s, (n+1)·s]."""
        return math.ceil(moment / self._step) - 1

    def _tell(self, failures: Mapping[str, str]) -> None:
        """Log what changed since the last round, so that a lasting failure is said once."""
        for name, failure in failures.items():
            if name not in self._failures:
                _log.warning("exporter failed", exporter=name, error=failure)
        for name in self._failures.keys() - failures.keys():
            _log.info("exporter is back", exporter=name)

    def _all_failed(self) -> str:
        """Say that there is nothing to go by, with the first few reasons."""
        if self._fetcher is None:
            return "scraping has not begun"
        reasons = list(self._failures.values())
        more = len(reasons) - _NAMED_FAILURES
        shown = "; ".join(reasons[:_NAMED_FAILURES]) + (f"; and {more} more" if more > 0 else "")
        return f"no exporter could be scraped; check scrape.exporters ({shown})"

    def _check_alive(self) -> None:
        if self._task is not None and self._task.done():
            cause = None if self._task.cancelled() else self._task.exception()
            raise ObservationError("scraping has stopped") from cause


def next_round(due: Timestamp, *, now: Timestamp, interval: Seconds) -> Timestamp:
    """Return when the next round of scrapes is due: an interval after the last, or at once if late.

    Never more than an interval from now, because a clock that was set back would stop the scrapes.
    """
    return min(max(due + interval, now), now + interval)

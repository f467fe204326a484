"""Settings to a working controller: connects the stages, and takes them apart again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import structlog

from gpu_pruner.act.actor import Actor
from gpu_pruner.act.books import NO_KIND
from gpu_pruner.act.levers import Levers
from gpu_pruner.cli import election
from gpu_pruner.cli.collecting import settle
from gpu_pruner.errors import ClusterError, ConfigurationError
from gpu_pruner.jupyterhub.client import HubClient
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.lease import lease_namespace
from gpu_pruner.kube.lease_elector import Elector
from gpu_pruner.loop.alone import Alone
from gpu_pruner.loop.books import Books, ClusterBooks, MemoryBooks
from gpu_pruner.loop.cycle import Cycle
from gpu_pruner.loop.execution import Executor, Silence
from gpu_pruner.loop.observation import Observer
from gpu_pruner.loop.ports import Notifier as NotifierPort
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.telemetry import TelemetrySource
from gpu_pruner.model.units import Seconds
from gpu_pruner.notify.channel import Channel
from gpu_pruner.notify.event import EventChannel
from gpu_pruner.notify.notifier import Notifier
from gpu_pruner.notify.opening import channels_of
from gpu_pruner.observe.cluster import ClusterWatch
from gpu_pruner.observe.hold import HoldSwitch
from gpu_pruner.observe.hubs import HubWatch
from gpu_pruner.observe.prometheus import PrometheusSource
from gpu_pruner.observe.scrape import ScrapeSource
from gpu_pruner.record.board import Board
from gpu_pruner.settings.schema import Settings

if TYPE_CHECKING:
    from gpu_pruner.record.ledger.archive import Archive
    from gpu_pruner.record.ledger.writer import Ledger

_log = structlog.get_logger(__name__)
_RETRY_SECONDS = 5.0
"""Real seconds between two attempts to reach an API server that does not answer at start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """The connected stages of one process."""

    client: ClusterClient
    watch: ClusterWatch
    source: TelemetrySource
    observer: Observer
    actor: Actor
    cycle: Cycle
    board: Board
    elector: Elector | None
    """None for a single pass, and where nothing can be written anyway."""


def telemetry_source(settings: Settings, clock: Clock, *, brief: bool = False) -> TelemetrySource:
    """Return the source that the settings name.

    Args:
        settings: for its address.
        clock: ours.
        brief: for a check, which nobody is judged by.

    Raises:
        ConfigurationError: they name none.
    """
    if settings.prometheus is not None:
        return PrometheusSource(settings.prometheus, clock=clock, brief=brief)
    if settings.scrape.exporters:
        return ScrapeSource(settings.scrape, clock=clock, keep_seconds=kept_seconds(settings))
    raise ConfigurationError(
        "no telemetry source; give --prometheus-url URL, or --exporter URL for each DCGM exporter"
    )


def kept_seconds(settings: Settings) -> Seconds:
    """Return how long a source that keeps its own samples has to keep them.

    The check before a pause looks at the window and at all the time since the warning, whichever
    is longer; one window more is for a deadline that moved.
    """
    longest = max(settings.window_seconds, settings.notice_seconds)
    return longest + settings.window_seconds + settings.settle_seconds


@asynccontextmanager
async def connected(
    settings: Settings, clock: Clock, board: Board, *, one_pass: bool, patient: bool = False
) -> AsyncIterator[Controller]:
    """Connect everything, and close it in the end.

    Args:
        settings: what to connect to.
        clock: paces everything.
        board: where cycles are published.
        one_pass: a single cycle: in dry run it writes nothing at all.
        patient: whether to wait for an API server that does not answer, as a daemon does.

    Raises:
        ConfigurationError: no telemetry source, scale-down without the GPUWorkload kind, or a
            ledger that cannot be kept.
        ClusterError: the API server cannot be used.
    """
    async with AsyncExitStack() as ends:
        ledger = _ledger(settings) if settings.ledger.is_on and not one_pass else None
        if ledger is not None:
            ends.push_async_callback(ledger.close)
        source = telemetry_source(settings, clock)
        ends.push_async_callback(source.close)
        client = await ClusterClient.connect(settings.kubernetes, clock=clock)
        ends.push_async_callback(client.close)
        hubs = await ends.enter_async_context(jupyter_hubs(settings))
        outside = await ends.enter_async_context(outside_channels(settings, clock))
        watch = ClusterWatch(client, clock=clock, custom=settings.custom_levers)
        ends.push_async_callback(watch.close)
        await _start_watching(watch, board, patient=patient)
        books_available = watch.view().books_available
        if settings.mode is Mode.SCALE_DOWN and not books_available:
            raise ConfigurationError(f"{NO_KIND} (or run with -r dry-run)")
        await source.start()
        settle()
        leadership: Elector | Alone = Alone()
        silent = not books_available or (one_pass and settings.mode is Mode.DRY_RUN)
        if one_pass and not silent:
            leadership = await election.alone(settings, client)
        elif not silent:
            leadership = await ends.enter_async_context(election.elector(settings, clock))
            await ends.enter_async_context(leadership.leading())
        parts = (client, watch, source, leadership, hubs, outside)
        onlooker = settings.mode if one_pass else None
        controller = _assembled(
            settings, clock, board, parts=parts, onlooker=onlooker, silent=silent
        )
        if ledger is not None:
            controller.cycle.history, board.ledger = ledger, ledger.state
        yield controller


@asynccontextmanager
async def jupyter_hubs(settings: Settings) -> AsyncIterator[tuple[HubClient, ...]]:
    """Return a client for each JupyterHub of the settings, and close them in the end.

    Raises:
        ConfigurationError: a CA bundle cannot be used.
    """
    async with AsyncExitStack() as ends:
        hubs = tuple(HubClient(one) for one in settings.jupyter_hubs)
        for one in hubs:
            ends.push_async_callback(one.close)
        yield hubs


@asynccontextmanager
async def outside_channels(settings: Settings, clock: Clock) -> AsyncIterator[tuple[Channel, ...]]:
    """Return the channels of the settings, and close them in the end.

    Raises:
        ConfigurationError: a CA bundle cannot be used.
    """
    async with AsyncExitStack() as ends:
        cluster = settings.prometheus.cluster if settings.prometheus else ""
        cluster = settings.channels.cluster or cluster
        channels = channels_of(settings.channels, cluster=cluster, clock=clock)
        for one in channels:
            ends.push_async_callback(one.close)
        yield channels


def _ledger(settings: Settings) -> Ledger:
    from gpu_pruner.record.ledger.writer import opened  # noqa: PLC0415 - 0.4 s, where it is wanted

    return opened(settings.ledger)


def archive(settings: Settings) -> Archive | None:
    """Return who tells of the past over HTTP; None where no history is kept.

    Raises:
        ConfigurationError: the database's driver is not installed.
    """
    if not settings.ledger.is_on:
        return None
    from gpu_pruner.record.ledger.archive import Archive  # noqa: PLC0415 - as above

    return Archive(settings.ledger)


async def _start_watching(watch: ClusterWatch, board: Board, *, patient: bool) -> None:
    while True:
        try:
            await watch.start()
        except ClusterError as error:
            if not patient:
                raise
            board.waiting_for = f"the API server: {error}"
            _log.error("waiting for the API server", error=str(error))
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            board.waiting_for = "the first cycle"
            return


_Parts: TypeAlias = tuple[
    ClusterClient,
    ClusterWatch,
    TelemetrySource,
    Elector | Alone,
    tuple[HubClient, ...],
    tuple[Channel, ...],
]


def _assembled(
    settings: Settings,
    clock: Clock,
    board: Board,
    *,
    parts: _Parts,
    onlooker: Mode | None,
    silent: bool,
) -> Controller:
    """Put the stages together.

    Args:
        settings: for the rules and the mode.
        clock: paces everything.
        board: where cycles are published.
        parts: the connected client, watch and source, who leads, the JupyterHubs, and the channels
            beside Events.
        onlooker: see `MemoryBooks`.
        silent: whether to write nothing at all, not even an Event.
    """
    client, watch, source, leadership, hubs, outside = parts
    rules, mode = settings.rules(), settings.mode
    leads = leadership if isinstance(leadership, Elector) else None
    writer = client.fenced(leads) if leads else client
    actor = _actor(settings, writer, clock, hubs=hubs)
    books: Books = MemoryBooks(onlooker) if silent else ClusterBooks(actor)
    channels = () if silent else (*outside, EventChannel(writer))
    notifier = _notifier(channels, leads, clock=clock, mode=mode)
    observer = Observer(source, watch, rules, hubs=HubWatch(hubs) if hubs else None)
    cycle = Cycle(
        observer=observer,
        source=source,
        books=books,
        executor=Executor(notifier, actor, books, rules),
        board=board,
        clock=clock,
        rules=rules,
        honor_labels=settings.prometheus.honor_labels if settings.prometheus else True,
        leadership=leadership,
        switch=None if silent else HoldSwitch(client, namespace=lease_namespace(settings.lease)),
    )
    return Controller(
        client=client,
        watch=watch,
        source=source,
        observer=observer,
        actor=actor,
        cycle=cycle,
        board=board,
        elector=leads,
    )


def _notifier(
    channels: tuple[Channel, ...], leads: Elector | None, *, clock: Clock, mode: Mode
) -> NotifierPort:
    """Return what tells people: nobody where there is no channel, and only while we lead."""
    if not channels:
        return Silence()
    may_tell = (lambda: True) if leads is None else (lambda: leads.seconds_left() > 0)
    return Notifier(channels, clock=clock, mode=mode, may_tell=may_tell)


def _actor(
    settings: Settings, writer: ClusterClient, clock: Clock, *, hubs: tuple[HubClient, ...]
) -> Actor:
    return Actor(
        writer,
        clock=clock,
        mode=settings.mode,
        protected=settings.protected_namespaces,
        levers=Levers.of_settings(settings.custom_levers),
        hubs=hubs,
    )

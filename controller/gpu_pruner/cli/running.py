"""What the commands do, as coroutines that return an exit code."""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import structlog

from gpu_pruner.act.actor import Actor
from gpu_pruner.act.complaints import Wrong, complain
from gpu_pruner.act.levers import Levers
from gpu_pruner.cli.ending import call_at_the_end_of_stdin
from gpu_pruner.cli.explainer import Explainer
from gpu_pruner.cli.naming import must_exist
from gpu_pruner.cli.orders import holds_no_gpu
from gpu_pruner.cli.posting import weekly_report
from gpu_pruner.cli.printing import print_json, print_plan
from gpu_pruner.cli.reloading import SettingsFile
from gpu_pruner.cli.reporter import Reporter
from gpu_pruner.cli.wiring import archive, connected, jupyter_hubs, telemetry_source
from gpu_pruner.errors import ActionRefused, PrunerError
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.reviews import our_name
from gpu_pruner.loop.runner import run_forever
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.orders import Outcome, PauseOrder, Result
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.workload import RootRef
from gpu_pruner.record.board import Board
from gpu_pruner.record.rows import plan_row
from gpu_pruner.serve.app import Listener, Voices, application
from gpu_pruner.serve.people import Desk
from gpu_pruner.settings.clock import clock_from_environment
from gpu_pruner.settings.environment import ENDS_WITH_STDIN
from gpu_pruner.settings.schema import Settings

_log = structlog.get_logger(__name__)
_FINE, _FAILED = 0, 1
_NO_PAST = (
    "exporters are scraped from now on, so nothing is known of the window yet; "
    "`run` fills it, and Prometheus would know it"
)


async def run(settings: Settings, *, file: SettingsFile | None = None) -> int:
    """Run the daemon until SIGTERM or SIGINT, or the end of standard input (`ENDS_WITH_STDIN`).

    Args:
        settings: those that hold at the start.
        file: read again when it changes.

    Returns:
        0 after an orderly end.
    """
    clock = clock_from_environment()
    await telemetry_source(settings, clock).close()  # say what is missing before a port is taken
    board = Board()
    desk = Desk(Levers.of_settings(settings.custom_levers))
    explainer = Explainer()
    app = application(
        board,
        clock,
        cycle_seconds=settings.cycle_seconds,
        keep_cap_seconds=settings.keep_cap_seconds,
        voices=_voices(settings, clock, desk, explainer),
    )
    weekly = weekly_report(settings, clock, board)
    listener = Listener(
        app,
        address=settings.listen_address,
        port=settings.listen_port,
    )
    _log.info("listening", port=listener.port, mode=settings.mode.value)
    work = asyncio.ensure_future(_work(settings, board, desk, explainer, file=file))
    posting = asyncio.ensure_future(weekly.run()) if weekly else None
    if posting is not None:
        posting.add_done_callback(_tell_the_end)
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, work.cancel)
    if os.environ.get(ENDS_WITH_STDIN):
        call_at_the_end_of_stdin(work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        _log.info("stopped")
    finally:
        if posting is not None:
            posting.cancel()
        await listener.close()
    return _FINE


def _tell_the_end(posting: asyncio.Future[None]) -> None:
    """Say that no weekly report comes any more: pruning goes on without."""
    if not posting.cancelled():
        _log.error("weekly reports stopped unexpectedly", exc_info=posting.exception())


def _voices(settings: Settings, clock: Clock, desk: Desk, explainer: Explainer) -> Voices:
    """Return who answers over HTTP what the board cannot.

    Raises:
        ConfigurationError: the driver of the ledger's database is not installed.
    """
    reports, past = Reporter(settings, clock), archive(settings)
    return Voices(people=desk, explainer=explainer, reports=reports, archive=past)


async def _work(
    settings: Settings,
    board: Board,
    desk: Desk,
    explainer: Explainer,
    *,
    file: SettingsFile | None,
) -> None:
    clock = clock_from_environment()
    async with AsyncExitStack() as ends:
        wishes = await ClusterClient.connect(settings.kubernetes, clock=clock)
        ends.push_async_callback(wishes.close)
        desk.open(wishes)
        controller = await ends.enter_async_context(
            connected(settings, clock, board, one_pass=False, patient=True)
        )
        explainer.open(controller.cycle)
        news = controller.elector.won if controller.elector else None
        every = settings.cycle_seconds
        cycle = controller.cycle
        before = None
        if file is not None:
            file.begin(board, clock)
            before = partial(file.look, board, clock, cycle.obey)
        await run_forever(cycle, clock=clock, every=every, news=news, before=before)


async def once(settings: Settings, *, output: str) -> int:
    """Run one cycle and print it.

    Returns:
        0, or 1 where a breaker kept the cycle from saying anything.
    """
    clock = clock_from_environment()
    async with connected(settings, clock, Board(), one_pass=True) as controller:
        report = await controller.cycle.run()
    plan = report.plan
    if plan is None:
        raise PrunerError(report.failure)
    if settings.prometheus is None:
        sys.stderr.write(f"gpu-pruner: {_NO_PAST}\n")
    row = plan_row(plan, number=report.number)
    if output == "json":
        print_json(row)
    else:
        print_plan(row)
    return _FAILED if plan.breakers else _FINE


async def pause(settings: Settings, root: RootRef, *, reason: str) -> int:
    """Pause one root by a person's decision.

    Raises:
        ConfigurationError: nothing is called so; with the names that are most like it.
        ActionRefused: it holds no GPU.
        ClusterError: it could not be read.
    """
    clock = clock_from_environment()
    person = _person()
    order = PauseOrder(
        root=root,
        decision_id=f"manual-{round(clock.now())}",
        why=reason or f"paused by {person} with the command line",
        by=person,
    )
    async with _acting(settings, clock) as (client, actor):
        await must_exist(client, root, levers=Levers.of_settings(settings.custom_levers))
        if refusal := await holds_no_gpu(client, root):
            raise ActionRefused(refusal)
        outcome = await actor.pause(order)
    return _told(outcome, hint=f"Undo it with: gpu-pruner resume {root.ref}\n")


async def resume(settings: Settings, root: RootRef, *, wrong: str = "") -> int:
    """Restore one root by a person's decision; raises as `pause` does.

    Args:
        settings: for the API server and the levers.
        root: what was named.
        wrong: why its pause was wrong; empty where it was not. That is written first, because a
            restore removes the record: whoever is interrupted can just say it again.
    """
    clock = clock_from_environment()
    levers = Levers.of_settings(settings.custom_levers)
    why, hint = "resumed with the command line", ""
    async with _acting(settings, clock) as (client, actor):
        await must_exist(client, root, levers=levers)
        if wrong:
            found, record = await actor.recorded(root)
            said = Wrong(by=await our_name(client), reason=wrong, at=clock.now())
            until = await complain(client, found, record, said, levers=levers)
            why, hint = f"its pause was wrong: {wrong}", _counted(until)
        outcome = await actor.restore(root, by=_person(), why=why)
    return _told(outcome, hint=hint)


def _counted(until: Timestamp | None) -> str:
    """Say what came of a complaint."""
    end = "for good" if until is None else f"until {rfc3339(until)}"
    return f"It is exempt {end}, and its pause counts as a false positive.\n"


@asynccontextmanager
async def _acting(settings: Settings, clock: Clock) -> AsyncIterator[tuple[ClusterClient, Actor]]:
    """Return what carries out a person's order, and close it in the end."""
    async with AsyncExitStack() as ends:
        hubs = await ends.enter_async_context(jupyter_hubs(settings))
        client = await ClusterClient.connect(settings.kubernetes, clock=clock)
        ends.push_async_callback(client.close)
        actor = Actor(
            client,
            clock=clock,
            mode=Mode.SCALE_DOWN,
            protected=settings.protected_namespaces,
            levers=Levers.of_settings(settings.custom_levers),
            hubs=hubs,
        )
        yield client, actor


def _person() -> str:
    """Return who is at the keyboard; a container's user often has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _told(outcome: Outcome, *, hint: str = "") -> int:
    if outcome.result is Result.DONE:
        sys.stdout.write(f"{outcome.root.ref}: {outcome.detail}\n{hint}")
        return _FINE
    sys.stderr.write(f"gpu-pruner: {outcome.result.value}: {outcome.detail}\n")
    return _FAILED

"""`gpu-pruner backtest`: recorded history replayed under a grid of settings.

It reads history from Prometheus, part by part, replays it through `decide.grid`, and prints what
each setting would have returned and whom it would have disturbed. It writes nothing but its cache
and, where asked for, a picture.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gpu_pruner.cli.backtest_table import print_backtest
from gpu_pruner.cli.completing import complete
from gpu_pruner.cli.given import settings_from_flags
from gpu_pruner.cli.options import history_options
from gpu_pruner.cli.plotting import drawable
from gpu_pruner.cli.printing import output_option, print_json
from gpu_pruner.decide.grid import Grid, Past, outcomes
from gpu_pruner.decide.past_workloads import pods_seen, workloads
from gpu_pruner.decide.recording import Recording
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.rules import LEAST_STEPS
from gpu_pruner.model.units import HOUR, Seconds
from gpu_pruner.observe.answer_cache import AnswerCache, default_folder
from gpu_pruner.observe.prometheus_past import Outline, PrometheusPast
from gpu_pruner.record.backtest import Backtest
from gpu_pruner.record.backtest import backtest as rows_of
from gpu_pruner.record.logs import configure_logging
from gpu_pruner.settings.clock import clock_from_environment
from gpu_pruner.settings.durations import format_duration, parse_duration
from gpu_pruner.settings.schema import PrometheusSettings, Settings

_MOST_SETTINGS = 100
"""Combinations of one run: more are a slip, and nobody reads such a table."""


def _several(read: Callable[[str], float]) -> Callable[[str], tuple[float, ...]]:
    """Return what reads a list with commas; each value once, ascending."""

    def parse(text: str) -> tuple[float, ...]:
        try:
            return tuple(sorted({read(one.strip()) for one in text.split(",")}))
        except ConfigurationError as error:
            raise click.BadParameter(str(error)) from error

    return parse


def _threshold(text: str) -> float:
    with suppress(ValueError):
        value = float(text)
        if 0 < value < 1:
            return value
    raise ConfigurationError(f"{text[:40]!r} is not a ratio between 0 and 1")


def _minutes(text: str) -> Seconds:
    return parse_duration(text, bare_unit="m")


def _seconds(text: str) -> Seconds:
    return parse_duration(text, bare_unit="s")


def _since(text: str) -> Seconds:
    try:
        return parse_duration(text, bare_unit="d")
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.option(
    "--windows",
    type=_several(_minutes),
    default="20m,35m,60m",
    show_default=True,
    metavar="LIST",
    help="Judged windows, with commas; bare numbers are minutes.",
)
@click.option(
    "--thresholds",
    type=_several(_threshold),
    default="0.001,0.01",
    show_default=True,
    metavar="LIST",
    help="Engine activity ratios at which work begins, with commas.",
)
@click.option(
    "--notices",
    type=_several(_seconds),
    default="15m,30m",
    show_default=True,
    metavar="LIST",
    help="Times from warning to pause, with commas; bare numbers are seconds.",
)
@click.option(
    "--since",
    type=_since,
    default="7d",
    show_default=True,
    metavar="TIME",
    help="How far to look back from now, for example 24h; a bare number is days.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw hours against regrets into FILE.png or FILE.svg; needs the extra `plot`.",
)
@click.option(
    "--cache/--no-cache",
    default=True,
    show_default=True,
    help="Whether answers are kept in the user's cache, and taken from it.",
)
@history_options
@output_option
def backtest(
    *,
    windows: tuple[Seconds, ...],
    thresholds: tuple[float, ...],
    notices: tuple[Seconds, ...],
    since: Seconds,
    plot: Path | None,
    cache: bool,
    **flags: object,
) -> None:
    """Replay recorded history under a grid of settings: hours returned, and pauses regretted."""
    configure_logging(str(flags["log_format"]), level=logging.WARNING)
    settings = settings_from_flags(flags)
    if settings.prometheus is None:
        raise ConfigurationError(
            "a backtest needs history: give --prometheus-url URL (exporters have no past)"
        )
    grid = Grid(base=settings.rules(), windows=windows, thresholds=thresholds, notices=notices)
    _check(grid, since)
    if plot is not None:
        drawable(plot)
    kept = AnswerCache(default_folder() if cache else None)
    source, output = settings.prometheus, str(flags["output"])

    async def run() -> int:
        found = await _replay(source, settings, grid, since=since, cache=kept)
        return _tell(found, output=output, plot=plot)

    complete(run)


def _check(grid: Grid, since: Seconds) -> None:
    """Refuse a grid that no history could answer.

    Raises:
        ConfigurationError: with the flag.
    """
    count = len(grid.windows) * len(grid.thresholds) * len(grid.notices)
    if count > _MOST_SETTINGS:
        raise ConfigurationError(
            f"{count} combinations; at most {_MOST_SETTINGS}", path="--windows"
        )
    if min(grid.windows) <= 0:
        raise ConfigurationError("a window has to be longer than 0", path="--windows")
    least = max(grid.windows) + max(grid.notices) + HOUR
    if since < least:
        raise ConfigurationError(
            f"{format_duration(since)} of history is too short: the longest window, the longest "
            f"notice and an hour for regrets take {format_duration(least)}",
            path="--since",
        )


async def _replay(
    server: PrometheusSettings,
    settings: Settings,
    grid: Grid,
    *,
    since: Seconds,
    cache: AnswerCache,
) -> Backtest:
    clock = clock_from_environment()
    source = PrometheusPast(server, clock=clock, cache=cache)
    try:
        outline = await source.outline(now=clock.now(), length=since)
        _check_steps(grid, outline)
        recording = Recording(outline.period, grid.readings())
        with _progress() as progress:
            for part in progress.track(outline.parts, description="asking Prometheus"):
                recording.absorb(part, await source.columns(part))
        devices = recording.devices()
        pods = pods_seen(devices, honor_labels=server.honor_labels)
        roots = await source.roots(pods, outline.period)
    finally:
        await source.close()
    models = {one.device: one.model for one in devices}
    past = Past(
        period=outline.period,
        devices=devices,
        workloads=workloads(pods, roots, models, rules=settings.rules()),
        scrape_interval_seconds=outline.scrape_interval_seconds,
        proven=outline.proven,
    )
    with _progress() as progress:
        total = len(grid.windows) * len(grid.thresholds) * len(grid.notices)
        settings_done = progress.track(outcomes(past, grid), total=total, description="replaying")
        found = tuple(settings_done)
    return rows_of(past, found, pods=len(pods), roots=roots, notes=outline.notes)


def _check_steps(grid: Grid, outline: Outline) -> None:
    """Refuse a window that telemetry is too coarse for.

    Raises:
        ConfigurationError: with the arithmetic.
    """
    step = max(outline.period.step_seconds, outline.scrape_interval_seconds)
    if min(grid.windows) < LEAST_STEPS * step:
        raise ConfigurationError(
            f"a window needs {LEAST_STEPS} steps, and telemetry comes every {step:g} s: at least "
            f"{format_duration(LEAST_STEPS * step)}",
            path="--windows",
        )


def _progress() -> Progress:
    """Return a bar on standard error, where somebody looks at it."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def _tell(found: Backtest, *, output: str, plot: Path | None) -> int:
    if output == "json":
        print_json(found)
    else:
        print_backtest(found)
    sys.stdout.flush()
    if plot is not None:
        from gpu_pruner.cli.backtest_plot import save  # noqa: PLC0415 - needs the extra

        save(found, plot)
        sys.stderr.write(f"gpu-pruner: drawn into {plot}\n")
    return 0

"""`gpu-pruner report`: what idle GPUs cost and what pauses gave back, from the ledger."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape
from rich.table import Table

from gpu_pruner.cli.given import settings_from_flags
from gpu_pruner.cli.options import config_options
from gpu_pruner.cli.printing import console, print_json
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.units import HOUR, Seconds
from gpu_pruner.record.logs import configure_logging
from gpu_pruner.settings.clock import clock_from_environment
from gpu_pruner.settings.durations import parse_duration
from gpu_pruner.settings.ledger import LedgerSettings
from gpu_pruner.settings.prices import PriceTable, read_prices

if TYPE_CHECKING:
    from gpu_pruner.record.savings import Savings

OUTPUTS = ("table", "markdown", "json", "html")


@click.command()
@click.option(
    "--since",
    default="7d",
    show_default=True,
    metavar="TIME",
    help="How far to look back from now, for example 24h; a bare number is days.",
)
@click.option(
    "--prices",
    type=click.Path(path_type=Path),
    help="YAML file with what an hour of each GPU model costs; without it there is no money.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Rows of each table; 0 for all. JSON has all.",
)
@click.option(
    "--output",
    type=click.Choice(OUTPUTS),
    default="table",
    show_default=True,
    help="How the report is printed on standard output.",
)
@config_options
def report(*, since: str, prices: Path | None, top: int, output: str, **flags: object) -> None:
    """Sum up idle and returned GPU hours by namespace, owner, workload and model."""
    configure_logging(str(flags["log_format"]), level=logging.WARNING)
    seconds = _length(since)
    table = read_prices(prices) if prices else None
    settings = settings_from_flags(flags).ledger
    if not settings.is_on:
        raise ConfigurationError("no history is kept: set ledger.directory or ledger.dsn")
    _print(_read(settings, seconds, table), output=output, top=top)


def _length(text: str) -> Seconds:
    try:
        seconds = parse_duration(text, bare_unit="d")
    except ConfigurationError as error:
        raise click.BadParameter(str(error), param_hint="--since") from error
    if seconds < HOUR:
        raise click.BadParameter("sums are kept by the hour: at least 1h", param_hint="--since")
    return seconds


def _read(settings: LedgerSettings, seconds: Seconds, prices: PriceTable | None) -> Savings:
    # Only this command and a controller with a ledger load the database's libraries.
    from gpu_pruner.record.ledger.database import Database  # noqa: PLC0415
    from gpu_pruner.record.ledger.usage import usage  # noqa: PLC0415
    from gpu_pruner.record.savings import savings  # noqa: PLC0415

    now = clock_from_environment().now()
    database = Database(settings)
    return savings(usage(database, since=now - seconds, until=now), prices)


def _print(found: Savings, *, output: str, top: int) -> None:
    from gpu_pruner.record import savings_pages  # noqa: PLC0415 - as above

    if output == "json":
        print_json(found)
    elif output == "table":
        _print_tables(found, top=top)
    else:
        write = savings_pages.html if output == "html" else savings_pages.markdown
        sys.stdout.write(write(found, top=top))


def _print_tables(found: Savings, *, top: int) -> None:
    from gpu_pruner.record import savings_pages as pages  # noqa: PLC0415 - as above

    out = console()
    for sentence in pages.remarks(found):
        out.print(escape(sentence))
    everything = (("Everything", (found.total,)), *pages.sections(found))
    for title, rows in everything:
        out.print()
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column(title.lower(), overflow="fold")
        for heading in pages.headings(found):
            table.add_column(escape(heading), justify="right")
        for row in pages.shown(rows, top):
            name = "" if title == "Everything" else pages.name_in(title, row)
            table.add_row(escape(name), *pages.cells(row))
        out.print(table)
        if left := pages.more(rows, top):
            out.print(escape(left))

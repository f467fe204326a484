"""`gpu-pruner report`: what idle GPUs cost and what pauses gave back, from the ledger.

Prints it, or posts it to a webhook; the ledger is read here, or by a controller that is asked.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.markup import escape
from rich.table import Table

from gpu_pruner.cli.asking import FLAG, ask_for_report, controller_address
from gpu_pruner.cli.given import settings_from_flags
from gpu_pruner.cli.options import config_options
from gpu_pruner.cli.posting import address_of, report_until
from gpu_pruner.cli.printing import console, print_json
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.units import HOUR, Seconds
from gpu_pruner.notify.slack_webhook import post
from gpu_pruner.record.logs import configure_logging
from gpu_pruner.settings.clock import clock_from_environment
from gpu_pruner.settings.durations import parse_duration
from gpu_pruner.settings.schema import Settings

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
    FLAG,
    metavar="URL",
    help="Ask a running controller instead of reading its database here; prices are then those of "
    "its settings.",
)
@click.option(
    "--post",
    is_flag=True,
    help="Post it to the webhook of the settings (report.webhook_file) instead of printing it.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print the message that --post would send, and send nothing."
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
    settings = settings_from_flags(flags)
    if prices is not None:
        told = settings.report.model_copy(update={"prices_file": prices})
        settings = settings.model_copy(update={"report": told})
    address = address_of(settings.report) if flags["post"] and not flags["dry_run"] else None
    found = _found(settings, seconds, controller=flags["controller"])
    if flags["post"] or flags["dry_run"]:
        _post(found, address, top=top)
    else:
        _print(found, output=output, top=top)


def _length(text: str) -> Seconds:
    try:
        seconds = parse_duration(text, bare_unit="d")
    except ConfigurationError as error:
        raise click.BadParameter(str(error), param_hint="--since") from error
    if seconds < HOUR:
        raise click.BadParameter("sums are kept by the hour: at least 1h", param_hint="--since")
    return seconds


def _found(settings: Settings, seconds: Seconds, *, controller: object) -> Savings:
    """Return the report: from a controller's address, or from the ledger of the settings."""
    if controller is None:
        return report_until(settings, clock_from_environment().now(), length=seconds)
    # Only who wants a report loads the database's libraries.
    from gpu_pruner.record.savings import Savings  # noqa: PLC0415

    if settings.report.prices_file is not None:
        told = "a controller reports with the prices of its own settings (report.prices_file)"
        raise ConfigurationError(told, path=FLAG)
    return asyncio.run(ask_for_report(controller_address(str(controller)), seconds, Savings))


def _post(found: Savings, address: str | None, *, top: int) -> None:
    """Post the report, or print the message where there is no address to post it to."""
    from gpu_pruner.record.savings_slack import slack_message  # noqa: PLC0415 - as above

    message = slack_message(found, top=top)
    if address is None:
        sys.stdout.write(msgspec.json.format(message, indent=2).decode() + "\n")
    else:
        post(address, message)
        sys.stdout.write("The report was posted.\n")


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

"""Rows and decisions for people at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpu_pruner.record.rows import PlanRow

F = TypeVar("F", bound=Callable[..., object])

VERDICT_STYLES = {"idle": "yellow", "active": "green", "unknown": "magenta"}


_WIDE = 4000
"""Columns where nobody looks at a terminal: one line per workload, so that grep finds it."""


def output_option(command: F) -> F:
    """Add `--output`."""
    return click.option(
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        help="How the result is printed on standard output.",
    )(command)


def console() -> Console:
    """Return standard output: as wide as the terminal, or as wide as a line gets."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)


def plan_table(row: PlanRow) -> Table:
    """Return the workloads as a table: verdict and state in words, colour only beside them."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("workload", no_wrap=True)
    table.add_column("GPUs", justify="right")
    table.add_column("verdict")
    table.add_column("state")
    table.add_column("why", overflow="fold")
    for one in row.workloads:
        style = VERDICT_STYLES.get(one.verdict, "")
        table.add_row(
            escape(one.ref),
            str(one.gpus),
            f"[{style}]{one.verdict}[/]" if style else one.verdict,
            one.state,
            f"[bold]{one.reason}[/]: {escape(one.message)}",
        )
    return table


def print_plan(row: PlanRow) -> None:
    """Print a plan; breakers first, because they say that nothing will be done."""
    out = console()
    for breaker in row.breakers:
        out.print(f"[bold red]{breaker.name}[/]: {escape(breaker.message)}")
    if not row.workloads:
        out.print("No pod of this cluster requests a GPU.")
        return
    out.print(plan_table(row))


def print_json(answer: msgspec.Struct) -> None:
    """Print an answer for programs: indented JSON, the same fields as in the API."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(answer)) + b"\n")

"""Rows and decisions for people at a terminal."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpu_pruner.record.rows import PlanRow, WorkloadRow

VERDICT_STYLES = {"idle": "yellow", "active": "green", "unknown": "magenta"}


_WIDE = 4000
"""Columns where nobody looks at a terminal: one line per workload, so that grep finds it."""


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


def print_explanation(row: WorkloadRow) -> None:
    """Print one workload in full: the sentence, its times, and every device with its evidence."""
    out = console()
    style = VERDICT_STYLES.get(row.verdict, "")
    out.print(f"[bold]{escape(row.ref)}[/]: [{style}]{row.verdict}[/], {row.reason}")
    out.print(f"  state: {row.state}, GPUs: {row.gpus}")
    out.print(escape(row.message))
    times = (
        ("idle since", row.idle_since),
        ("warned at", row.warned_at),
        ("pause at", row.pause_at),
        ("paused at", row.paused_at),
        ("kept until", row.kept_until),
    )
    for words, moment in times:
        if moment is not None:
            out.print(f"  {words}: {moment}")
    table = Table(header_style="bold", pad_edge=False)
    for name in ("device", "node", "model", "verdict", "evidence"):
        table.add_column(name, overflow="fold")
    for device in row.devices:
        table.add_row(
            escape(device.device),
            escape(device.node),
            escape(device.model),
            f"{device.verdict} ({device.reason})",
            escape(device.detail),
        )
    if row.devices:
        out.print(table)

"""A backtest for people at a terminal: every setting in a line, and the best one by namespace."""

from __future__ import annotations

import sys

from rich.markup import escape
from rich.table import Table

from gpu_pruner.cli.printing import console
from gpu_pruner.record.backtest import Backtest, SettingOutcome, TallyRow
from gpu_pruner.settings.durations import format_duration

_HEADINGS = ("GPU h returned", "of held", "pauses", "workloads", "regrets", "of pauses")


def print_backtest(found: Backtest) -> None:
    """Print what each setting would have done; remarks on standard error."""
    out = console()
    out.print(
        f"{found.begin} to {found.end}: {found.workloads} workloads on {found.gpus} GPUs, "
        f"{found.gpu_hours_held:.1f} GPU h held; workloads by {found.grouped_by}"
    )
    out.print()
    table = _table("window", "threshold", "notice")
    table.add_column("")
    for one in found.settings:
        table.add_row(
            format_duration(one.window_seconds),
            f"{one.idle_threshold:g}",
            format_duration(one.notice_seconds),
            *_cells(one, found.gpu_hours_held),
            "recommended" if one.recommended else "",
            style="bold" if one.recommended else None,
        )
    out.print(table)
    out.print()
    out.print(escape(found.recommendation))
    for one in found.settings:
        if one.recommended:
            _print_namespaces(one, found.gpu_hours_held)
    for remark in found.remarks:
        sys.stderr.write(f"gpu-pruner: {remark}\n")


def _print_namespaces(best: SettingOutcome, held: float) -> None:
    out = console()
    out.print()
    table = _table("namespace")
    ordered = sorted(best.namespaces, key=lambda one: (-one.gpu_hours_returned, one.namespace))
    for one in ordered:
        table.add_row(escape(one.namespace), *_cells(one, held))
    out.print(table)


def _table(*names: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    return table


def _cells(one: TallyRow, held: float) -> tuple[str, ...]:
    return (
        f"{one.gpu_hours_returned:.1f}",
        _share(one.gpu_hours_returned, held),
        str(one.pauses),
        str(one.workloads_paused),
        str(one.regrets),
        _share(one.regrets, one.pauses),
    )


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "-"

"""One moment of the demo as a picture for a terminal, whatever its size.

Wide and high: a table with whole sentences. Wide: one line per workload. Narrow: two short lines
per workload, which is also what the picture in the README shows. Pure; called by `demo`.
"""

from __future__ import annotations

import re

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gpu_pruner.cli.printing import VERDICT_STYLES
from gpu_pruner.model.units import MINUTE, parse_rfc3339
from gpu_pruner.sim.judge import Judgement
from gpu_pruner.sim.stage import Moment
from gpu_pruner.sim.story import Ending

_LINES = 8
"""Happenings shown below the table."""
_ROOMY_COLUMNS = 110
"""From here on sentences are shown whole."""
_NARROW_COLUMNS = 80
"""Below, a line has no room for a reference and a sentence."""

_DEVICE = re.compile(r"GPU-[0-9a-f-]{36}(/[0-9]+)? of pod [^ ]+: ")
"""How a message names a device: longer than a line has room for."""


def picture(moment: Moment, console: Console, told: str) -> Group:
    """Return one moment as a picture that fits the terminal, with what matters most on top.

    Args:
        moment: what there is to see.
        console: for its size.
        told: what stands behind the title.
    """
    title = Text(f"gpu-pruner demo: minute {moment.minute:.0f}", style="bold")
    title.append(f"  {told}", style="not bold")
    title.no_wrap, title.overflow = True, "ellipsis"
    if console.width < _NARROW_COLUMNS:
        return Group(
            title, Text(), *(line for one in moment.judgements for line in _two(one, moment))
        )
    table = _table(moment, console)
    room = min(_LINES, console.height - len(moment.judgements) - 8)
    if room <= 0:
        return Group(title, table)
    happened = "\n".join(moment.happened[-room:])
    return Group(title, table, Text(happened, style="dim", no_wrap=True, overflow="ellipsis"))


def _table(moment: Moment, console: Console) -> Table:
    """Return a line for each workload, or two where there is room for all of them."""
    rows = len(moment.judgements)
    roomy = console.height >= 3 * rows + _LINES + 6 and console.width >= _ROOMY_COLUMNS
    box = SIMPLE_HEAD if console.height >= rows + 8 else None
    table = Table(expand=True, header_style="bold", pad_edge=False, box=box)
    half = console.width // 2
    table.add_column("workload", no_wrap=True, overflow="ellipsis", max_width=half)
    table.add_column("verdict", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("why", no_wrap=not roomy, overflow="fold" if roomy else "ellipsis", ratio=1)
    for one in moment.judgements:
        table.add_row(*_cells(one, moment, roomy=roomy))
    return table


def _cells(one: Judgement, moment: Moment, *, roomy: bool) -> tuple[str, str, str, str]:
    told = moment.told.get(one.part.ref)
    verdict = told.verdict if told else "-"
    style = VERDICT_STYLES.get(verdict, "dim")
    name, about = escape(one.part.ref), escape(one.part.told)
    return (
        f"{name}\n[dim]{about}[/]" if roomy and about else name,
        f"[{style}]{verdict}[/]",
        _state(one, moment),
        _why(one, moment, roomy=roomy),
    )


def _why(one: Judgement, moment: Moment, *, roomy: bool) -> str:
    """Say why it is where it is: of what was paused, the evidence that the pause has recorded."""
    told = moment.told.get(one.part.ref)
    if told is None:
        return "[dim]…[/]"
    message = one.why if told.reason == "Paused" and one.why else told.message
    if not roomy:
        message = _DEVICE.sub("", message, count=1)
    return f"[bold]{told.reason}[/]: {escape(message)}"


def _two(one: Judgement, moment: Moment) -> tuple[Table, Text]:
    """Return two lines: the workload with its state, and below it what it is."""
    told = moment.told.get(one.part.ref)
    style = VERDICT_STYLES.get(told.verdict, "dim") if told else "dim"
    head = Table.grid(expand=True)
    head.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    head.add_column(no_wrap=True, justify="right")
    reason = told.reason if told else "…"
    shown = f"{_state(one, moment)} [{style}]{reason}[/]"
    if told and told.reason in {"Paused", "Warned"}:
        shown = _state(one, moment)
    head.add_row(f"[bold]{escape(one.part.ref)}[/]", shown)
    below = one.part.told or (told.message if told else "")
    return head, Text(f"  {below}", style="dim", no_wrap=True, overflow="ellipsis")


def _state(judgement: Judgement, moment: Moment) -> str:
    told, scene = moment.told.get(judgement.part.ref), moment.scenes[judgement.part.ref]
    state = scene.phase or "Watching"
    if told and told.pause_at and state == "Warned":
        minutes = max(0.0, (parse_rfc3339(told.pause_at) - moment.now) / MINUTE)
        return f"[yellow]Warned[/], {minutes:.0f} min"
    if judgement.faults:
        return "[bold red]WRONG[/]"
    if judgement.over and judgement.part.ending is not Ending.OPEN:
        return f"[green]{judgement.part.ending.value}[/]"
    return state

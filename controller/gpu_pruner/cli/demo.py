"""`gpu-pruner demo`: plays the story, shows it live, and judges how it ended.

With a terminal it stays up until Ctrl-C; without one it ends after the story, with a JSON summary
on standard output. SIGTERM ends it as Ctrl-C does, and nothing of it is left behind; SIGKILL leaves
a folder with keys to a cluster that is gone.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gpu_pruner.cli.ending import cancelled_by_sigterm
from gpu_pruner.cli.printing import VERDICT_STYLES
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.kube.crd import crd
from gpu_pruner.model.units import MINUTE, parse_rfc3339
from gpu_pruner.sim.judge import Judgement
from gpu_pruner.sim.stage import Moment, Stage
from gpu_pruner.sim.story import FIRST_STORY, NOTICE, WINDOW, Ending

_FINE, _FAILED = 0, 1
_SLOWEST, _FASTEST = 1.0, 240.0
"""Above, a controller on a small machine cannot finish a cycle within its simulated minute."""
_LINES = 8
"""Happenings shown below the table."""
_ROOMY_COLUMNS = 110
"""From here on sentences are shown whole."""


class SummaryRow(msgspec.Struct, frozen=True):
    """One workload at the end of the demo."""

    ref: str
    verdict: str
    reason: str
    message: str
    state: str
    """paused, resumed or kept, as the API server's objects and request log show it; else
    ``unfinished``."""
    expected: str
    faults: tuple[str, ...]


class Summary(msgspec.Struct, frozen=True):
    """What the demo prints without a terminal."""

    ok: bool
    minutes: float
    """Simulated."""
    workloads: tuple[SummaryRow, ...]
    faults: tuple[str, ...]


def summarise(moment: Moment) -> Summary:
    """Return how the story ended."""
    unfinished = tuple(
        f"{one.part.ref} did not end {one.part.ending.value}"
        for one in moment.judgements
        if not one.over and not one.faults
    )
    faults = (*moment.faults, *unfinished, *moment.misreports())
    return Summary(
        ok=not faults,
        minutes=round(moment.minute, 1),
        workloads=tuple(_row(one, moment) for one in moment.judgements),
        faults=faults,
    )


def _row(judgement: Judgement, moment: Moment) -> SummaryRow:
    told = moment.told.get(judgement.part.ref)
    return SummaryRow(
        ref=judgement.part.ref,
        verdict=told.verdict if told else "",
        reason=told.reason if told else "",
        message=told.message if told else "",
        state=judgement.part.ending.value if judgement.over else "unfinished",
        expected=judgement.part.ending.value,
        faults=judgement.faults,
    )


async def show(*, speed: float, controller: str, patience_minutes: float) -> int:
    """Play the story and show it.

    Args:
        speed: simulated seconds per real second.
        controller: command line in the controller's place; empty for the controller.
        patience_minutes: simulated minutes after which the story has failed.

    Returns:
        0 where it ended as told, else 1.

    Raises:
        ConfigurationError: the speed is out of range.
    """
    if not _SLOWEST <= speed <= _FASTEST:
        message = f"must be from {_SLOWEST:.0f} to {_FASTEST:.0f}"
        raise ConfigurationError(message, path="--speed")
    console = Console(stderr=not sys.stdout.isatty(), highlight=False)
    with cancelled_by_sigterm(), tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "controller.log"
        stage = Stage(
            story=replace(FIRST_STORY, patience=patience_minutes * MINUTE),
            speed=speed,
            crds=(crd(),),
            controller=tuple(shlex.split(controller)),
            log=log,
        )
        async with stage:
            if not sys.stdout.isatty():
                minutes = (WINDOW + NOTICE) / MINUTE / speed
                console.print(
                    f"A simulated cluster at {stage.cluster.url}, its controller at "
                    f"http://127.0.0.1:{stage.port}; the first pause comes after about "
                    f"{minutes:.0f} minutes. {_elsewhere(stage)}",
                    soft_wrap=True,
                )
            if sys.stdout.isatty():
                ending = await _perform(stage, console)
            else:
                ending = await stage.play(_Chronicle(console).tell)
        summary = summarise(ending)
        if not summary.ok:
            _show_log(log)
    if sys.stdout.isatty():
        console.print(_verdict(summary))
    else:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(summary)) + b"\n")
    return _FINE if summary.ok else _FAILED


def _elsewhere(stage: Stage) -> str:
    """Say how another shell looks at the same cluster."""
    example = "gpu-pruner explain deployment/team-a/finetune"
    return (
        f"In another shell: `. {stage.environment}`, and then for example `gpu-pruner once`, or "
        f"`{example} --controller http://127.0.0.1:{stage.port}`"
    )


async def _perform(stage: Stage, console: Console) -> Moment:
    """Show the stage live; when the story is over, stay until Ctrl-C."""
    running = f"The controller answers at http://127.0.0.1:{stage.port}/api/v1/workloads"
    running += f". {_elsewhere(stage)}"
    with Live(console=console, refresh_per_second=4, screen=False) as live:
        ending = await stage.play(lambda moment: live.update(picture(moment, console, running)))
        told = f"{_verdict(summarise(ending))} {running}; end with Ctrl-C."
        try:
            while True:
                live.update(picture(await stage.look(), console, told))
                await asyncio.sleep(1)
        except asyncio.CancelledError:
            return ending


@dataclass(slots=True)
class _Chronicle:
    """Tells what happens as lines, for a log."""

    console: Console
    told: int = field(default=0)

    def tell(self, moment: Moment) -> None:
        for line in moment.happened[self.told :]:
            self.console.print(escape(line), soft_wrap=True)
        self.told = len(moment.happened)


def picture(moment: Moment, console: Console, told: str) -> Group:
    """Return one moment as a picture that fits the terminal, with what matters most on top.

    Args:
        moment: what there is to see.
        console: for its size; a small one gets one line per workload.
        told: the line under the title.
    """
    rows = len(moment.judgements)
    roomy = console.height >= 3 * rows + _LINES + 6 and console.width >= _ROOMY_COLUMNS
    table = Table(expand=True, header_style="bold", pad_edge=False, box=SIMPLE_HEAD)
    table.add_column("workload", no_wrap=True, overflow="ellipsis", ratio=4)
    table.add_column("verdict", no_wrap=True)
    table.add_column("state", no_wrap=True, ratio=2)
    table.add_column("why", no_wrap=not roomy, overflow="fold" if roomy else "ellipsis", ratio=6)
    for one in moment.judgements:
        table.add_row(*_cells(one, moment, roomy=roomy))
    title = f"gpu-pruner demo: minute {moment.minute:.0f}"
    lines = min(_LINES, console.height - rows - 8)
    happened = moment.happened[-lines:] if lines > 0 else ()
    return Group(
        Text(title, style="bold"),
        Text(told, overflow="fold"),
        table,
        Text("\n".join(happened), style="dim", no_wrap=True, overflow="ellipsis"),
    )


def _cells(one: Judgement, moment: Moment, *, roomy: bool) -> tuple[str, str, str, str]:
    told = moment.told.get(one.part.ref)
    verdict = told.verdict if told else "-"
    style = VERDICT_STYLES.get(verdict, "dim")
    sentence = f"[bold]{told.reason}[/]: {escape(told.message)}" if told else "[dim]…[/]"
    name = escape(one.part.ref)
    return (
        f"{name}\n[dim]{escape(one.part.told)}[/]" if roomy else name,
        f"[{style}]{verdict}[/]",
        _state(one, moment),
        sentence,
    )


def _state(judgement: Judgement, moment: Moment) -> str:
    told, scene = moment.told.get(judgement.part.ref), moment.scenes[judgement.part.ref]
    state = scene.phase or "Watching"
    if told and told.pause_at and state == "Warned":
        minutes = max(0.0, (parse_rfc3339(told.pause_at) - moment.now) / MINUTE)
        return f"[yellow]Warned[/], {minutes:.0f} min"
    if judgement.over and judgement.part.ending is not Ending.KEPT:
        return f"[green]{judgement.part.ending.value}[/]"
    return state


def _verdict(summary: Summary) -> str:
    if summary.ok:
        return "The story ended as told."
    return "The story did NOT end as told: " + "; ".join(summary.faults)


def _show_log(log: Path) -> None:
    if log.exists():
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        sys.stderr.write("\n".join(["The controller's last lines:", *lines[-30:], ""]))

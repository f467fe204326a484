"""`gpu-pruner demo`: plays the story, shows it live, and judges how it ended.

With a terminal it stays up until Ctrl-C; without one it ends after the story, with a JSON summary
on standard output. SIGTERM ends it as Ctrl-C does, and nothing of it is left behind; SIGKILL leaves
a folder with keys to a cluster that is gone.
"""

from __future__ import annotations

import asyncio
import math
import shlex
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import structs
from rich.console import Console
from rich.live import Live
from rich.markup import escape

from gpu_pruner.cli.demo_picture import picture
from gpu_pruner.cli.demo_summary import playbill, summarise, verdict
from gpu_pruner.cli.ending import cancelled_by_sigterm
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.kube.crd import crd
from gpu_pruner.model.units import MINUTE
from gpu_pruner.sim.stage import Moment, Stage
from gpu_pruner.sim.story import NOTICE, WINDOW, Story
from gpu_pruner.sim.story_file import first_story, load_story

_FINE, _FAILED = 0, 1
_SHOWN = "deployment/team-a/finetune"
"""What is explained in the example for another shell."""
_SLOWEST, _FASTEST = 1.0, 120.0
"""Above, a controller on a small machine cannot finish a cycle within its simulated minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """How a demo is to be played."""

    speed: float
    """Simulated seconds per real second."""
    world: Path | None = None
    """File with the story; None: the demo's own."""
    seed: int | None = None
    """Of names, ids and noise; None: the story's own."""
    controller: str = ""
    """Command line in the controller's place; empty for the controller."""
    patience_minutes: float | None = None
    """Simulated minutes after which the story has failed; None: the story's own."""

    def story(self) -> Story:
        """Return the story that is to be played.

        Raises:
            ConfigurationError: the file is wrong, or the speed out of range.
        """
        if not (math.isfinite(self.speed) and _SLOWEST <= self.speed <= _FASTEST):
            message = f"must be from {_SLOWEST:.0f} to {_FASTEST:.0f}"
            raise ConfigurationError(message, path="--speed")
        story = first_story() if self.world is None else load_story(self.world)
        if self.seed is not None:
            story = structs.replace(story, seed=self.seed)
        if self.patience_minutes is not None:
            story = structs.replace(story, minutes=self.patience_minutes)
        return story


async def show(staging: Staging) -> int:
    """Play the story and show it.

    Returns:
        0 where it ended as told, else 1.

    Raises:
        ConfigurationError: the staging is wrong.
    """
    story = staging.story()
    console = Console(stderr=not sys.stdout.isatty(), highlight=False)
    with cancelled_by_sigterm(), tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "controller.log"
        stage = Stage(
            story=story,
            speed=staging.speed,
            crds=(crd(),),
            controller=tuple(shlex.split(staging.controller)),
            log=log,
        )
        async with stage:
            _introduce(stage, console)
            if sys.stdout.isatty():
                ending = await _perform(stage, console)
            else:
                ending = await stage.play(_Chronicle(console).tell)
        summary = summarise(ending)
        if not summary.ok:
            _show_log(log)
    for line in playbill(summary):
        console.print(escape(line), soft_wrap=True)
    if sys.stdout.isatty():
        console.print(escape(verdict(summary)))
    else:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(summary)) + b"\n")
    return _FINE if summary.ok else _FAILED


def _introduce(stage: Stage, console: Console) -> None:
    """Say where everything is, and when something will happen."""
    minutes = (WINDOW + NOTICE) / MINUTE / stage.speed
    console.print(
        f"A simulated cluster at {stage.cluster.url}, its controller at "
        f"http://127.0.0.1:{stage.port}; the first pause comes after about "
        f"{minutes:.0f} minutes. {_elsewhere(stage)}",
        soft_wrap=True,
    )


def _elsewhere(stage: Stage) -> str:
    """Say how another shell looks at the same cluster."""
    refs = [one.ref for one in stage.story.workloads]
    shown = _SHOWN if _SHOWN in refs else refs[0]
    example = f"gpu-pruner explain {shown}"
    return (
        f"In another shell: `. {stage.environment}`, and then for example `gpu-pruner once`, or "
        f"`{example} --controller http://127.0.0.1:{stage.port}`"
    )


async def _perform(stage: Stage, console: Console) -> Moment:
    """Show the stage live; when the story is over, stay until Ctrl-C."""
    with Live(console=console, refresh_per_second=4, screen=False) as live:
        ending = await stage.play(lambda moment: live.update(picture(moment, console, "")))
        told = f"{verdict(summarise(ending))} End with Ctrl-C."
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


def _show_log(log: Path) -> None:
    if log.exists():
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        sys.stderr.write("\n".join(["The controller's last lines:", *lines[-30:], ""]))

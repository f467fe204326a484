"""Plays the demo and draws how it ended: the picture in the README.

``python docs/record_demo.py`` writes ``docs/images/demo.svg``; it takes about a minute. What the
picture shows is what `gpu-pruner demo` shows in a narrow terminal: the same story, the same
controller, the same lines. The file needs nothing from elsewhere, and is dark on any page.
"""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from gpu_pruner.cli.demo_picture import picture
from gpu_pruner.cli.demo_summary import summarise, verdict
from gpu_pruner.kube.crd import crd
from gpu_pruner.sim.stage import Moment, Stage
from gpu_pruner.sim.story_file import first_story

IMAGE = Path(__file__).parent / "images" / "demo.svg"
COLUMNS = 56
"""Few, so that the letters are 11 pixels high where the picture is 400 wide."""

FRAME = """\
<svg class="rich-terminal" role="img" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>gpu-pruner demo: each simulated workload, how it ended, and what it is.</title>
<style>
.{unique_id}-matrix {{
  font: {char_height}px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font: bold 18px ui-monospace, Menlo, Consolas, monospace; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""What rich puts its lines into: with the fonts of whoever looks, and none from elsewhere."""

THEME = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [
        (13, 17, 23),
        (255, 123, 114),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (230, 237, 243),
    ],
)
"""Light on nearly black: every colour that the demo uses has a contrast of 7 to 1 or more."""


class EnoughError(Exception):
    """The minute that was asked for was seen."""

    def __init__(self, moment: Moment) -> None:
        super().__init__(f"minute {moment.minute:.0f}")
        self.moment = moment


async def played(*, speed: float, minutes: float | None) -> Moment:
    """Play the demo's story.

    Args:
        speed: simulated seconds per real second.
        minutes: stop at the first look after so many simulated minutes at which the controller has
            told something; None: play to the end.
    """

    def watch(moment: Moment) -> None:
        if minutes is not None and moment.minute >= minutes and moment.told:
            raise EnoughError(moment)

    async with Stage(story=first_story(), speed=speed, crds=(crd(),)) as stage:
        try:
            return await stage.play(watch)
        except EnoughError as enough:
            return enough.moment


def drawn(moment: Moment, told: str) -> str:
    """Return a moment as SVG.

    Args:
        moment: what there is to see.
        told: what stands behind the title.
    """
    lines = 3 * len(moment.judgements)
    console = Console(
        width=COLUMNS,
        height=lines,
        record=True,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        highlight=False,
    )
    console.print(picture(moment, console, told))
    svg = console.export_svg(
        title="gpu-pruner demo", theme=THEME, code_format=FRAME, unique_id="demo"
    )
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"


@click.command()
@click.option("--speed", type=float, default=60.0, show_default=True, help="Simulated time lapse.")
@click.option("--minutes", type=float, help="Draw this simulated minute, and not the end.")
@click.option("--output", type=click.Path(path_type=Path), default=IMAGE, help="Where to write.")
def main(speed: float, minutes: float | None, output: Path) -> None:
    """Play the demo and draw how it ended."""
    moment = asyncio.run(played(speed=speed, minutes=minutes))
    summary = summarise(moment)
    if minutes is None and not summary.ok:
        sys.exit(verdict(summary))
    output.write_text(drawn(moment, verdict(summary) if summary.ok else ""), encoding="utf-8")


if __name__ == "__main__":
    main()

"""`gpu-pruner check`: ask everything once, print what is right and wrong with the fix, and end."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections import Counter
from contextlib import suppress

import click
from rich.markup import escape
from rich.table import Table

from gpu_pruner.check.examination import Examination
from gpu_pruner.check.finding import Checkup, Finding, Level, checkup
from gpu_pruner.cli.completing import complete
from gpu_pruner.cli.given import settings_from_flags
from gpu_pruner.cli.options import controller_options
from gpu_pruner.cli.printing import console, output_option, print_json
from gpu_pruner.cli.wiring import telemetry_source
from gpu_pruner.model.units import Seconds
from gpu_pruner.record.logs import configure_logging
from gpu_pruner.settings.clock import clock_from_environment
from gpu_pruner.settings.schema import Settings

_FINE, _PROBLEMS = 0, 3

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}

_LEVEL, _AREA = 6, 11
_INDENT = _LEVEL + _AREA
"""Columns of what stands before a sentence."""

_PATIENCE: Seconds = 2.0
"""Real seconds without a word, after which somebody at a terminal is told what is waited for."""


@click.command()
@controller_options
@output_option
def check(**flags: object) -> None:
    """Look at telemetry, cluster and rights, and say what is wrong with the fix; change nothing.

    Ends with 0 where everything works, with or without a WARN, and with 3 where a line says FAIL.
    """
    configure_logging(str(flags["log_format"]), level=logging.ERROR)
    settings = settings_from_flags(flags)
    output = str(flags["output"])
    complete(lambda: _check(settings, output=output))


async def _check(settings: Settings, *, output: str) -> int:
    clock = clock_from_environment()
    source = telemetry_source(settings, clock, brief=True)
    examination = Examination(settings, clock, source)
    telling = asyncio.create_task(_tell(examination))
    try:
        found = checkup(await examination.findings())
    except asyncio.CancelledError:
        # A request under way in a thread cannot be called back, and would hold the process.
        os._exit(_interrupted())
    finally:
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling
        await source.close()
    if output == "json":
        print_json(found)
    else:
        print_checkup(found)
    return _PROBLEMS if found.level is Level.FAIL else _FINE


def _interrupted() -> int:
    sys.stderr.write("gpu-pruner: interrupted; nothing was changed\n")
    sys.stderr.flush()
    return 130


async def _tell(examination: Examination) -> None:
    """Say what is waited for, while that takes long and somebody looks on."""
    while sys.stderr.isatty():
        await asyncio.sleep(_PATIENCE)
        waiting = " and ".join(sorted(examination.waiting)) or "our own judgement"
        sys.stderr.write(f"gpu-pruner: waiting for {waiting}\n")


def print_checkup(found: Checkup) -> None:
    """Print a check, the fix beneath each line, and the sum of it last."""
    out = console()
    lines = Table.grid(padding=(0, 2, 0, 0))
    for one in found.findings:
        lines.add_row(f"[{_STYLES[one.level]}]{one.level}[/]", one.area, escape(_text(one)))
    if sys.stdout.isatty():
        out.print(lines)
    else:
        # For grep and for files: a finding is a line, and nothing is filled up with blanks.
        for one in found.findings:
            text = _text(one).replace("\n", f"\n{'':{_INDENT}}")
            sys.stdout.write(f"{one.level:{_LEVEL}}{one.area:{_AREA}}{text}\n")
    sums = Counter(one.level for one in found.findings)
    sys.stdout.write(", ".join(f"{sums[one]} {one}" for one in reversed(Level)) + "\n")
    sys.stdout.flush()


def _text(one: Finding) -> str:
    if not one.fix:
        return one.sentence
    first, *more = one.fix.splitlines()
    return "\n".join([one.sentence, f"→ {first}", *(f"  {line}" for line in more)])

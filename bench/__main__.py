"""`python -m bench`: run every benchmark in a process of its own, and print one table.

Ends with 0 even where a goal is missed; with 1 where a benchmark could not be run at all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click
import msgspec

from bench.figures import Figure, MissingProgram, machine, table

NAMES = ("check", "deciding", "pods", "reads", "samples", "screen")
"""Modules of this package; what each measures is in its docstring."""

_NICENESS = 5


@click.command()
@click.option("--only", type=click.Choice(NAMES), multiple=True, help="Run only this one.")
@click.option("--json", "as_json", is_flag=True, help="Print figures as JSON.")
def main(only: Sequence[str], *, as_json: bool) -> None:
    """Measure the figures that docs/reference/performance.md holds."""
    start = machine()
    if len(only) == 1:
        os.nice(_NICENESS)
        try:
            figures = measured_here(only[0])
        except MissingProgram as error:
            raise click.ClickException(str(error)) from error
        failed: list[str] = []
    else:
        figures, failed = measured_apart(only or NAMES)
    click.echo(msgspec.json.encode(figures) if as_json else f"{table(figures)}\n\n{start}")
    notes = [f"{one.what}: {one.note}" for one in figures if one.note]
    if notes and not as_json:
        click.echo("\n" + "\n".join(notes))
    if failed:
        raise click.ClickException(f"not run: {', '.join(failed)}")


def measured_here(name: str) -> list[Figure]:
    """Run one benchmark in this process."""
    found: list[Figure] = list(import_module(f"bench.{name}").measure())
    return found


def measured_apart(names: Sequence[str]) -> tuple[list[Figure], list[str]]:
    """Run each benchmark in a process of its own, so that none inherits another's heap.

    Returns:
        The figures, and the names of those that could not be run.
    """
    figures: list[Figure] = []
    failed: list[str] = []
    for name in names:
        click.echo(f"{name} …", err=True)
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "bench", "--only", name, "--json"],
            stdout=subprocess.PIPE,
            check=False,
            cwd=Path(__file__).parents[1],
        )
        if done.returncode:
            failed.append(name)
        else:
            figures += msgspec.json.decode(done.stdout, type=list[Figure])
    return figures, failed


if __name__ == "__main__":
    main()

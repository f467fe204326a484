"""What is printed about settings: those that hold (`--print-settings`), and their schema."""

from __future__ import annotations

import dataclasses
import json
import sys

import click
from rich.markup import escape
from rich.table import Table

from gpu_pruner.cli.printing import console
from gpu_pruner.settings.editor_schema import schema_text
from gpu_pruner.settings.loading import Loaded
from gpu_pruner.settings.telling import shown, told

_WIDEST = 60
"""Columns of a value; what is longer goes on below."""


def print_settings(loaded: Loaded, *, output: str) -> None:
    """Print every setting.

    Args:
        loaded: the settings.
        output: ``table`` for people, ``json`` for programs: a list with name, value and origin.
    """
    rows = list(told(loaded))
    if output == "json":
        text = json.dumps([dataclasses.asdict(one) for one in rows], ensure_ascii=False, indent=2)
        sys.stdout.write(f"{text}\n")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold", max_width=_WIDEST)
    table.add_column("from", overflow="fold")
    for one in rows:
        table.add_row(one.name, escape(shown(one.value)), escape(one.origin))
    console().print(table)


@click.command()
def schema() -> None:
    """Print the JSON Schema of the settings file, for editors."""
    sys.stdout.write(schema_text())

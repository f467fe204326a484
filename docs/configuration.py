"""What people can set, as reference: the settings and the command line.

`generate` puts both into their pages. The text comes from the models and commands themselves.
"""

from __future__ import annotations

import enum
import inspect
import types
import typing
from pathlib import Path

import click
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from tables import Row, code, table

from gpu_pruner.cli.commands import command_line
from gpu_pruner.settings.durations import format_duration
from gpu_pruner.settings.schema import Duration, Settings


def settings() -> str:
    """Return the tables of settings: one for the top, one for each section."""
    sections: list[tuple[str, type[BaseModel]]] = [("", Settings)]
    parts: list[str] = []
    for name, model in sections:
        rows: list[Row] = []
        for key, field in model.model_fields.items():
            section = section_of(field)
            if section is not None:
                sections.append((key, section))
            else:
                rows.append((code(key), kind_of(field), default_of(field), field.description or ""))
        about = f"## `{name}`\n\n{(model.__doc__ or '').strip()}\n\n" if name else ""
        parts.append(about + table(("Key", "Type", "Default", "Meaning"), rows))
    return "\n\n".join(parts)


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a nested section, or None for a plain setting."""
    options = (field.annotation, *typing.get_args(field.annotation))
    return next(
        (one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), None
    )


def is_duration(field: FieldInfo) -> bool:
    """Return whether a field is written as a length of time."""
    marker = typing.get_args(Duration)[1]
    return any(one is marker for one in field.metadata)


def kind_of(field: FieldInfo) -> str:
    """Return the type of a setting in people's words."""
    if is_duration(field):
        return "duration"
    kind = field.annotation
    if typing.get_origin(kind) in {types.UnionType, typing.Union}:
        kind = next(one for one in typing.get_args(kind) if one is not types.NoneType)
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return " or ".join(code(str(one.value)) for one in kind)
    words = {bool: "true or false", int: "number", float: "number", str: "text", Path: "path"}
    words |= {SecretStr: "secret", tuple: "list", frozenset: "list", dict: "map"}
    return words[typing.get_origin(kind) or kind]


def default_of(field: FieldInfo) -> str:
    """Return the default as one writes it."""
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    if value is None or value in ((), {}, frozenset()):
        return ""
    if is_duration(field):
        return code(format_duration(value))
    if isinstance(value, enum.Enum):
        return code(str(value.value))
    if isinstance(value, (frozenset, tuple)):
        return ", ".join(code(str(one)) for one in sorted(value))
    return code(str(value).lower() if isinstance(value, bool) else str(value))


def commands() -> str:
    """Return a section for every command, and one table of all flags."""
    every = [("", command_line)]
    for name, one in command_line.commands.items():
        below = one.commands.items() if isinstance(one, click.Group) else ()
        every += [(name, one), *((f"{name} {sub}", command) for sub, command in below)]
    shown = [(name, one) for name, one in every if not one.hidden]
    takers: dict[Row, list[str]] = {}
    for name, command in shown:
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                takers.setdefault(flag_row(parameter), []).append(code(name) or "none")
    rows = [(*flag, ", ".join(names)) for flag, names in takers.items()]
    sections = [command_section(command, name) for name, command in shown]
    head = ("Flag", "Meaning", "Commands")
    return "\n\n".join(
        [*sections, "## Flags", "*none* means: without a command.", table(head, rows)]
    )


def command_section(command: click.Command, name: str) -> str:
    """Return how a command is called and what it does."""
    path = f"gpu-pruner {name}".strip()
    usage = " ".join([path, *command.collect_usage_pieces(click.Context(command))])
    about = inspect.cleandoc(command.help or "").replace("\b\n", "")
    return f"## `{path}`\n\n```\n{usage}\n```\n\n{about}"


def flag_row(option: click.Option) -> Row:
    """Return one flag: how it is written, and what it means."""
    names = ", ".join(code(one) for one in [*option.opts, *option.secondary_opts])
    takes_none = option.is_flag or option.count
    metavar = "" if takes_none else option.make_metavar(click.Context(command_line))
    variable = f" Variable: {code(str(option.envvar))}." if option.envvar else ""
    return f"{names} {code(metavar)}".strip(), (option.help or "") + variable

"""Writes the parts of the reference that the code already says.

Each page under `reference/` has one block between two marker comments; this program fills it from
the enum, table, model or command that the code itself uses, so that nothing is said twice.
`python docs/generate.py` writes, `make docs` runs it; `tests/test_docs.py` fails where a page is
not what the code says. It never touches the prose around the blocks.
"""

from __future__ import annotations

import ast
import enum
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gpu_pruner.cli.commands import gpu_pruner
from gpu_pruner.kube.gpuworkloads import GpuWorkloadSpec, GpuWorkloadStatus
from gpu_pruner.model import annotations
from gpu_pruner.model.verdict import Reason
from gpu_pruner.record.metrics import METRICS
from gpu_pruner.settings.durations import format_duration
from gpu_pruner.settings.schema import Duration, Settings

REFERENCE = Path(__file__).parent / "reference"
BEGIN = "<!-- begin: written by docs/generate.py -->"
END = "<!-- end -->"

Row = tuple[str, ...]


def table(head: Row, rows: list[Row]) -> str:
    """Return a Markdown table; pipes and line breaks in cells are made harmless."""

    def line(cells: Row) -> str:
        return "| " + " | ".join(" ".join(one.split()).replace("|", "\\|") for one in cells) + " |"

    return "\n".join([line(head), line(("---",) * len(head)), *map(line, rows)])


def code(text: str) -> str:
    """Return text as Markdown code, or nothing for nothing."""
    return f"`{text}`" if text else ""


def reasons() -> str:
    """Return the table of reasons, in the order of the code."""
    return table(("Reason", "Rule"), [(code(one.value), one.rule) for one in Reason])


def annotation_keys() -> str:
    """Return the table of annotation and label keys with their docstrings."""
    source = Path(annotations.__file__).read_text(encoding="utf-8")
    rows: list[Row] = []
    for value, docstring in described_constants(source):
        direction, _, meaning = docstring.partition(": ")
        rows.append((code(value), direction, meaning[:1].upper() + meaning[1:]))
    return table(("Key", "", "Meaning"), rows)


def described_constants(source: str) -> Iterator[tuple[str, str]]:
    """Yield value and docstring of every string constant that has one beneath it."""
    body = ast.parse(source).body
    for here, below in zip(body, body[1:], strict=False):
        if (
            isinstance(here, ast.Assign)
            and isinstance(here.value, ast.Constant)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            yield str(here.value.value), str(below.value.value)


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
        about = f"### `{name}`\n\n{(model.__doc__ or '').strip()}\n\n" if name else ""
        parts.append(about + table(("Key", "Type", "Default", "Meaning"), rows))
    return "\n\n".join(parts)


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a nested section, or None for a plain setting."""
    options = (field.annotation, *typing.get_args(field.annotation))
    return next((one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), None)


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
    if isinstance(value, frozenset):
        return ", ".join(code(one) for one in sorted(value))
    return code(str(value).lower() if isinstance(value, bool) else str(value))


def command_line() -> str:
    """Return every command with its flags."""
    return "\n\n".join(command_section(gpu_pruner, path="gpu-pruner"))


def command_section(command: click.Command, *, path: str) -> Iterator[str]:
    """Yield a command's section and those of the commands under it."""
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    yield f"## `{path}`\n\n```\n{usage}\n```\n\n{prose(command.help or '')}"
    flags = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    if flags:
        yield table(("Flag", "Meaning"), [flag_row(one, context) for one in flags])
    if isinstance(command, click.Group):
        for name, child in sorted(command.commands.items()):
            if not child.hidden:
                yield from command_section(child, path=f"{path} {name}")


def prose(help_text: str) -> str:
    """Return a command's help as Markdown; click's mark against wrapping is dropped."""
    return help_text.replace("\b\n", "").strip()


def flag_row(option: click.Option, context: click.Context) -> Row:
    """Return one flag: how it is written, and what it means."""
    names = ", ".join(code(one) for one in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag or option.count else f" {code(option.make_metavar(context))}"
    variable = f" Variable: {code(str(option.envvar))}." if option.envvar else ""
    return names + value, (option.help or "") + variable


def metrics() -> str:
    """Return the table of metrics."""
    rows = [
        (code(one.name), one.kind, ", ".join(code(label) for label in one.labels), one.help)
        for one in METRICS
    ]
    return table(("Metric", "Type", "Labels", "Meaning"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "annotations.md": annotation_keys,
    "cli.md": command_line,
    "metrics.md": metrics,
    "reasons.md": reasons,
    "settings.md": settings,
}
"""Page under `reference/` to what fills its block."""


def filled(page: str, block: str) -> str:
    """Return a page's text with its block replaced.

    Raises:
        ValueError: the page does not have the two markers, once each and in order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{block}\n\n{END}{after}"


def main() -> None:
    """Fill every page's block."""
    for name, block in BLOCKS.items():
        page = REFERENCE / name
        old = page.read_text(encoding="utf-8")
        new = filled(old, block())
        if new != old:
            page.write_text(new, encoding="utf-8")
            sys.stdout.write(f"wrote docs/reference/{name}\n")


if __name__ == "__main__":
    main()

"""Writes the parts of the reference that the code already says.

Each page under `reference/` has one block between two marker comments; this program fills it from
the enum, table, model or command that the code itself uses, so that nothing is said twice.
`python docs/generate.py` writes, `make docs` runs it; `tests/test_docs.py` fails where a page is
not what the code says. It never touches the prose around the blocks.
"""

from __future__ import annotations

import ast
import enum
import inspect
import math
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import click
import msgspec
import yaml
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gpu_pruner import errors
from gpu_pruner.cli.commands import command_line
from gpu_pruner.decide.power import IDLE_WATTS
from gpu_pruner.decide.signals import ANYTHING, SIGNALS, SignalRule
from gpu_pruner.model import annotations
from gpu_pruner.model.signals import Signal
from gpu_pruner.model.verdict import Reason
from gpu_pruner.observe.profiles import PROFILES, Field
from gpu_pruner.record import rows as plan_rows
from gpu_pruner.record import statistics
from gpu_pruner.record.metrics import METRICS
from gpu_pruner.serve import handlers
from gpu_pruner.settings.durations import format_duration
from gpu_pruner.settings.schema import Duration, Settings

REFERENCE = Path(__file__).parent / "reference"
CRD = Path(__file__).parents[1] / "deploy" / "crds" / "gpuworkloads.yaml"
CASES = Path(__file__).parents[1] / "tests" / "cases"
BY_THE_LOOP = {Reason.NOT_DELIVERED: "a warning that reaches nobody (`tests/unit/loop`)"}
"""What the loop finds out after deciding, with its tests."""
BEGIN = "<!-- begin: written by docs/generate.py -->"
END = "<!-- end -->"

PACKAGE = Path(errors.__file__).parent
ROUTE = re.compile(r"(?P<path>`/[^`]*`)[:,.]? *(?P<about>.*)", re.DOTALL)
"""How the docstring of a route's handler begins."""

ANSWERS: tuple[type[msgspec.Struct], ...] = (
    plan_rows.PlanRow,
    plan_rows.WorkloadRow,
    plan_rows.DeviceRow,
    plan_rows.BreakerRow,
    statistics.Summary,
    statistics.LifetimeScaleDowns,
    statistics.Statistics,
    statistics.WindowedScaleDowns,
    statistics.IdleWorkloads,
)
"""What the routes answer, the whole before its parts."""

LARGE = 1e300
"""A limit beyond this only refuses infinity."""

Row: TypeAlias = tuple[str, ...]
Schema: TypeAlias = dict[str, Any]  # YAML, as it comes


def table(head: Row, rows: list[Row]) -> str:
    """Return a Markdown table; pipes and line breaks in cells are made harmless."""

    def line(cells: Row) -> str:
        return "| " + " | ".join(" ".join(one.split()).replace("|", "\\|") for one in cells) + " |"

    return "\n".join([line(head), line(("---",) * len(head)), *map(line, rows)])


def code(text: str) -> str:
    """Return text as Markdown code, or nothing for nothing."""
    return f"`{text}`" if text else ""


def sentence(text: str) -> str:
    """Return text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def reasons() -> str:
    """Return the table of reasons, in the order of the code, each with a case that ends in it."""
    told = told_cases()
    rows = [
        (
            code(one.value),
            one.rule,
            sources(one.source),
            BY_THE_LOOP.get(one) or told.get(one.value, ""),
        )
        for one in Reason
    ]
    return table(("Reason", "Rule", "Source", "Case"), rows)


def sources(text: str) -> str:
    """Return the sources of a reason as links."""
    return ", ".join(source_link(one) for one in text.split())


def source_link(text: str) -> str:
    """Return one source as a link: a report as ``repository#number``, or a section of ours."""
    where, _, part = text.partition("#")
    if "/" in where:
        return f"[{where.partition('/')[2]} {part}](https://github.com/{where}/issues/{part})"
    page = f"../explanation/{where}.md"
    return f"[{where}]({page}#{part})" if part else f"[{where}]({page})"


def told_cases() -> dict[str, str]:
    """Return the name of the first case that expects each reason."""
    found: dict[str, str] = {}
    for file in sorted(CASES.glob("*.yaml")):
        for case in yaml.safe_load(file.read_text(encoding="utf-8")):
            for step in case.get("story", [case]):
                for word in words_of(step["expect"]):
                    found.setdefault(word, case["name"])
    return found


def words_of(expected: object) -> Iterator[str]:
    """Yield every text in what a case expects; reasons are among them."""
    match expected:
        case str():
            yield expected
        case dict():
            for key, value in expected.items():
                if key not in {"message", "not_message"}:
                    yield from words_of(value)
        case list():
            for value in expected:
                yield from words_of(value)


def annotation_keys() -> str:
    """Return the tables of annotation and label keys: those in use, and those that are not yet."""
    source = Path(annotations.__file__).read_text(encoding="utf-8")
    used = imported_from(annotations)
    known: dict[bool, list[Row]] = {True: [], False: []}
    for name, meaning in described(ast.parse(source).body):
        known[name in used].append((code(getattr(annotations, name)), meaning))
    head = ("Key", "Meaning")
    reserved = "Reserved for what is not built yet; setting them does nothing today:"
    return f"{table(head, known[True])}\n\n{reserved}\n\n{table(head, known[False])}"


def imported_from(module: types.ModuleType) -> set[str]:
    """Return the names that our other modules import from this one."""
    trees = (ast.parse(one.read_text(encoding="utf-8")) for one in PACKAGE.rglob("*.py"))
    return {
        alias.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module.__name__
        for alias in node.names
    }


def described(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield name and docstring of every assignment or field that has one beneath it."""
    for here, below in pairwise(body):
        match here, below:
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(docstring))),
            ):
                yield name, docstring


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
    every = [("", command_line), *command_line.commands.items()]
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


def metrics() -> str:
    """Return the table of metrics."""
    rows = [
        (code(one.name), one.kind, ", ".join(code(label) for label in one.labels), one.meaning)
        for one in METRICS
    ]
    return table(("Metric", "Type", "Labels", "Meaning"), rows)


def signals() -> str:
    """Return the metrics that are read, and what each can say."""
    parts = []
    for name, profile in PROFILES.items():
        rows = [signal_row(field, SIGNALS[field.signal]) for field in profile.fields]
        advice = f"{profile.advice[:1].upper()}{profile.advice[1:]}." if profile.advice else ""
        head = ("Metric", "Says", "As", "Counts as work", "Possible values")
        parts += [f"## Profile `{name}`", advice, table(head, rows) if rows else ""]
    watts = [(model, f"{most:g} W") for model, most in sorted(IDLE_WATTS.items())]
    parts += ["## Most power without work", table(("Model", "Mean power"), watts)]
    return "\n\n".join(filter(None, parts))


def signal_row(field: Field, rule: SignalRule) -> Row:
    """Return one metric with its rule, in the unit that it is exported in."""

    def exported(value: float) -> str:
        return f"{value / field.scale:g}"

    if field.signal is Signal.ENGINE:
        work = "from `--idle-threshold`"
    elif math.isinf(rule.active_from):
        work = ""
    else:
        least = rule.active_from == ANYTHING
        work = "above 0" if least else f"from {exported(rule.active_from)}"
    bounded = rule.highest < LARGE
    top = f"to {exported(rule.highest)}" if bounded else "or more"
    return code(field.metric), rule.word, rule.role.value, work, f"{exported(rule.lowest)} {top}"


def gpuworkload() -> str:
    """Return the fields of a GPUWorkload, as its CRD has them."""
    definition = yaml.safe_load(CRD.read_text(encoding="utf-8"))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return "\n\n".join(
        f"## `{part}`\n\n"
        + table(("Field", "Type", "Meaning"), crd_rows(schema["properties"][part]))
        for part in ("spec", "status")
    )


def crd_rows(schema: Schema, *, under: str = "") -> list[Row]:
    """Return one row per field, those of an object behind it with its name and a dot."""
    rows: list[Row] = []
    for name, field in schema.get("properties", {}).items():
        words = " or ".join(code(one) for one in field.get("enum", [])) or field["type"]
        kind = "time" if field.get("format") == "date-time" else words
        rows.append((code(under + name), kind, field.get("description", "")))
        rows += crd_rows(field, under=f"{under}{name}.")
    return rows


def http() -> str:
    """Return the routes, and what the fields of their answers mean."""
    routes: list[Row] = []
    for _, handler in inspect.getmembers(handlers, inspect.isclass):
        told = ROUTE.match(inspect.getdoc(handler) or "")
        if told:
            answer = inspect.getdoc(handler.get) or ""
            routes.append((told["path"], f"{sentence(told['about'])} {answer}".strip()))
    tables = [f"## {one.__name__}\n\n{inspect.getdoc(one)}\n\n{fields(one)}" for one in ANSWERS]
    return "\n\n".join([table(("GET", "Answer"), sorted(routes)), *tables])


def fields(struct: type[msgspec.Struct]) -> str:
    """Return the table of a struct's fields with the docstrings beneath them."""
    body = ast.parse(inspect.getsource(struct)).body[0]
    meant = dict(described(body.body)) if isinstance(body, ast.ClassDef) else {}
    rows = [
        (code(sent), code(struct.__annotations__[name]), meant.get(name, ""))
        for name, sent in zip(
            struct.__struct_fields__, struct.__struct_encode_fields__, strict=True
        )
    ]
    return table(("Field", "Type", "Meaning"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "annotations.md": annotation_keys,
    "cli.md": commands,
    "gpuworkload.md": gpuworkload,
    "http-api.md": http,
    "metrics.md": metrics,
    "reasons.md": reasons,
    "settings.md": settings,
    "signals.md": signals,
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

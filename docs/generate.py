"""Writes the parts of the reference that the code already says.

Each page under `reference/` has one block between two marker comments; this program fills it from
the enum, table, model or command that the code itself uses, so that nothing is said twice.
`python docs/generate.py` writes, `make docs` runs it; `tests/test_docs.py` fails where a page is
not what the code says. It never touches the prose around the blocks.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
import types
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import yaml
from configuration import commands, settings
from tables import Row, code, sentence, table

from gpu_pruner import errors
from gpu_pruner.decide.power import IDLE_WATTS
from gpu_pruner.decide.remedies import REMEDIES
from gpu_pruner.decide.signals import ANYTHING, SIGNALS, SignalRule
from gpu_pruner.model import annotations
from gpu_pruner.model.signals import Signal
from gpu_pruner.model.verdict import Reason
from gpu_pruner.observe.profiles import PROFILES, Field
from gpu_pruner.record import explanation_rows, history, namespaces, savings, statistics
from gpu_pruner.record import rows as plan_rows
from gpu_pruner.record.metrics import METRICS
from gpu_pruner.serve import explaining, handlers, remembering, reporting, wishes
from gpu_pruner.settings.editor_schema import schema_text

REFERENCE = Path(__file__).parent / "reference"
CRD = Path(__file__).parents[1] / "deploy" / "crds" / "gpuworkloads.yaml"
CASES = Path(__file__).parents[1] / "tests" / "cases"
BY_THE_LOOP = {Reason.NOT_DELIVERED: "a warning that reaches nobody (`tests/unit/loop`)"}
"""What the loop finds out after deciding, with its tests."""
BEGIN = "<!-- begin: written by docs/generate.py -->"
END = "<!-- end -->"

PACKAGE = Path(errors.__file__).parent
NAMED = re.compile(r"`([A-Z][A-Z_]+)`")
"""How a docstring among the annotations names another of them; readers know it by its key."""
ROUTE = re.compile(r"(?P<path>`/[^`]*`)[:,.]? *(?P<about>.*)", re.DOTALL)
"""How the docstring of a route's handler begins."""

ANSWERS: tuple[type[msgspec.Struct], ...] = (
    plan_rows.PlanRow,
    plan_rows.WorkloadRow,
    plan_rows.DeviceRow,
    plan_rows.BreakerRow,
    explanation_rows.Explanation,
    explanation_rows.WorkloadExplanation,
    explanation_rows.ScreenRow,
    explanation_rows.ClockRow,
    explanation_rows.OutlookRow,
    explanation_rows.WishRow,
    explanation_rows.PodExplanation,
    explanation_rows.DeviceExplanation,
    explanation_rows.SignalRow,
    explanation_rows.MissingRow,
    explanation_rows.MovementRow,
    explanation_rows.DrawRow,
    explanation_rows.SettingRow,
    savings.Savings,
    savings.SavingsRow,
    savings.Cost,
    wishes.WishAnswer,
    statistics.Summary,
    statistics.LifetimeScaleDowns,
    statistics.Statistics,
    statistics.WindowedScaleDowns,
    statistics.IdleWorkloads,
    history.Leaderboard,
    history.History,
    history.Act,
    history.CalledWrong,
    namespaces.NamespacesRow,
    namespaces.NamespaceRow,
)
"""What the routes answer, the whole before its parts."""

LARGE = 1e300
"""A limit beyond this only refuses infinity."""

Schema: TypeAlias = dict[str, Any]  # YAML, as it comes


def reasons() -> str:
    """Return the table of reasons, in the order of the code, each with a case that ends in it."""
    told = told_cases()
    rows = [
        (
            code(one.value),
            one.rule,
            REMEDIES[one],
            sources(one.source),
            BY_THE_LOOP.get(one) or told.get(one.value, ""),
        )
        for one in Reason
    ]
    return table(("Reason", "Rule", "What changes it", "Source", "Case"), rows)


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
        told = NAMED.sub(lambda found: code(getattr(annotations, found[1])), meaning)
        known[name in used].append((code(getattr(annotations, name)), told))
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
    reads = [
        (told["path"], f"{sentence(told['about'])} {inspect.getdoc(handler.get) or ''}".strip())
        for module in (handlers, explaining, remembering, reporting)
        for told, handler in routes_of(module)
    ]
    writes = [
        (told["path"], f"{sentence(told['about'])} For example {code(handler.example)}.")
        for told, handler in routes_of(wishes)
    ]
    tables = [f"## {one.__name__}\n\n{inspect.getdoc(one)}\n\n{fields(one)}" for one in ANSWERS]
    read, write = table(("GET", "Answer"), sorted(reads)), table(("POST", "Wish"), sorted(writes))
    return "\n\n".join([read, write, *tables])


def routes_of(module: types.ModuleType) -> Iterator[tuple[re.Match[str], Any]]:
    """Yield the handlers of a module that tell their route, with what they tell."""
    for _, handler in inspect.getmembers(module, inspect.isclass):
        told = ROUTE.match(inspect.getdoc(handler) or "")
        if told:
            yield told, handler


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

FILES: dict[str, Callable[[], str]] = {"settings.schema.json": schema_text}
"""File under `reference/` that is written as a whole."""


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
    for name, text in FILES.items():
        file = REFERENCE / name
        if not file.exists() or file.read_text(encoding="utf-8") != text():
            file.write_text(text(), encoding="utf-8")
            sys.stdout.write(f"wrote docs/reference/{name}\n")


if __name__ == "__main__":
    main()

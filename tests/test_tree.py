"""The shape of the source tree: what a reader may rely on without reading it."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gpu_pruner
import gpu_pruner_ext

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "controller" / "gpu_pruner", ROOT / "gpu_pruner_ext")
MODULES = sorted(module for package in PACKAGES for module in package.rglob("*.py"))
NAMES = [str(module.relative_to(ROOT)) for module in MODULES]

LONGEST_MODULE = 400
LONGEST_FUNCTION = 40
MOST_BY_POSITION = 4
SAYS_NOTHING = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "base"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
each_module = pytest.mark.parametrize("module", MODULES, ids=NAMES)


def parse(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"), filename=str(module))


def functions(module: Path) -> Iterator[Function]:
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def test_the_tree_is_found() -> None:
    assert len(MODULES) > 30


@each_module
def test_a_module_holds_one_idea(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE


@each_module
def test_a_function_fits_on_a_screen(module: Path) -> None:
    too_long = {one.name: length(one) for one in functions(module)}
    assert {name: n for name, n in too_long.items() if n > LONGEST_FUNCTION} == {}


@each_module
def test_a_call_can_be_read_without_the_definition(module: Path) -> None:
    """Few parameters by position, beside self and cls; ruff counts those by name (PLR0913)."""
    too_many = []
    for function in functions(module):
        given = function.args.posonlyargs + function.args.args
        if len([one for one in given if one.arg not in {"self", "cls"}]) > MOST_BY_POSITION:
            too_many.append(function.name)
    assert too_many == []


@each_module
def test_a_module_name_says_what_is_in_it(module: Path) -> None:
    words = set(module.stem.split("_")) | set(module.parent.name.split("_"))
    assert words & SAYS_NOTHING == set()


@each_module
def test_a_module_states_its_contract(module: Path) -> None:
    assert ast.get_docstring(parse(module)), "every module begins with a docstring"


def caught(handler: ast.ExceptHandler) -> set[str]:
    names = ast.walk(handler.type) if handler.type else [ast.Name("everything")]
    return {one.id for one in names if isinstance(one, ast.Name)}


@each_module
def test_nothing_swallows_every_error(module: Path) -> None:
    """`except Exception` once, in the runner, which counts it; elsewhere only to raise again."""
    swallowed = [
        handler
        for handler in ast.walk(parse(module))
        if isinstance(handler, ast.ExceptHandler)
        and caught(handler) & {"everything", "BaseException", "Exception"}
        and not (isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None)
    ]
    allowed = 1 if module.parts[-2:] == ("loop", "runner.py") else 0
    assert len(swallowed) <= allowed


def test_every_package_says_what_it_holds() -> None:
    for package in PACKAGES:
        for folder in [package, *(one for one in package.rglob("*") if one.is_dir())]:
            if any(folder.glob("*.py")):
                assert (folder / "__init__.py").exists(), folder


def test_the_median_stays_small(record_property: Callable[[str, object], None]) -> None:
    lines = [len(one.read_text(encoding="utf-8").splitlines()) for one in MODULES]
    sizes = [length(function) for module in MODULES for function in functions(module)]
    medians = (statistics.median(lines), statistics.median(sizes))
    record_property("median module and function lines", medians)
    print(f"median module {medians[0]:g} lines, median function {medians[1]:g} lines")  # noqa: T201
    assert medians[0] <= 200
    assert medians[1] <= 15


def test_both_programs_are_of_one_version() -> None:
    assert gpu_pruner.__version__ == gpu_pruner_ext.__version__

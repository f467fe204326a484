"""The documentation says what the code says: nothing missing, nothing that is not there."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from pydantic import BaseModel
from support.apart import APART, READ_ONLY, TOLD_ELSEWHERE
from support.pages import NOT_FOLLOWED, TYPED, Block, blocks, commands_of
from support.pages import PAGES as TYPED_PAGES

from gpu_pruner import cli
from gpu_pruner.cli.commands import command_line
from gpu_pruner.cli.references import parse_reference
from gpu_pruner.decide import breaker
from gpu_pruner.model import annotations
from gpu_pruner.model.units import HOUR, MINUTE
from gpu_pruner.model.verdict import Reason
from gpu_pruner.notify.messages import EVENT_REASONS
from gpu_pruner.record.metrics import METRICS, MetricDefinition
from gpu_pruner.serve import app
from gpu_pruner.settings.schema import Settings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
)
TEXTS = [block for page in TYPED_PAGES for block in blocks(page) if block.language == "text"]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def of_docs(name: str) -> ModuleType:
    sys.path.insert(0, str(DOCS))  # where its programs find one another
    return importlib.import_module(name)


generate = of_docs("generate")
configuration = of_docs("configuration")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def reference(page: str) -> str:
    return text_of(DOCS / "reference" / page)


@pytest.mark.parametrize("page", list(generate.BLOCKS))
def test_the_reference_is_what_the_code_says(page: str) -> None:
    written = reference(page)
    assert written == generate.filled(written, generate.BLOCKS[page]()), "run: make docs"


@pytest.mark.parametrize("file", list(generate.FILES))
def test_a_written_file_is_what_the_code_says(file: str) -> None:
    assert reference(file) == generate.FILES[file](), "run: make docs"


@pytest.mark.parametrize(
    "text", ["", generate.BEGIN, generate.END, f"{generate.END} {generate.BEGIN}"]
)
def test_a_page_without_its_markers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the page needs"):
        generate.filled(text, "block")


def test_an_annotation_is_called_by_its_key_and_never_by_its_name_in_the_code() -> None:
    page = reference("annotations.md")
    for name in vars(annotations):
        assert f"`{name}`" not in page


def test_every_exit_code_is_documented() -> None:
    """Every constant of the command line that is one, wherever it is defined."""
    told = {int(one) for one in re.findall(r"^\| (\d+) \|", reference("cli.md"), re.MULTILINE)}
    codes = re.compile(
        r"^_(?:FINE|FAILED|BAD_INPUT|PROBLEMS|INTERRUPTED|TERMINATED)\b.* = (.+)$", re.MULTILINE
    )
    found = {
        int(one)
        for module in Path(cli.__file__).parent.glob("*.py")
        for given in codes.findall(text_of(module))
        for one in given.split(", ")
    }
    assert found == told


def test_every_way_to_name_a_workload_is_documented() -> None:
    command = command_line.commands["explain"]
    ways = re.search(r"REF is (.*?)\.", command.help or "")
    assert ways
    prose = reference("cli.md").partition(generate.BEGIN)[0]
    for way in re.split(r", | or ", ways[1]):
        assert f"`{way}`" in prose


@pytest.mark.parametrize("reason", Reason, ids=str)
def test_every_reason_is_documented(reason: Reason) -> None:
    assert f"| `{reason.value}` | {reason.rule} |" in reference("reasons.md")
    assert reason.rule.endswith(".")


@pytest.mark.parametrize("reason", Reason, ids=str)
def test_every_reason_has_a_rule_a_source_and_a_case(reason: Reason) -> None:
    (row,) = re.findall(rf"^\| `{reason.value}` \| .*$", reference("reasons.md"), re.MULTILINE)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == 5
    assert all(cells)


def test_every_breaker_is_documented() -> None:
    names = set(re.findall(r'_breaker\(\s*"(\w+)"', inspect.getsource(breaker)))
    assert names
    assert [name for name in names if f"| `{name}` |" not in reference("reasons.md")] == []


@pytest.mark.parametrize("reason", list(EVENT_REASONS.values()))
def test_every_event_is_documented(reason: str) -> None:
    assert f"| `{reason}` |" in reference("reasons.md")


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_is_documented(metric: MetricDefinition) -> None:
    assert metric.meaning.endswith(".")
    assert f"`{metric.name}`" in reference("metrics.md")


def test_every_annotation_is_documented() -> None:
    keys = {name: value for name, value in vars(annotations).items() if name.isupper()}
    page = reference("annotations.md")
    assert [
        name for name, value in keys.items() if name != "PREFIX" and f"`{value}`" not in page
    ] == []


def settings_in(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        section = configuration.section_of(field)
        if section is None:
            yield name, field.description or ""
        else:
            yield from settings_in(section)


@pytest.mark.parametrize(("name", "description"), list(settings_in(Settings)))
def test_every_setting_is_documented(name: str, description: str) -> None:
    assert description.endswith(".")
    assert f"| `{name}` |" in reference("settings.md")


RULES = Settings().rules()
TOLD = {
    "window": f"{RULES.window_seconds / MINUTE:g} min",
    "settle": f"{RULES.settle_seconds / MINUTE:g} min",
    "threshold": f"{RULES.idle_threshold:g}",
    "coverage": f"{int(RULES.coverage_ratio * 35)} of 35 steps",
    "freshness": f"{RULES.freshness_seconds:g} s",
    "liveness": f"{RULES.liveness_changes} changes",
    "cycle": f"{RULES.cycle_seconds:g} s",
    "confirmations": f"{RULES.confirmations} cycles",
    "verification": f"≤ {RULES.verify_max_age_seconds:g} s old",
    "notice": f"{RULES.notice_seconds / MINUTE:g} min",
    "keep": f"≤ {RULES.keep_cap_seconds / HOUR:g} h",
    "shield": f"{RULES.shield_seconds / HOUR:g} h",
    "never Ready": f"{RULES.never_ready_seconds / HOUR:g} h",
    "budget, per cycle": (
        f"{RULES.budget_workloads_per_cycle} workloads, "
        f"{RULES.budget_gpu_ratio_per_cycle:.0%} of allocated GPUs, "
        f"{RULES.budget_per_namespace_per_cycle} per namespace"
    ),
    "budget, per hour": f"{RULES.budget_per_hour}, or {RULES.budget_ratio_per_hour:.0%}",
}


@pytest.mark.parametrize("name", list(TOLD))
def test_the_number_that_is_explained_is_the_default(name: str) -> None:
    lines = text_of(DOCS / "explanation" / "deciding.md").splitlines()
    row = next(line for line in lines if line.startswith(f"| {name}"))
    assert row.split("|")[2].strip().startswith(TOLD[name].replace("%", " %"))


COMMANDS: dict[str, click.Command] = {"": command_line, **command_line.commands}
COMMANDS |= {
    f"{name} {below}": command
    for name, one in command_line.commands.items()
    if isinstance(one, click.Group)
    for below, command in one.commands.items()
}


@pytest.mark.parametrize("name", list(COMMANDS), ids=lambda name: name or "none")
def test_every_command_and_flag_is_documented(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert f"## `{f'gpu-pruner {name}'.strip()}`\n" in reference("cli.md")
    rows = [line for line in reference("cli.md").splitlines() if line.startswith("| ")]
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert (option.help or "").endswith("."), option.name
            named = [one for one in rows if f"`{option.opts[-1]}`" in one]
            word = f"`{name}`" if name else "none"
            assert any(word in row for row in named), option.name


def test_every_route_is_documented() -> None:
    patterns = [
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(app)))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("/")
    ]
    page = reference("http-api.md")
    documented = {
        re.sub(r"\{\w+\}|\?.*", "", path)
        for path in re.findall(r"^\| `(/[^`]*)`", page, re.MULTILINE)
    }
    assert {re.sub(r"\([^)]*\)", "", one) for one in patterns} == documented


def examples(page: Path) -> Iterator[list[str]]:
    for line in commands_of(page):
        words = shlex.split(line.typed.partition(" &")[0], comments=True)
        if words and words[0].endswith("gpu-pruner") and "[OPTIONS]" not in words:
            yield words[1:]


@each_page
def test_an_example_can_be_typed(page: Path) -> None:
    """Every command, flag and reference of an example exists."""
    for words in examples(page):
        named = (" ".join(words[:2]), *words[:1])
        command = next((COMMANDS[one] for one in named if one in COMMANDS), command_line)
        known = {flag for one in command.params for flag in [*one.opts, *one.secondary_opts]}
        assert [word for word in words if word.startswith("-") and word not in known] == [], words
        for word in words:
            if re.fullmatch(r"[a-z]+/[^/ ]+/[^/ ]+", word):
                parse_reference(word)


def test_there_are_examples() -> None:
    assert len([words for page in PAGES for words in examples(page)]) >= 10


@pytest.mark.parametrize("page", TYPED_PAGES, ids=lambda page: page.stem)
def test_every_block_is_run_or_written_or_stands_apart_with_a_reason(page: Path) -> None:
    """What is run and written is followed by test_documented_commands and test_documented_demo."""
    for block in blocks(page):
        assert block.language in TYPED - {""} or block.file or block.language in READ_ONLY, (
            f"{block.place}: a fence is sh, console, yaml with a file's name in its first line, "
            f"or one of {', '.join(READ_ONLY)}"
        )


def test_what_stands_apart_is_still_on_a_page_and_says_why() -> None:
    typed = {one.typed for page in TYPED_PAGES for one in commands_of(page)}
    assert set(APART) <= typed
    assert all((DOCS / "how-to" / name).exists() for name in NOT_FOLLOWED)
    assert all({**APART, **READ_ONLY}.values())


@pytest.mark.parametrize("block", TEXTS, ids=lambda block: block.place.rpartition(":")[0])
def test_a_text_that_is_only_read_has_a_test_of_its_own(block: Block) -> None:
    (place,) = [one for begin, one in TOLD_ELSEWHERE.items() if block.text.startswith(begin)]
    assert (ROOT / place).exists()


@each_page
def test_a_make_target_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", text_of(page), re.MULTILINE))
    assert named <= targets


@each_page
def test_a_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)\)", text_of(page))
    local = [one for one in links if not one.startswith("https://")]
    assert [one for one in local if not (page.parent / one).exists()] == []


def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    sphinx = (sys.executable, "-m", "sphinx", "-W", "-n", "-q", "-d", tmp_path / "trees")
    built = subprocess.run(
        [*sphinx, DOCS, tmp_path / "html"], capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")

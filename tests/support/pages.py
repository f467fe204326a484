"""The code blocks of the documentation, and the commands in them.

A fence says what a block is: `sh` commands that are typed; `console` commands behind ``$ ``, each
with what it prints beneath; `yaml` a file, named by the comment in its first line; anything else
is read only. Reads Markdown, runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_FOLLOWED = {
    "post-a-weekly-report.md": "needs a ledger with a week in it and a webhook",
}
"""Pages whose commands are not typed by a test yet, with what it would take."""
PAGES = tuple(
    page
    for page in (
        ROOT / "README.md",
        *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
        *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    )
    if page.name not in NOT_FOLLOWED
)
"""Pages whose blocks are run."""
TYPED = frozenset({"sh", "console", ""})
"""Fences around commands; on pages that are not run they may be bare."""

_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"# (\S+\.ya?ml)(, (?:added|below `(?P<key>\w+)`))?$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    """Of the fence, counted from 1."""
    language: str
    text: str
    section: str = ""
    """Heading above it."""

    @property
    def place(self) -> str:
        """Return ``page:line``."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str:
        """Return the name of the file that a `yaml` block is; empty where it says none."""
        found = _FILE_NAME.match(self.text.partition("\n")[0])
        return found[1] if found and self.language == "yaml" else ""

    @property
    def is_added(self) -> bool:
        """Return whether a file's text goes behind what another block wrote."""
        found = _FILE_NAME.match(self.text.partition("\n")[0])
        return bool(found and found[2])


@dataclass(frozen=True)
class Command:
    """What is typed, and what is printed beneath it."""

    place: str
    typed: str
    """Continuation lines joined."""
    printed: str | None
    """None where the page does not show it."""


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start()) + 1,
            found[1],
            found[2],
            _section(text[: found.start()]),
        )
        for found in _FENCE.finditer(text)
    ]


def _section(before: str) -> str:
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", before), re.MULTILINE)
    return headings[-1] if headings else ""


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a `sh` or `console` block, in order."""
    lines = block.text.replace("\\\n", "").splitlines()
    if block.language != "console":
        for line in lines:
            if line.strip() and not line.startswith("#"):
                yield Command(block.place, line.strip(), None)
        return
    typed, printed = "", list[str]()
    for line in lines:
        if line.startswith("$ "):
            if typed:
                yield Command(block.place, typed, _joined(printed))
            typed, printed = line[2:].strip(), []
        else:
            printed.append(line)
    if typed:
        yield Command(block.place, typed, _joined(printed))


def commands_of(page: Path) -> Iterator[Command]:
    """Yield every command of a page."""
    for block in blocks(page):
        if block.language in TYPED:
            yield from commands(block)


def _joined(printed: list[str]) -> str | None:
    text = "\n".join(printed).rstrip()
    return text or None

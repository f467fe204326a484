"""Reads a story from YAML, strictly: every fault with its line, and nothing that cannot be played.

The format is that of the values in `story` and `world`, field by field. What no simulated cluster
of one process can hold, and what would surely be a slip (a node that is not there, minutes that run
backwards), is refused before anything starts. Called by the demo.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import msgspec

from gpu_pruner.settings.document import Document, Keys, parse_document, read_document
from gpu_pruner.settings.problems import Problem, nearest, refused
from gpu_pruner.sim.story import Part, Story
from gpu_pruner.sim.story_rules import Fault, faults_of
from gpu_pruner.sim.world import Behaviour, Namespace, Node, Override

T = TypeVar("T", bound=msgspec.Struct)

FIRST_STORY = "first_story.yaml"
_ITEMS: dict[str, type[msgspec.Struct]] = {
    "nodes": Node,
    "workloads": Part,
    "namespaces": Namespace,
}
_AT = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`$")
_LONGEST = 200
"""Characters of a message that are repeated."""


def first_story_text() -> str:
    """Return the story of the demo, as a user may copy it."""
    return files(__package__).joinpath(FIRST_STORY).read_text(encoding="utf-8")


@cache
def first_story() -> Story:
    """Return the story of the demo."""
    return _story(parse_document(first_story_text(), name=FIRST_STORY))


def load_story(path: Path) -> Story:
    """Read a story from a file.

    Raises:
        ConfigurationError: the file cannot be read or is not a story; one line for each fault, with
            file, line and column.
    """
    return _story(read_document(path))


def _story(document: Document) -> Story:
    reader = _Reader(document)
    read: dict[str, object] = dict(document.values)
    for key, kind in _ITEMS.items():
        given = document.values.get(key)
        if isinstance(given, list):
            items = [reader.value(one, kind, (key, str(at))) for at, one in enumerate(given)]
            read[key] = [one for one in items if one is not None]
    story = reader.value(read, Story, ())
    if reader.problems or story is None:
        raise refused(reader.problems)
    reader.problems += [reader.problem(one) for one in faults_of(story)]
    if reader.problems:
        raise refused(reader.problems)
    return story


class _Reader:
    """Makes values of a document, and collects what is wrong."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.problems: list[Problem] = []

    def value(self, given: object, kind: type[T], keys: Keys) -> T | None:
        """Return what was given at a place as this kind; else None, and why is noted."""
        try:
            return msgspec.convert(given, type=kind)
        except msgspec.ValidationError as error:
            self.problems.append(self.problem(_explained(str(error), kind, keys)))
            return None

    def problem(self, fault: Fault) -> Problem:
        """Return a fault with its place in the file."""
        return Problem(self._document.place(fault.keys), ".".join(fault.keys), fault.message)


def _explained(message: str, kind: type[msgspec.Struct], keys: Keys) -> Fault:
    """Return msgspec's message in plain words, with the place that it names."""
    at = _AT.search(message)
    inner = tuple(name or item for name, item in _STEP.findall(at["path"])) if at else ()
    said, where = message[: at.start()] if at else message, (*keys, *inner)
    if found := _UNKNOWN.match(said):
        known = _fields_at(kind, inner)
        where, said = (*where, found["name"]), f"is not known{nearest(found['name'], known)}"
    elif found := _MISSING.match(said):
        said = f"has no {found['name']}"
    else:
        said = f"{said[:1].lower()}{said[1:]}".replace("expected", "must be", 1)
    return Fault(where, said[:_LONGEST])


def _fields_at(kind: type[msgspec.Struct], inner: Sequence[str]) -> tuple[str, ...]:
    """Return the names that may stand at a place within a struct."""
    names = kind.__struct_fields__
    for step in inner:
        if step == "behaviour":
            names = Behaviour.__struct_fields__
        elif step == "overrides":
            names = Override.__struct_fields__
    return names

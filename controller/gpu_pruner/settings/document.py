"""A settings file: YAML to values, with the line and column of each.

Reads the part of YAML on which all its readers agree. What YAML 1.1 and 1.2 understand differently
is refused, not guessed: numbers with leading zeros. ``on``, ``off``, ``yes`` and ``no`` are text,
which a setting that is true or false understands. Aliases, tags and second documents are refused,
and so are names that are given twice. Nothing of a file is ever repeated but names and structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.foreign import quoted
from gpu_pruner.settings.problems import Problem, refused

Keys: TypeAlias = tuple[str, ...]
"""Names from the top to a value; items of lists by their number, from 0."""

LARGEST = 1 << 20
"""Bytes of a file: no ConfigMap holds more."""

DEEPEST = 20
"""Levels of nesting; settings need six."""

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+")


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says."""

    name: str
    values: Mapping[str, object] = field(default_factory=dict)
    marks: Mapping[Keys, tuple[int, int]] = field(default_factory=dict)
    """Line and column, from 1, of every name and item."""

    def place(self, keys: Keys) -> str:
        """Return where a value stands, or where the nearest one around it does."""
        for length in range(len(keys), 0, -1):
            if mark := self.marks.get(keys[:length]):
                return f"{self.name}:{mark[0]}:{mark[1]}"
        return self.name


def read_document(file: Path) -> Document:
    """Read a file.

    Raises:
        ConfigurationError: it cannot be read, or is not such YAML; every fault of its structure,
            one line each.
    """
    name = str(file)
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=name) from None
    if len(content) > LARGEST:
        raise ConfigurationError(f"is larger than {LARGEST // 1024} KiB", path=name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError("is not UTF-8 text", path=f"{name}:{line}") from None
    return parse_document(text, name=name)


def parse_document(text: str, *, name: str) -> Document:
    """Read text.

    Args:
        text: YAML.
        name: of the file, for places.

    Raises:
        ConfigurationError: as `read_document`.
    """
    value, marks = _parsed(text, name=name)
    if value is None:
        return Document(name)
    if not isinstance(value, dict):
        raise ConfigurationError("must hold names of settings with values", path=name)
    return Document(name, value, marks)


def parse_value(text: str, *, name: str) -> object:
    """Read text that is the value of one setting, for example ``[a, b]`` in a variable.

    Raises:
        ConfigurationError: as `read_document`.
    """
    value, _ = _parsed(text, name=name)
    return value


def _parsed(text: str, *, name: str) -> tuple[object, dict[Keys, tuple[int, int]]]:
    tree = _Tree(name)
    try:
        value = tree.document(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise refused([*tree.problems, _syntax(error, name=name, text=text)]) from None
    except _TooDeepError:
        raise refused(tree.problems) from None
    if tree.problems:
        raise refused(tree.problems)
    return value, tree.marks


def _syntax(error: yaml.YAMLError, *, name: str, text: str) -> Problem:
    """Say what is no YAML; its own words never repeat more than a character."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return Problem(name, "", "has a character that may not be in YAML")
    place = f"{name}:{mark.line + 1}:{mark.column + 1}"
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: mark.column + 1]:
        return Problem(place, "", "is indented with a tab; YAML allows only blanks")
    why = str(getattr(error, "problem", "") or "")
    told = f": {why}" if why and "tag" not in why else ""
    return Problem(place, "", f"is not YAML{told}")


class _TooDeepError(Exception):
    """There is no use in reading on; the problem is noted."""


class _Tree:
    """Builds values from YAML's events, and collects what is wrong."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []
        self.marks: dict[Keys, tuple[int, int]] = {}

    def document(self, events: Iterator[yaml.Event]) -> object:
        """Return the value of the first document; a second one is a problem."""
        value: object = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._problem(event, (), "begins a second document; settings are one")
                    return value
                value = self._node(next(events), events, ())
        return value

    def _problem(self, event: yaml.Event, keys: Keys, message: str) -> None:
        line, column = _mark(event)
        self.problems.append(Problem(f"{self.name}:{line}:{column}", ".".join(keys), message))

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], keys: Keys) -> object:
        if isinstance(event, yaml.AliasEvent):
            self._problem(event, keys, "is an alias (*); write the value out")
            return None
        if getattr(event, "tag", None) not in {None, "!"}:
            self._problem(event, keys, "has a tag (!); write the plain value")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, keys)
        if len(keys) >= DEEPEST:
            self._problem(event, keys[:3], f"is nested more than {DEEPEST} levels deep")
            raise _TooDeepError  # the library needs minutes to the end of such a file
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(events, keys)
        return self._mapping(events, keys)

    def _sequence(self, events: Iterator[yaml.Event], keys: Keys) -> list[object]:
        items: list[object] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            inner = (*keys, str(len(items)))
            self.marks[inner] = _mark(event)
            items.append(self._node(event, events, inner))
        return items

    def _mapping(self, events: Iterator[yaml.Event], keys: Keys) -> dict[str, object]:
        found: dict[str, object] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self._problem(event, keys, "has a name that is not plain text")
                self._node(event, events, keys)
                self._node(next(events), events, keys)
                continue
            inner = (*keys, quoted(event.value)[:100])
            if event.value in found:
                line = self.marks[inner][0]
                self._problem(event, inner, f"is given twice, the first time on line {line}")
            else:
                self.marks[inner] = _mark(event)
            found[event.value] = self._node(next(events), events, inner)
        return found

    def _scalar(self, event: yaml.ScalarEvent, keys: Keys) -> object:
        text: str = event.value
        if event.style:  # quoted, or a block
            return text
        if _LEADING_ZERO.fullmatch(text):
            message = "has a leading zero, which some read as octal; leave it out, or use quotes"
            self._problem(event, keys, message)
            return None
        return _plain(text)


def _plain(text: str) -> object:
    """Return what a text without quotes means, to all readers of YAML alike."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NO_NUMBER.fullmatch(text):
        return float(text.replace(".", ""))
    return float(text) if _FLOAT.fullmatch(text) else text


def _mark(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)

"""What is wrong with settings, in words for the person who wrote them.

A problem says where the value stands, which setting it is, and what is wrong, and never repeats
what may be a secret. All problems of one reading are told at once. `loading` and `environment`
find them, `document` finds those of a file that cannot be read as settings at all.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from typing_extensions import override

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.foreign import quoted

_LONGEST = 40
"""Characters of a wrong value that are repeated."""


_LEAST_LIKENESS = 0.7
"""Of two words, 0 to 1: below it a guess is more confusing than none."""

_POSITION = re.compile(r":(\d+)(?::(\d+))?$")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    place: str
    """File with line and column, flag or variable; empty where nobody wrote it."""
    setting: str
    """Names joined by dots; empty where the whole is meant."""
    message: str

    @property
    def position(self) -> tuple[int, int]:
        """Return line and column, 0 where there are none."""
        found = _POSITION.search(self.place)
        return (int(found[1]), int(found[2] or 0)) if found else (0, 0)

    @override
    def __str__(self) -> str:
        """Return it as one line."""
        return ": ".join(filter(None, (self.place, self.setting, self.message)))


def refused(problems: Iterable[Problem]) -> ConfigurationError:
    """Return the error that tells all of them, each once, one line each, in the file's order."""
    ordered = sorted(problems, key=lambda one: one.position)
    return ConfigurationError("\n".join(dict.fromkeys(map(str, ordered))))


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a question with the known name nearest to a word, or nothing where none is near."""
    names = {one.lower().replace("-", "_"): one for one in known}
    snake = "".join(f"_{one}" if one.isupper() and word != word.upper() else one for one in word)
    plain = snake.lower().replace("-", "_").strip("_")
    near = difflib.get_close_matches(plain, names, n=1, cutoff=_LEAST_LIKENESS)
    return f"; did you mean {names[near[0]]}?" if near else ""


def unknown(word: str, *, known: Iterable[str], elsewhere: Iterable[str]) -> str:
    """Say that there is no setting of this name.

    Args:
        word: the name.
        known: names that may stand where it stands.
        elsewhere: paths of all settings: one that ends in it is what was meant.
    """
    meant = next((path for path in elsewhere if path.rpartition(".")[2] == word), "")
    return (
        f"is no setting here; did you mean {meant}?"
        if meant
        else f"is no setting{nearest(word, known)}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What validation found at one place."""

    keys: tuple[str, ...]
    """Path of the place; empty for the whole."""
    kind: str
    """pydantic's word for it."""
    message: str
    context: Mapping[str, object]
    """Limits and the like."""
    value: object
    """What was given."""


def findings(error: ValidationError) -> Iterator[Finding]:
    """Yield everything that validation found, in its order."""
    for one in error.errors(include_url=False):
        yield Finding(
            keys=tuple(str(part) for part in one["loc"]),
            kind=one["type"],
            message=one["msg"],
            context=one.get("ctx", {}),
            value=one["input"],
        )


def message_of(
    finding: Finding, *, known: Iterable[str], elsewhere: Iterable[str], secret: bool
) -> str:
    """Say in plain words what validation found.

    Args:
        finding: what pydantic tells.
        known: names that may stand where the error is, for one that is unknown.
        elsewhere: paths of all settings, for the same.
        secret: whether the value may be one, and is not to be repeated.
    """
    kind = finding.kind
    if kind == "extra_forbidden":
        return unknown(finding.keys[-1], known=known, elsewhere=elsewhere)
    if kind == "value_error":
        return finding.message.removeprefix("Value error, ")
    words = _WORDS.get(kind)
    message = finding.message.replace("Input should be", "must be")
    if words is not None:
        message = words(finding.context)
    if secret or kind == "missing":
        return message
    return f"{message}; found {_found(finding.value, repeats=kind in _REPEATING)}"


_REPEATING = {"enum", "bool_parsing", "int_parsing", "float_parsing"}
"""Kinds of error with a text that is repeated: words and numbers are expected there."""


def _found(value: object, *, repeats: bool) -> str:
    """Tell a wrong value, or of what kind it is."""
    if isinstance(value, str):
        return repr(quoted(value[:_LONGEST])) if repeats else "text"
    if isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    kinds = {dict: "names with values", list: "a list", tuple: "a list", type(None): "nothing"}
    return kinds.get(type(value), "something else")


_WORDS: Mapping[str, Callable[[Mapping[str, object]], str]] = {
    "missing": lambda _: "is required",
    "model_type": lambda _: "must be a section: names with values",
    "model_attributes_type": lambda _: "must be a section: names with values",
    "enum": lambda told: f"must be {told['expected']}",
    "bool_parsing": lambda _: "must be true or false",
    "bool_type": lambda _: "must be true or false",
    "int_parsing": lambda _: "must be a whole number",
    "int_type": lambda _: "must be a whole number",
    "int_from_float": lambda _: "must be a whole number",
    "int_parsing_size": lambda _: "must be a smaller number",
    "float_parsing": lambda _: "must be a number",
    "float_type": lambda _: "must be a number",
    "finite_number": lambda _: "must be a finite number",
    "greater_than": lambda told: f"must be greater than {told['gt']:g}",
    "greater_than_equal": lambda told: f"must be at least {told['ge']:g}",
    "less_than": lambda told: f"must be less than {told['lt']:g}",
    "less_than_equal": lambda told: f"must be at most {told['le']:g}",
    "string_type": lambda _: "must be text, where in doubt in quotes",
    "string_sub_type": lambda _: "must be text, where in doubt in quotes",
    "string_pattern_mismatch": lambda told: f"must have the form {told['pattern']}",
    "string_too_long": lambda told: f"must have at most {told['max_length']} characters",
    "string_too_short": lambda told: f"must have at least {told['min_length']} characters",
    "path_type": lambda _: "must be a path",
    "tuple_type": lambda _: "must be a list",
    "list_type": lambda _: "must be a list",
    "frozen_set_type": lambda _: "must be a list",
    "dict_type": lambda _: "must be names with values",
    "too_short": lambda told: f"must have at least {told['min_length']} item",
}
"""Kind of error to what it says, from its context."""

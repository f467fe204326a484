"""Small expressions over an object, for levers of kinds that we do not know.

Answers whether an expression like ``status.phase == "Running" && status.readyReplicas >= 1`` holds
for an object. It compares fields with values or with other fields, and nothing else: there is
nothing to call and nothing that takes long. What is absent compares with nothing, except that it
differs (``!=``) from everything. `settings.levers` parses them at the start, `kube.custom` asks
them.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Scalar: TypeAlias = str | int | float | bool

LONGEST = 500
"""Characters of an expression."""

_FIELD = r"[A-Za-z_][A-Za-z0-9_-]*"
_PATH = re.compile(rf"(?:metadata|spec|status)(?:\.{_FIELD})+")
_COMPARISON = re.compile(r"\s*(\S+?)\s*(==|!=|>=|<=|>|<)\s*(.+?)\s*", re.DOTALL)
_ORDERED: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class _Absent:
    """Marks a field that is not there."""


_ABSENT: Final = _Absent()
_Found: TypeAlias = Scalar | _Absent


@dataclass(frozen=True, slots=True)
class Path:
    """A field: the keys that lead to it."""

    keys: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Path:
        """Read ``spec.replicas``.

        Raises:
            ValueError: it is not a path below metadata, spec or status.
        """
        if not _PATH.fullmatch(text):
            raise ValueError(f"{text[:60]!r} is not a path like spec.replicas or status.phase")
        return cls(tuple(text.split(".")))

    def find(self, body: object) -> _Found:
        """Return the value there; anything that is no scalar counts as absent."""
        for key in self.keys:
            if not isinstance(body, Mapping) or key not in body:
                return _ABSENT
            body = body[key]
        return body if isinstance(body, str | int | float | bool) else _ABSENT


@dataclass(frozen=True, slots=True)
class _Comparison:
    left: Path
    sign: str
    right: Path | Scalar

    def holds(self, body: object) -> bool:
        left = self.left.find(body)
        right = self.right.find(body) if isinstance(self.right, Path) else self.right
        if self.sign in {"==", "!="}:
            return _same(left, right) is (self.sign == "==")
        first, second = _number(left), _number(right)
        if first is None or second is None:
            return False
        return _ORDERED[self.sign](first, second)


@dataclass(frozen=True, slots=True)
class Expression:
    """Comparisons that all have to hold."""

    comparisons: tuple[_Comparison, ...]

    @classmethod
    def parse(cls, text: str) -> Expression:
        """Read an expression.

        Raises:
            ValueError: it is none, with the part that cannot be read.
        """
        if len(text) > LONGEST:
            raise ValueError(f"an expression has at most {LONGEST} characters")
        return cls(tuple(_comparison(part) for part in text.split("&&")))

    def holds(self, body: object) -> bool:
        """Return whether it holds for an object with metadata, spec and status."""
        return all(one.holds(body) for one in self.comparisons)


def _comparison(text: str) -> _Comparison:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise ValueError(f"{text.strip()[:60]!r} does not compare a field with something")
    left, sign, right = found.groups()
    return _Comparison(Path.parse(left), sign, _operand(right))


def _operand(text: str) -> Path | Scalar:
    if _PATH.fullmatch(text):
        return Path.parse(text)
    try:
        value: object = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, str | int | float | bool):
        raise ValueError(  # noqa: TRY004 - as pydantic wants it
            f'{text[:60]!r} is neither a field nor "text", a number, true or false'
        )
    return value


def _same(left: _Found, right: _Found) -> bool:
    """Return whether both are there and equal; ``true`` is not 1."""
    if isinstance(left, _Absent) or isinstance(right, _Absent):
        return False
    return isinstance(left, bool) is isinstance(right, bool) and left == right


def _number(value: _Found) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None

"""One line of a check: how bad, about what, in a sentence, with the fix.

Values only. Every module of diagnosis makes them, and `cli` prints them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec
from msgspec import structs


class Level(StrEnum):
    """How much a finding matters."""

    OK = "OK"
    """As it should be."""
    WARN = "WARN"
    """It works, and could be better; or it could not be looked at. The exit code stays 0."""
    FAIL = "FAIL"
    """Something does not work because of it. The exit code is 3."""


class Area(StrEnum):
    """What a finding is about; findings are printed in this order."""

    TELEMETRY = "telemetry"
    LABELS = "labels"
    COVERAGE = "coverage"
    FIELDS = "fields"
    THRESHOLD = "threshold"
    DEVICES = "devices"
    CLUSTER = "cluster"
    RIGHTS = "rights"
    HUBS = "hubs"
    CLOCKS = "clocks"
    BREAKERS = "breakers"
    CHANNELS = "channels"


class Finding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line."""

    level: Level
    area: Area
    sentence: str
    """What is so, for a person who has never seen our code."""
    fix: str = ""
    """What to do about it: a command, a snippet, or a sentence; empty where there is nothing."""


class Checkup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A whole check, as `--output json` prints it."""

    level: Level
    """The worst of all."""
    findings: tuple[Finding, ...]
    """In the order of `Area`, the worst of each first."""


_GRAVITY = tuple(Level)
_PLACES = tuple(Area)
NAMED = 5
"""So many of one kind are named in a sentence; of the others only the number."""


def checkup(findings: Iterable[Finding]) -> Checkup:
    """Put findings in order, fit for a terminal: names of models and jobs are other people's."""
    shown = [
        structs.replace(one, sentence=_printable(one.sentence), fix=_printable(one.fix, "\n"))
        for one in findings
    ]
    ordered = sorted(shown, key=lambda one: (_PLACES.index(one.area), -_GRAVITY.index(one.level)))
    worst = max((one.level for one in ordered), key=_GRAVITY.index, default=Level.OK)
    return Checkup(level=worst, findings=tuple(ordered))


def _printable(text: str, also: str = "") -> str:
    return "".join(one if one.isprintable() or one in also else "?" for one in text)


def listed(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def counted(number: int, thing: str, things: str = "") -> str:
    """Return a number with its thing in the right form."""
    return f"{number} {thing if number == 1 else things or thing + 's'}"

"""Times as cases write them: relative to the beginning of the story."""

from __future__ import annotations

import re
from functools import lru_cache

START = 1_767_268_800.0
"""2026-01-01 12:00:00 UTC, the moment that a story calls 0."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_WORD = re.compile(r"([-+]?)(\d+(?:\.\d+)?)([smhd]?)")


@lru_cache(maxsize=4096)
def length(text: str | float) -> float:
    """Read ``-25m``, ``2h``, ``90s`` or ``0`` as signed seconds."""
    found = _WORD.fullmatch(str(text).strip())
    if found is None or not (found[3] or float(found[2]) == 0):
        message = f"{text!r} is not a time such as -25m, 2h or 0"
        raise ValueError(message)
    seconds = float(found[2]) * _UNITS.get(found[3], 1.0)
    return -seconds if found[1] == "-" else seconds


def moment(text: str | float) -> float:
    """Read a time relative to the story's beginning as Unix seconds."""
    return START + length(text)


@lru_cache(maxsize=4096)
def stretch(text: str) -> tuple[float, float]:
    """Read ``-25m to -15m``, ``from 5m``, ``until -8m`` or ``at -20m`` as begin and end."""
    words = text.split()
    if words[0] == "from":
        words = words[1:]
    if words[0] == "until":
        return float("-inf"), moment(words[1])
    if words[0] == "at":
        end = moment(words[1])
        return end - 1, end
    if len(words) == 1:
        return moment(words[0]), float("inf")
    begin, _, end_word = words
    return moment(begin), moment(end_word)

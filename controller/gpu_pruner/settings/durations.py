"""Lengths of time as people write them: a bare number in a flag's own unit, or ``35m``, ``2h``."""

from __future__ import annotations

import math
import re

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.units import HOUR, MINUTE, Seconds

_UNITS: dict[str, Seconds] = {"s": 1.0, "m": MINUTE, "h": HOUR, "d": 24 * HOUR}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
LONGEST: Seconds = 366 * 24 * HOUR
"""A year: longer is a slip of the finger, and overflows other people's date arithmetic."""


def parse_duration(text: str | float, *, bare_unit: str = "s") -> Seconds:
    """Read a length of time.

    Args:
        text: ``90``, ``"90"``, ``"35m"``, ``"1h30m"``.
        bare_unit: unit of a number without one: ``s``, ``m``, ``h`` or ``d``.

    Returns:
        Seconds, 0 or more, at most a year.

    Raises:
        ConfigurationError: it is not such a length.

    >>> parse_duration("35", bare_unit="m"), parse_duration("1h30m")
    (2100.0, 5400.0)
    """
    written = str(text).strip()
    if not written.isascii() or "_" in written:  # float() reads other digits and separators too
        raise ConfigurationError(f"{written[:40]!r} is not a length of time")
    try:
        seconds = float(written) * _UNITS[bare_unit]
    except ValueError:
        parts = _PART.findall(written)
        if not parts or "".join(number + unit for number, unit in parts) != written:
            hint = "write a number, or a number with s, m, h or d, for example 35m"
            raise ConfigurationError(f"{written[:40]!r} is not a length of time; {hint}") from None
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not math.isfinite(seconds) or not 0 <= seconds <= LONGEST:
        raise ConfigurationError(f"{written[:40]!r} is not between 0 and 366 days")
    return seconds


def parse_length(text: str) -> Seconds:
    """Read how long a person wants something from now on: with its unit, and longer than nothing.

    A bare number means minutes to one and hours to another, and nothing takes back what it did.

    Raises:
        ConfigurationError: it is not such a length.

    >>> parse_length("4h")
    14400.0
    """
    seconds = parse_duration(text)
    if text.strip()[-1:] not in _UNITS:
        raise ConfigurationError(f"{text.strip()[:40]!r} has no unit; write 30m, 4h or 2d")
    if not seconds:
        raise ConfigurationError(f"{text.strip()[:40]!r} is over at once; withdraw ends a wish")
    return seconds


def format_duration(seconds: Seconds) -> str:
    """Write a length of time for people, in its two largest units.

    >>> format_duration(2100), format_duration(5400), format_duration(45)
    ('35m', '1h30m', '45s')
    """
    whole = round(seconds)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [
        f"{count}{unit}"
        for count, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (left, "s"))
        if count
    ]
    return "".join(parts[:2]) or "0s"

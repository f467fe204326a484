"""What a benchmark hands over, and how a table of it looks."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from statistics import median

import msgspec
import psutil

_NO_FRACTION = 100
"""From here on digits behind the point mean nothing."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured number. Without a goal it explains another one."""

    what: str
    measured: float
    unit: str = ""
    """``x`` for a ratio; empty for a plain count."""
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    """How it was measured, where the name does not tell."""

    @property
    def goal(self) -> str:
        """Return the goal in words; empty where there is none."""
        if self.at_least is not None:
            return f"at least {shown(self.at_least, self.unit)}"
        if self.at_most is not None:
            return f"at most {shown(self.at_most, self.unit)}"
        return ""

    @property
    def outcome(self) -> str:
        """Return ``ok`` or ``MISSED``; empty where there is no goal."""
        low = self.at_least is not None and not self.measured >= self.at_least
        high = self.at_most is not None and not self.measured <= self.at_most
        if low or high:
            return "MISSED"
        return "ok" if self.goal else ""


class MissingProgram(Exception):
    """A benchmark needs a program that is not installed."""


def shown(value: float, unit: str) -> str:
    """Write a number with the digits that mean something."""
    whole = abs(value) >= _NO_FRACTION or value == int(value)
    digits = f"{value:,.0f}" if whole else f"{value:.3g}"
    space = "" if unit == "x" else " "
    return f"{digits}{space}{unit}".rstrip()


def table(figures: Iterable[Figure]) -> str:
    """Lay figures out as a Markdown table that also reads well in a terminal."""
    rows = [("Figure", "Goal", "Measured", "")]
    rows += [(one.what, one.goal, shown(one.measured, one.unit), one.outcome) for one in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    rows.insert(1, tuple("-" * max(3, width) for width in widths))  # type: ignore[arg-type]  # four columns
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return (
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
    )


def machine() -> str:
    """Say on what and when this was measured, in a sentence without names."""
    memory = round(psutil.virtual_memory().total / 2**30)
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores ({platform.machine()}), "
        f"{memory} GiB, Python {platform.python_version()}, load {load:.1f} at the start"
    )


def middle(values: Iterable[float]) -> float:
    """Return the median of repeats."""
    return float(median(values))

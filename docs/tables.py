"""Markdown as the reference is written in. Only form; what it says comes from elsewhere."""

from __future__ import annotations

from typing import TypeAlias

Row: TypeAlias = tuple[str, ...]


def table(head: Row, rows: list[Row]) -> str:
    """Return a Markdown table; pipes and line breaks in cells are made harmless."""

    def line(cells: Row) -> str:
        return "| " + " | ".join(" ".join(one.split()).replace("|", "\\|") for one in cells) + " |"

    return "\n".join([line(head), line(("---",) * len(head)), *map(line, rows)])


def code(text: str) -> str:
    """Return text as Markdown code, or nothing for nothing."""
    return f"`{text}`" if text else ""


def sentence(text: str) -> str:
    """Return text with its first letter in upper case."""
    return text[:1].upper() + text[1:]

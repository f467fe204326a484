"""Reading and copying JSON objects: how the simulated cluster holds what the API server holds.

Objects are never changed in place, because watches and pages still refer to older versions:
every change makes copies along its path. Reading never raises: an absent or oddly typed value
is the empty one of the kind that was asked for. Called by every other module of `sim`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

JsonObject: TypeAlias = dict[str, object]
"""A decoded JSON object."""


def child(body: object, *path: str) -> object:
    """Return the value at a path, or None where any step of it is absent."""
    for key in path:
        if not isinstance(body, dict) or key not in body:
            return None
        body = body[key]
    return body


def text(body: object, *path: str) -> str:
    """Return the string at a path, else the empty string."""
    value = child(body, *path)
    return value if isinstance(value, str) else ""


def number(body: object, *path: str, default: int = 0) -> int:
    """Return the integer at a path (also one written as text, as quantities are)."""
    value = child(body, *path)
    if isinstance(value, bool):
        return default
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    return default


def mapping(body: object, *path: str) -> JsonObject:
    """Return the object at a path, else a new empty one. It must not be changed in place."""
    value = child(body, *path)
    return value if isinstance(value, dict) else {}


def texts(body: object, *path: str) -> dict[str, str]:
    """Return the string-to-string object at a path (labels, annotations) as a new dict."""
    found = mapping(body, *path)
    return {key: value for key, value in found.items() if isinstance(value, str)}


def elements(body: object, *path: str) -> list[JsonObject]:
    """Return the objects of the list at a path as a new list."""
    value = child(body, *path)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def strings(body: object, *path: str) -> list[str]:
    """Return the strings of the list at a path as a new list."""
    value = child(body, *path)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def with_value(body: Mapping[str, object], path: tuple[str, ...], *, to: object) -> JsonObject:
    """Return a copy in which the path holds this value; objects on the way are made."""
    head, *rest = path
    copy = dict(body)
    copy[head] = with_value(mapping(body, head), tuple(rest), to=to) if rest else to
    return copy


def without(body: Mapping[str, object], path: tuple[str, ...]) -> JsonObject:
    """Return a copy that lacks the last key of a path."""
    head, *rest = path
    copy = dict(body)
    if not rest:
        copy.pop(head, None)
    elif isinstance(copy.get(head), dict):
        copy[head] = without(mapping(body, head), tuple(rest))
    return copy

"""Where values come from, and which of them holds.

A layer is what one source says: the presets, the file, the variables, the flags, each value with
its place. Layers are laid over one another value by value: flag over variable over file over preset
over default. `loading` reads the layers and validates what comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from gpu_pruner.settings.document import Document, Keys
from gpu_pruner.settings.problems import Problem


class Origin(IntEnum):
    """Kinds of sources; the larger wins."""

    DEFAULT = 0
    PRESET = 1
    FILE = 2
    VARIABLE = 3
    FLAG = 4


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was written."""

    origin: Origin
    text: str
    """The flag, the variable, or file with line and column, as one writes it."""
    for_all: bool = False
    """Whether it says something only if the section is used: a preset, or a flag for two."""


@dataclass(frozen=True, slots=True)
class Written:
    """One value, as it was written."""

    value: object
    place: Place


Layer: TypeAlias = Mapping[Keys, Written]
"""Path to value. Names with values are taken apart, lists are not."""

DEFAULT = Place(Origin.DEFAULT, "default")
_URL: Keys = ("prometheus", "url")
_EXPORTERS: Keys = ("scrape", "exporters")
_CREDENTIALS: frozenset[Keys] = frozenset({("prometheus", "token_file"), ("prometheus", "ca_file")})


def layer_of_document(document: Document) -> Layer:
    """Return what a file says."""
    return {
        keys: Written(value, Place(Origin.FILE, document.place(keys)))
        for keys, value in flat(document.values)
    }


def flat(values: Mapping[str, object], above: Keys = ()) -> Iterator[tuple[Keys, object]]:
    """Yield every value with its path; a name with nothing below it stands for itself."""
    for key, value in values.items():
        keys = (*above, key)
        if isinstance(value, Mapping) and value:
            yield from flat(value, keys)
        else:
            yield keys, value


def merged(layers: Iterable[Layer]) -> dict[Keys, Written]:
    """Lay the layers over one another, the lowest first."""
    found: dict[Keys, Written] = {}
    for layer in layers:
        for keys, written in layer.items():
            for length in range(1, len(keys)):  # a value below replaces an empty or wrong section
                above = found.get(keys[:length])
                if above is not None and above.value in (None, {}):
                    del found[keys[:length]]
            found[keys] = written
    return found


def nested(written: Mapping[Keys, Written]) -> dict[str, object]:
    """Return values as sections within sections."""
    found: dict[str, object] = {}
    for keys in sorted(written, key=len):
        here = found
        for key in keys[:-1]:
            below = here.setdefault(key, {})
            if not isinstance(below, dict):
                break  # a section that is no section: validation says so
            here = below
        else:
            here[keys[-1]] = written[keys].value
    return found


def with_one_source(written: dict[Keys, Written]) -> tuple[dict[Keys, Written], list[Problem]]:
    """Leave one telemetry source: Prometheus, or exporters, whichever was said with more weight.

    What is said of Prometheus in general, by a preset or a flag for both, says nothing where no URL
    is set.

    Returns:
        What is left, and what is wrong: both are given with the same weight.
    """
    url, exporters = written.get(_URL), written.get(_EXPORTERS)
    if url is not None and exporters is not None and exporters.value:
        if url.place.origin == exporters.place.origin:
            message = f"give Prometheus or exporters, not both; the other is at {url.place.text}"
            return written, [Problem(exporters.place.text, ".".join(_EXPORTERS), message)]
        loser = _EXPORTERS if url.place.origin > exporters.place.origin else _URL[:1]
        return _without(written, loser), []
    section = [one for keys, one in written.items() if keys[0] == _URL[0]]
    if url is None and all(one.place.for_all for one in section):
        return _without(written, _URL[:1]), []
    return written, []


def without_foreign_credentials(written: dict[Keys, Written]) -> dict[Keys, Written]:
    """Leave out a preset's token and authority where the URL is not the preset's own.

    A token is for one server: it is never sent to another that somebody names.
    """
    url = written.get(_URL)
    if url is None or url.place.origin is Origin.PRESET:
        return written
    return {
        keys: one
        for keys, one in written.items()
        if keys not in _CREDENTIALS or one.place.origin is not Origin.PRESET
    }


def _without(written: dict[Keys, Written], keys: Keys) -> dict[Keys, Written]:
    return {path: one for path, one in written.items() if path[: len(keys)] != keys}

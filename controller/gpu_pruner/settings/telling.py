"""Settings as people read them: each value as one would write it, with where it comes from.

Secrets are three stars, whatever they hold. `cli` prints the rows, and a reload tells what changed
in the same words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from gpu_pruner.settings.document import Keys
from gpu_pruner.settings.durations import format_duration, parse_duration
from gpu_pruner.settings.fields import all_settings, is_duration
from gpu_pruner.settings.loading import Loaded
from gpu_pruner.settings.schema import Settings

HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that holds."""

    name: str
    """Its path, with dots."""
    value: object
    """As JSON can carry it; None where it is unset."""
    origin: str
    """Flag, variable, file with line and column, preset, or ``default``."""


def told(loaded: Loaded) -> Iterator[Setting]:
    """Yield every setting, in the order of the schema; those of a section that is unset, none."""
    for keys, field in all_settings(Settings).items():
        section = loaded.settings if len(keys) == 1 else getattr(loaded.settings, keys[0])
        if section is None:
            continue
        value = plain(getattr(section, keys[-1]), field)
        yield Setting(".".join(keys), value, loaded.place(origin_of(loaded, keys)).text)


def origin_of(loaded: Loaded, keys: Keys) -> Keys:
    """Return where to look for the place of a value: a password is taken out of a URL."""
    taken = {("prometheus", "login"): "url", ("scrape", "logins"): "exporters"}
    return (keys[0], taken[keys]) if keys in taken and keys not in loaded.written else keys


def plain(value: object, field: FieldInfo | None = None) -> object:
    """Return a value as it is written, in terms of JSON, without its secrets."""
    if field is not None and is_duration(field) and isinstance(value, float):
        written = format_duration(value)
        return written if parse_duration(written) == value else value
    match value:
        case SecretStr():
            return HIDDEN
        case BaseModel():
            fields = type(value).model_fields
            return {name: plain(getattr(value, name), field) for name, field in fields.items()}
        case Mapping():
            return {str(key): plain(one) for key, one in value.items()}
        case frozenset() | tuple() | list():
            items = [plain(one) for one in value]
            return sorted(items, key=str) if isinstance(value, frozenset) else items
        case _:
            return _single(value)


def _single(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return str(value) if isinstance(value, Path) else value


def shown(value: object) -> str:
    """Return a plain value in one line of text."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)

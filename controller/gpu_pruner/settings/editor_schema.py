"""The settings as a JSON Schema, for editors that check a file while it is being written.

What the schema refuses, the program refuses; the program refuses more, for example two levers for
one kind. `gpu-pruner schema` prints it, and the reference has a copy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import BaseModel

from gpu_pruner.settings.durations import format_duration
from gpu_pruner.settings.fields import is_duration, models_of
from gpu_pruner.settings.schema import Settings

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LENGTH = r"^\s*(\d+(\.\d+)?|(\d+(\.\d+)?[smhd])+)\s*$"
"""A length of time as text, as `durations` reads it."""


def editor_schema() -> dict[str, object]:
    """Return the schema of the settings file."""
    schema: dict[str, object] = Settings.model_json_schema()
    for model, part in _parts(schema):
        properties = part.get("properties")
        if not isinstance(properties, dict):
            continue
        for name, field in model.model_fields.items():
            if is_duration(field):
                properties[name] = _with_units(properties[name])
    return {"$schema": _DIALECT, **schema, "title": "Settings of gpu-pruner"}


def schema_text() -> str:
    """Return the schema as it is printed."""
    return json.dumps(editor_schema(), indent=2, ensure_ascii=False) + "\n"


def _parts(schema: dict[str, object]) -> Iterator[tuple[type[BaseModel], dict[str, object]]]:
    """Yield every section with its part of the schema."""
    below = schema.get("$defs")
    for model in models_of(Settings):
        part = schema if model is Settings else None
        if part is None and isinstance(below, dict):
            part = below.get(model.__name__)
        if isinstance(part, dict):
            yield model, part


def _with_units(schema: dict[str, object]) -> dict[str, object]:
    """Let a number of seconds be a text with units, too."""
    about = {key: value for key, value in schema.items() if key in {"title", "description"}}
    number = {key: value for key, value in schema.items() if key not in {*about, "default"}}
    default = schema.get("default")
    if isinstance(default, float):
        about["default"] = format_duration(default)
    return {**about, "anyOf": [number, {"type": "string", "pattern": _LENGTH}]}

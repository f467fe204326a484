"""The settings as a list: every one by its path, with what its type says about it.

Flags, variables, the printed settings and the reference all walk this list, so that a new setting,
or a new section, is in all of them by being in the schema.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from gpu_pruner.settings.document import Keys
from gpu_pruner.settings.section import Duration

_DURATION_MARK: object = typing.get_args(Duration)[1]


def section_in(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a nested section; None for a plain setting, and for a list of models."""
    return next((one for one in _options(field.annotation) if _is_model(one)), None)


def settings_of(model: type[BaseModel], *, above: Keys = ()) -> Iterator[tuple[Keys, FieldInfo]]:
    """Yield every setting of a model and of its sections, in the order of the schema."""
    for name, field in model.model_fields.items():
        section = section_in(field)
        if section is None:
            yield (*above, name), field
        else:
            yield from settings_of(section, above=(*above, name))


@lru_cache(maxsize=8)
def all_settings(model: type[BaseModel]) -> Mapping[Keys, FieldInfo]:
    """Return `settings_of` a model as a table."""
    return dict(settings_of(model))


def names_at(model: type[BaseModel], keys: Keys) -> tuple[str, ...]:
    """Return the names that may stand below a path; none where there is no section."""
    found = model_at(model, keys)
    return tuple(found.model_fields) if found else ()


def model_at(model: type[BaseModel], keys: Keys) -> type[BaseModel] | None:
    """Return the section, or the item of a list, at a path."""
    for key in keys:
        if key.isdecimal():  # an item of the list that was just entered
            continue
        field = model.model_fields.get(key)
        below = None if field is None else next(_models(field.annotation), None)
        if below is None:
            return None
        model = below
    return model


def field_at(model: type[BaseModel], keys: Keys) -> FieldInfo | None:
    """Return the setting at a path, or the one around it."""
    for length in range(len(keys), 0, -1):
        above = model_at(model, keys[: length - 1])
        if above is not None and keys[length - 1] in above.model_fields:
            return above.model_fields[keys[length - 1]]
    return None


def is_secret(field: FieldInfo) -> bool:
    """Return whether a setting holds secrets, itself or in its values."""
    return SecretStr in set(_parts(field.annotation))


def is_list(field: FieldInfo) -> bool:
    """Return whether a setting is a list."""
    return any(typing.get_origin(one) in {tuple, frozenset} for one in _options(field.annotation))


def is_mapping(field: FieldInfo) -> bool:
    """Return whether a setting is names with values."""
    return any(typing.get_origin(one) is dict for one in _options(field.annotation))


def _options(kind: object) -> tuple[object, ...]:
    """Return what a union allows, without the notes of Annotated."""
    if typing.get_origin(kind) in {types.UnionType, typing.Union}:
        return tuple(inner for one in typing.get_args(kind) for inner in _options(one))
    if typing.get_origin(kind) is typing.Annotated:
        return _options(typing.get_args(kind)[0])
    return (kind,)


def _parts(kind: object) -> Iterator[object]:
    yield kind
    for one in typing.get_args(kind):
        yield from _parts(one)


def _models(kind: object) -> Iterator[type[BaseModel]]:
    yield from (one for one in _parts(kind) if _is_model(one))


def _is_model(kind: object) -> typing.TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def is_duration(field: FieldInfo) -> bool:
    """Return whether a setting is a length of time, and may be written with a unit."""
    parts = (*field.metadata, *_parts(field.annotation))
    return any(one is _DURATION_MARK for one in parts)


def models_of(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model, and those of its sections and of the items of its lists."""
    yield model
    for field in model.model_fields.values():
        for below in _models(field.annotation):
            yield from models_of(below)

"""The rules that hold for the metadata of every object, whatever its kind.

Imitates the API server's validation of names, labels, annotations and ownerReferences: which field
is named in the refusal, and which refusals are about the JSON alone. Called by `writes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpu_pruner.sim.failures import invalid
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.tree import JsonObject, elements, mapping, text

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 253
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_LONGEST_VALUE = 63
_MAPS = ("labels", "annotations")
_LISTS = ("ownerReferences", "finalizers", "managedFields")


def check_metadata(resource: Resource, metadata: JsonObject) -> None:
    """Check what a client wants to be stored as metadata.

    Raises:
        ApiFailure: 422, naming the first field that breaks a rule.
    """
    name = text(metadata, "name")
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise invalid(resource, name, field="metadata.name", why=f"{name[:80]!r} is not a name")
    for field, why in _broken(metadata):
        raise invalid(resource, name, field=f"metadata.{field}", why=why)


def _broken(metadata: JsonObject) -> Iterator[tuple[str, str]]:
    for field in _MAPS:
        for key, value in mapping(metadata, field).items():
            if not _is_key(key if field == "labels" else key.lower()):
                yield field, f"{key[:80]!r} is not a key"
            if field == "labels" and not _is_label_value(value):
                yield field, f"{str(value)[:80]!r} is not a value"
    for reference in elements(metadata, "ownerReferences"):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not text(reference, field):
                yield f"ownerReferences.{field}", "must not be empty"


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _LONGEST_NAME or not _NAME.fullmatch(prefix)):
        return False
    return bool(name) and _is_label_value(name)


def _is_label_value(value: object) -> bool:
    is_short = isinstance(value, str) and len(value) <= _LONGEST_VALUE
    return is_short and _VALUE.fullmatch(str(value)) is not None


def mistyped_metadata(metadata: JsonObject) -> str:
    """Return the path of a label or annotation that is no string; empty where all are."""
    for field in _MAPS:
        for key, value in mapping(metadata, field).items():
            if value is not None and not isinstance(value, str):
                return f"metadata.{field}.{key}"
    return ""


def without_empty(metadata: JsonObject) -> JsonObject:
    """Return metadata without empty lists and maps, which the API server does not keep."""
    may_be_empty = {*_MAPS, *_LISTS}
    return {key: one for key, one in metadata.items() if one or key not in may_be_empty}

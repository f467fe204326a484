"""Checks a custom resource against its CRD's structural schema, as far as our CRDs use it.

Imitates the API server: unknown fields are dropped silently (which is why a misspelt field is
lost), wrong types and missing fields are 422, and a field with the rule ``self == oldSelf`` cannot
be changed. Other CEL rules are not evaluated. Called by `writes`.
"""

from __future__ import annotations

from datetime import datetime

from gpu_pruner.sim.failures import ApiFailure, invalid
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, text

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_UNCHECKED = frozenset({"apiVersion", "kind", "metadata"})


def admitted(
    resource: Resource, body: JsonObject, *, before: JsonObject | None = None
) -> JsonObject:
    """Return the body without unknown fields.

    Args:
        resource: the kind; one without a schema is admitted as it is.
        body: what the client wants to be stored.
        before: the stored object, for immutable fields; None for a create.

    Raises:
        ApiFailure: 422, naming the field.
    """
    if resource.schema is None:
        return body
    check = _Check(resource, text(body, "metadata", "name"))
    kept = {key: value for key, value in body.items() if key in _UNCHECKED}
    rest = {key: value for key, value in body.items() if key not in _UNCHECKED}
    old = {k: v for k, v in before.items() if k not in _UNCHECKED} if before else None
    pruned = check.value(resource.schema, rest, old=old)
    return kept | mapping(pruned)


class _Check:
    """One walk through an object and its schema."""

    def __init__(self, resource: Resource, name: str) -> None:
        self._resource = resource
        self._name = name

    def value(
        self, schema: JsonObject, value: object, *, old: object = None, path: str = ""
    ) -> object:
        if value is None and child(schema, "nullable") is True:
            return None
        self._shape(schema, value, path=path)
        if old is not None and old != value and _is_immutable(schema):
            raise self._refusal(path, "is immutable")
        if isinstance(value, dict):
            return self._object(schema, value, old=old, path=path)
        if isinstance(value, list):
            item = mapping(schema, "items")
            return [self.value(item, one, path=f"{path}[]") for one in value]
        return value

    def _shape(self, schema: JsonObject, value: object, *, path: str) -> None:
        expected = _TYPES.get(text(schema, "type"))
        is_stray_bool = isinstance(value, bool) and text(schema, "type") != "boolean"
        if expected is not None and (not isinstance(value, expected) or is_stray_bool):
            raise self._refusal(path, f"must be of type {text(schema, 'type')}")
        allowed = child(schema, "enum")
        if isinstance(allowed, list) and value not in allowed:
            raise self._refusal(path, f"is none of {allowed}")
        longest = child(schema, "maxLength")
        if isinstance(value, str) and isinstance(longest, int) and len(value) > longest:
            raise self._refusal(path, f"is longer than {longest}")
        if isinstance(value, str) and text(schema, "format") == "date-time" and not _is_time(value):
            raise self._refusal(path, "is not an RFC 3339 time")

    def _refusal(self, path: str, why: str) -> ApiFailure:
        return invalid(self._resource, self._name, field=path or "<object>", why=why)

    def _object(self, schema: JsonObject, value: JsonObject, *, old: object, path: str) -> object:
        missing = [one for one in _strings(schema, "required") if one not in value]
        if missing:
            where = f"{path}.{missing[0]}".lstrip(".")
            raise self._refusal(where, "is required")
        known = mapping(schema, "properties")
        extra = child(schema, "additionalProperties")
        keep = child(schema, "x-kubernetes-preserve-unknown-fields") is True
        result: JsonObject = {}
        for key, one in value.items():
            where = f"{path}.{key}".lstrip(".")
            if key in known:
                result[key] = self.value(mapping(known, key), one, old=child(old, key), path=where)
            elif isinstance(extra, dict):
                result[key] = self.value(extra, one, old=child(old, key), path=where)
            elif keep or extra is True or (not known and "type" not in schema):
                result[key] = one
        return result


def _strings(body: JsonObject, key: str) -> list[str]:
    found = body.get(key)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _is_immutable(schema: JsonObject) -> bool:
    rules = elements(schema, "x-kubernetes-validations")
    return any(text(one, "rule").replace(" ", "") == "self==oldSelf" for one in rules)


def _is_time(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False

"""Checks an object against the structural schema of its kind, as far as our kinds use it.

Imitates the API server: defaults are filled in, unknown fields dropped (and noted, for who wants
to hear of them), wrong types and missing fields are refused, and a field with the rule
``self == oldSelf`` cannot be changed. Other CEL rules are not evaluated. Called by `writes`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from gpu_pruner.sim.failures import ApiFailure, invalid, mistyped
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, strings, text

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_UNCHECKED = frozenset({"apiVersion", "kind", "metadata"})
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")


def admitted(
    resource: Resource,
    body: JsonObject,
    *,
    before: JsonObject | None = None,
    is_patch: bool = False,
    unknown: list[str] | None = None,
) -> JsonObject:
    """Return the body with defaults and without unknown fields.

    Args:
        resource: the kind; one without a schema is admitted as it is.
        body: what the client wants to be stored.
        before: the stored object, for immutable fields; None for a create.
        is_patch: whether a wrong type came by a patch, which words the refusal.
        unknown: gets the paths of dropped fields.

    Raises:
        ApiFailure: 422 (400 for a wrong type in a built-in kind), naming the field.
    """
    if resource.schema is None:
        return body
    check = _Check(resource, text(body, "metadata", "name"), is_patch)
    kept = {key: value for key, value in body.items() if key in _UNCHECKED}
    rest = {key: value for key, value in body.items() if key not in _UNCHECKED}
    old = {k: v for k, v in before.items() if k not in _UNCHECKED} if before else None
    pruned = check.value(resource.schema, rest, old=old)
    if unknown is not None:
        unknown.extend(check.unknown)
    return kept | mapping(pruned)


@dataclass(slots=True)
class _Check:
    """One walk through an object and its schema."""

    resource: Resource
    name: str
    is_patch: bool
    unknown: list[str] = field(default_factory=list)

    def value(
        self, schema: JsonObject, value: object, *, old: object = None, path: str = ""
    ) -> object:
        if value is None and child(schema, "nullable") is True:
            return None
        self._type(schema, value, path=path)
        self._range(schema, value, path=path)
        if isinstance(value, str):
            self._string(schema, value, path=path)
        if old is not None and old != value and _is_immutable(schema):
            raise self._refusal(path, "is immutable")
        if isinstance(value, dict):
            return self._object(schema, value, old=old, path=path)
        if isinstance(value, list):
            item = mapping(schema, "items")
            return [
                self.value(item, one, path=f"{path}[{place}]") for place, one in enumerate(value)
            ]
        return value

    def _type(self, schema: JsonObject, value: object, *, path: str) -> None:
        expected = _TYPES.get(text(schema, "type"))
        is_stray_bool = isinstance(value, bool) and text(schema, "type") != "boolean"
        if expected is not None and (not isinstance(value, expected) or is_stray_bool):
            why = f"must be of type {text(schema, 'type')}"
            raise self._refusal(path, why) if self.resource.custom else self._mistyped(path, why)

    def _range(self, schema: JsonObject, value: object, *, path: str) -> None:
        allowed = child(schema, "enum")
        if isinstance(allowed, list) and value not in allowed:
            raise self._refusal(path, f"is none of {allowed}")
        if not isinstance(value, int | float):
            return
        lowest, highest = child(schema, "minimum"), child(schema, "maximum")
        if isinstance(lowest, int | float) and value < lowest:
            raise self._refusal(path, f"is less than {lowest}")
        if isinstance(highest, int | float) and value > highest:
            raise self._refusal(path, f"is more than {highest}")

    def _string(self, schema: JsonObject, value: str, *, path: str) -> None:
        shortest, longest = child(schema, "minLength"), child(schema, "maxLength")
        if isinstance(longest, int) and len(value) > longest:
            raise self._refusal(path, f"is longer than {longest}")
        if isinstance(shortest, int) and len(value) < shortest:
            raise self._refusal(path, f"is shorter than {shortest}")
        pattern = text(schema, "pattern")
        if pattern and not re.search(pattern, value):
            raise self._refusal(path, f"does not match {pattern}")
        form = text(schema, "format")
        if form == "date-time" and not _is_time(value):
            raise self._refusal(path, "is not an RFC 3339 time")
        if form == "micro-time" and not _MICRO_TIME.fullmatch(value):
            raise self._mistyped(path, "is not an RFC 3339 time with microseconds")

    def _refusal(self, path: str, why: str) -> ApiFailure:
        return invalid(self.resource, self.name, field=path or "<object>", why=why)

    def _mistyped(self, path: str, why: str) -> ApiFailure:
        return mistyped(self.resource, f"{path} {why}", is_patch=self.is_patch)

    def _object(self, schema: JsonObject, value: JsonObject, *, old: object, path: str) -> object:
        known = mapping(schema, "properties")
        value = _with_defaults(known, value)
        for missing in (one for one in strings(schema, "required") if one not in value):
            raise self._refusal(f"{path}.{missing}".lstrip("."), "is required")
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
            else:
                self.unknown.append(where)
        return result


def _with_defaults(known: JsonObject, value: JsonObject) -> JsonObject:
    """Fill in defaults, also in place of a null that may not be."""
    defaults = {
        key: child(one, "default")
        for key, one in known.items()
        if isinstance(one, dict) and "default" in one
    }
    given = {key: one for key, one in value.items() if one is not None or key not in defaults}
    return given | {key: one for key, one in defaults.items() if key not in given}


def _is_immutable(schema: JsonObject) -> bool:
    rules = elements(schema, "x-kubernetes-validations")
    return any(text(one, "rule").replace(" ", "") == "self==oldSelf" for one in rules)


def _is_time(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False

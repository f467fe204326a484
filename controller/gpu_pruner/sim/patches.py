"""The three ways to patch: merge patch (RFC 7386), strategic merge, JSON patch (RFC 6902).

A strategic merge patch is applied as a merge patch, so lists are replaced, not merged by key;
nothing in this product patches a list. Server-side apply is refused. Called by `writes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_pruner.sim.failures import ApiFailure, bad_request, unsupported_media
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.tree import JsonObject

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class Patch:
    """What a PATCH request carries."""

    content_type: str
    body: object
    """Decoded JSON."""


def unsupported(content_type: str, resource: Resource) -> bool:
    """Tell whether a kind cannot be patched in this way: custom ones not by a strategic merge."""
    return content_type not in {MERGE, JSON_PATCH} and (
        content_type != STRATEGIC or resource.custom
    )


def patched(body: JsonObject, patch: Patch, *, resource: Resource) -> JsonObject:
    """Return the body with a patch applied.

    Raises:
        ApiFailure: 400 for a patch of the wrong shape, 415 for an unsupported type (a strategic
            merge patch of a custom resource is one), 422 for a failed JSON patch operation.
    """
    kind, asked = patch.content_type, patch.body
    if kind == JSON_PATCH:
        if not isinstance(asked, list):
            raise bad_request("a JSON patch is a list of operations")
        return _json_patched(body, asked)
    if kind == MERGE or (kind == STRATEGIC and not resource.custom):
        if not isinstance(asked, dict):
            raise bad_request("a merge patch is an object")
        return merged(body, asked)
    raise unsupported_media(kind)


def merged(target: object, patch: Mapping[str, object]) -> JsonObject:
    """Apply a merge patch: null removes, objects merge, everything else replaces."""
    result: JsonObject = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result.get(key), value)
        else:
            result[key] = value
    return result


def _json_patched(body: JsonObject, operations: list[object]) -> JsonObject:
    result: object = body
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request("an operation of a JSON patch is an object")
        kind, path = operation.get("op"), str(operation.get("path", ""))
        keys = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        match kind:
            case "test":
                if _found(result, keys) != operation.get("value"):
                    raise _failed(f"testing path {path} failed")
            case "add" | "replace" | "remove":
                if kind != "add":
                    _found(result, keys)
                result = _changed(result, keys, kind=str(kind), value=operation.get("value"))
            case _:
                raise _failed(f"the operation {str(kind)[:20]!r} is not supported here")
    if not isinstance(result, dict):
        raise _failed("the result is not an object")
    return result


def _failed(why: str) -> ApiFailure:
    return ApiFailure(422, "Invalid", f"the JSON patch cannot be applied: {why}")


def _found(node: object, keys: list[str]) -> object:
    for key in keys:
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            raise _failed(f"there is nothing at {key[:80]!r}")
    return node


def _changed(node: object, keys: list[str], *, kind: str, value: object) -> object:
    if not keys:
        return value
    head, *rest = keys
    if isinstance(node, dict):
        copy: JsonObject = dict(node)
        if rest:
            copy[head] = _changed(_found(node, [head]), rest, kind=kind, value=value)
        elif kind == "remove":
            del copy[head]
        else:
            copy[head] = value
        return copy
    if isinstance(node, list):
        return _changed_list(node, keys, kind=kind, value=value)
    raise _failed(f"there is nothing at {head[:80]!r}")


def _changed_list(node: list[object], keys: list[str], *, kind: str, value: object) -> list[object]:
    head, *rest = keys
    copy = list(node)
    index = len(copy) if head == "-" else int(head) if head.isdecimal() else -1
    if not 0 <= index <= len(copy) or (index == len(copy) and (rest or kind != "add")):
        raise _failed(f"there is no element {head[:20]!r}")
    if rest:
        copy[index] = _changed(copy[index], rest, kind=kind, value=value)
    elif kind == "add":
        copy.insert(index, value)
    elif kind == "remove":
        del copy[index]
    else:
        copy[index] = value
    return copy

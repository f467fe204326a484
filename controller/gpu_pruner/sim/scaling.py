"""The scale subresource: an ``autoscaling/v1`` Scale in front of an object's size.

Imitates the API server: a patch or update of it changes the size and nothing else, so annotations
that are sent along are lost; a size of zero is left out; of a custom kind the CRD says where the
size is. Called by `api`.
"""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from gpu_pruner.sim.failures import ApiFailure, bad_request, conflict, mistyped
from gpu_pruner.sim.patches import MERGE, Patch, merged
from gpu_pruner.sim.resources import Resource, ScalePaths
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, child, mapping, number, text, texts, with_value

_SCALES = Resource(group="autoscaling", version="v1", plural="scales", kind="Scale")
_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(item: Item) -> JsonObject:
    """Return the Scale of an object."""
    paths = item.resource.scale or ScalePaths()
    metadata = mapping(item.body, "metadata")
    desired = number(item.body, *paths.desired)
    status: JsonObject = {"replicas": number(item.body, *paths.observed)}
    if selector := _selector(item, paths):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": {"replicas": desired} if desired else {},
        "status": status,
    }


def _selector(item: Item, paths: ScalePaths) -> str:
    if item.resource.custom:
        return text(item.body, *paths.selector) if paths.selector else ""
    labels = texts(item.body, "spec", "selector", "matchLabels")
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def patched_scale(item: Item, body: object) -> Patch:
    """Return the patch of the main object that a merge patch of its Scale asks for.

    Raises:
        ApiFailure: 400, 409 (uid) or 422 (size).
    """
    if not isinstance(body, dict):
        raise bad_request("a merge patch is an object")
    return replaced_scale(item, merged(scale_of(item), body), is_patch=True)


def replaced_scale(item: Item, scale: JsonObject, *, is_patch: bool = False) -> Patch:
    """Return the patch of the main object that a whole Scale asks for.

    Raises:
        ApiFailure: 400 (wrong type), 409 (uid) or 422 (size).
    """
    uid = text(scale, "metadata", "uid")
    if uid and uid != item.uid:
        raise conflict(item.resource, item.name, why="the uid is another object's")
    size = child(scale, "spec", "replicas")
    if size is None:
        size = 0
    if not isinstance(size, int) or isinstance(size, bool):
        raise mistyped(_SCALES, "spec.replicas must be of type integer", is_patch=is_patch)
    if size < 0:
        raise _negative(item)
    paths = item.resource.scale or ScalePaths()
    patch = with_value({}, paths.desired, to=size)
    if version := text(scale, "metadata", "resourceVersion"):
        patch = with_value(patch, ("metadata", "resourceVersion"), to=version)
    return Patch(MERGE, patch)


def _negative(item: Item) -> ApiFailure:
    why = "must be greater than or equal to 0"
    details: JsonObject = {
        "name": item.name,
        "group": _SCALES.group,
        "kind": _SCALES.kind,
        "causes": [{"reason": "FieldValueInvalid", "message": why, "field": "spec.replicas"}],
    }
    message = f'Scale.autoscaling "{item.name}" is invalid: spec.replicas: {why}'
    return ApiFailure(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def encode_scale(item: Item) -> bytes:
    """Write the Scale of an object as the body of an answer."""
    return msgspec.json.encode(scale_of(item))

"""The scale subresource: an ``autoscaling/v1`` Scale in front of ``spec.replicas``.

Imitates the API server: a patch or update of it changes the size and nothing else, so annotations
that are sent along are lost. Called by `serving`.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.sim.failures import bad_request
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, child, mapping, number, text, texts


def scale_of(item: Item) -> JsonObject:
    """Return the Scale of an object."""
    metadata = mapping(item.body, "metadata")
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    labels = texts(item.body, "spec", "selector", "matchLabels")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": number(item.body, "spec", "replicas")},
        "status": {
            "replicas": number(item.body, "status", "replicas"),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }


def resize(scale: object) -> JsonObject:
    """Return the merge patch of the main object that a (partial) Scale asks for.

    Raises:
        ApiFailure: 400, there is no size in it.
    """
    replicas = child(scale, "spec", "replicas")
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        raise bad_request("spec.replicas of a Scale is a whole number of at least 0")
    patch: JsonObject = {"spec": {"replicas": replicas}}
    metadata = {
        key: text(scale, "metadata", key)
        for key in ("resourceVersion", "uid")
        if text(scale, "metadata", key)
    }
    return patch | {"metadata": metadata} if metadata else patch


def encode_scale(item: Item) -> bytes:
    """Write the Scale of an object as the body of an answer."""
    return msgspec.json.encode(scale_of(item))

"""The halves of an object: what is desired, what is observed, and who may write which.

Imitates status isolation (the main resource ignores ``status``, the status subresource everything
else) and what ``metadata.generation`` counts. Called by `writes`.
"""

from __future__ import annotations

from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.targets import Target
from gpu_pruner.sim.tree import JsonObject, child, texts, with_value, without


def isolated(target: Target, after: JsonObject, *, before: JsonObject) -> JsonObject:
    """Return what may be stored: the half that this endpoint may not change is as before."""
    if not target.resource.has_status:
        return after
    if target.subresource != "status":
        if "status" in before:
            return with_value(after, ("status",), to=before["status"])
        return without(after, ("status",))
    kept = dict(before)
    if not target.resource.custom:
        annotations = child(after, "metadata", "annotations")
        if annotations is not None:
            kept = with_value(kept, ("metadata", "annotations"), to=annotations)
    if "status" in after:
        return with_value(kept, ("status",), to=after["status"])
    return without(kept, ("status",))


def desired_of(body: JsonObject, resource: Resource) -> JsonObject:
    """Return what generation counts changes of.

    Of a Deployment that includes the annotations, as on a real server; of a custom resource,
    everything but metadata and status; of everything else, spec.
    """
    if resource.custom:
        return {key: body[key] for key in body if key not in {"metadata", "status"}}
    desired: JsonObject = {"spec": body.get("spec")}
    if resource.kind == "Deployment":
        desired["annotations"] = texts(body, "metadata", "annotations")
    return desired

"""What every controller needs: reading children, writing children, writing status.

Holds no rule of any kind. Writes go through `Writer` (create, delete) or straight into the store
(status), as controllers are trusted. Called by the controllers and the kubelet.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpu_pruner.model.units import rfc3339
from gpu_pruner.sim.deletes import DeleteOptions
from gpu_pruner.sim.patches import MERGE, Patch
from gpu_pruner.sim.resources import PODS, Resource
from gpu_pruner.sim.state import State
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.targets import Target
from gpu_pruner.sim.tree import JsonObject, child, elements, number, text, texts, with_value

_FINISHED = frozenset({"Succeeded", "Failed"})


class Toolbox:
    """The cluster as a controller sees it."""

    def __init__(self, state: State) -> None:
        self.store = state.store
        self.moments = state.moments
        self._catalogue = state.catalogue
        self._writer = state.writer

    def children(self, owner: Item, resource: Resource) -> list[Item]:
        """Return the objects of a kind that this object controls."""
        return [
            one
            for one in self.store.dependents(owner.uid)
            if one.resource is resource and text(controller_of(one), "uid") == owner.uid
        ]

    def owner_of(self, item: Item) -> Item | None:
        """Return the controlling owner, if it exists with that uid."""
        return self._referred(item, controller_of(item))

    def owners_of(self, item: Item) -> list[Item]:
        """Return all owners that exist, the controlling one among them."""
        references = elements(item.body, "metadata", "ownerReferences")
        found = [self._referred(item, one) for one in references]
        return [one for one in found if one is not None]

    def _referred(self, item: Item, reference: JsonObject) -> Item | None:
        resource = self._catalogue.of_kind(text(reference, "kind"))
        if resource is None:
            return None
        namespace = item.namespace if resource.namespaced else ""
        owner = self.store.get(resource, (namespace, text(reference, "name")))
        return owner if owner is not None and owner.uid == text(reference, "uid") else None

    def root_of(self, item: Item) -> Item:
        """Return the topmost controlling owner, or the object itself."""
        owner = self.owner_of(item)
        return item if owner is None else self.root_of(owner)

    def create(self, resource: Resource, body: JsonObject, *, owner: Item) -> Item:
        """Create an object that the owner controls, in its namespace."""
        reference: JsonObject = {
            "apiVersion": owner.resource.api_version,
            "kind": owner.resource.kind,
            "name": owner.name,
            "uid": owner.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        owned = with_value(body, ("metadata", "ownerReferences"), to=[reference])
        return self._writer.create(Target(resource, owner.namespace), owned)

    def delete(self, item: Item, *, grace_seconds: int | None = None) -> None:
        """Delete an object, gracefully where its kind is."""
        target = Target(item.resource, item.namespace, item.name)
        self._writer.delete(target, DeleteOptions(grace_seconds=grace_seconds))

    def scale(self, item: Item, replicas: int) -> None:
        """Set ``spec.replicas`` of a child."""
        if number(item.body, "spec", "replicas") != replicas:
            self.amend(item, {"spec": {"replicas": replicas}})

    def amend(self, item: Item, patch: JsonObject) -> None:
        """Apply a merge patch to a child."""
        target = Target(item.resource, item.namespace, item.name)
        self._writer.patch(target, Patch(MERGE, patch))

    def annotate(self, item: Item, annotations: dict[str, str]) -> None:
        """Add annotations to a child; what it has beside them stays."""
        newest = self.store.get(item.resource, item.key)
        if newest is not None:
            path = ("metadata", "annotations")
            merged = texts(newest.body, *path) | annotations
            if merged != texts(newest.body, *path):
                self.store.put(item.resource, with_value(newest.body, path, to=merged))

    def report(self, item: Item, status: Mapping[str, object]) -> None:
        """Write the status of an object if it says something new."""
        newest = self.store.get(item.resource, item.key)
        if newest is not None and newest.uid == item.uid:
            self.store.put(item.resource, with_value(newest.body, ("status",), to=dict(status)))

    def condition(self, item: Item, kind: str, *, holds: bool, reason: str = "") -> JsonObject:
        """Return a status condition; its transition time stays while its status stays."""
        moment = rfc3339(self.moments.now())
        status = "True" if holds else "False"
        for one in elements(item.body, "status", "conditions"):
            if text(one, "type") == kind and text(one, "status") == status:
                moment = text(one, "lastTransitionTime") or moment
        condition: JsonObject = {"type": kind, "status": status, "lastTransitionTime": moment}
        return condition | {"reason": reason} if reason else condition


def controller_of(item: Item) -> JsonObject:
    """Return the ownerReference with ``controller: true``, or an empty object."""
    references = elements(item.body, "metadata", "ownerReferences")
    return next((one for one in references if one.get("controller") is True), {})


def is_terminating(item: Item) -> bool:
    """Tell whether the object is being deleted."""
    return bool(text(item.body, "metadata", "deletionTimestamp"))


def is_ready(item: Item) -> bool:
    """Tell whether a pod's Ready condition is True."""
    return any(
        text(one, "type") == "Ready" and text(one, "status") == "True"
        for one in elements(item.body, "status", "conditions")
    )


def is_live(pod: Item) -> bool:
    """Tell whether a pod counts: neither finished nor being deleted."""
    return not is_terminating(pod) and text(pod.body, "status", "phase") not in _FINISHED


def live_pods(tools: Toolbox, owner: Item) -> list[Item]:
    """Return the pods that an owner controls and that count."""
    return [one for one in tools.children(owner, PODS) if is_live(one)]


def counts(**values: int) -> JsonObject:
    """Return counters as the API server prints them: zero is left out."""
    return {key: value for key, value in values.items() if value}


def generation(item: Item) -> int:
    """Return ``metadata.generation``."""
    return number(item.body, "metadata", "generation")


def template_of(item: Item) -> tuple[JsonObject, JsonObject]:
    """Return metadata and spec of an object's pod template, without what may not be copied."""
    metadata = child(item.body, "spec", "template", "metadata")
    spec = child(item.body, "spec", "template", "spec")
    kept = {"labels", "annotations"}
    return (
        {k: v for k, v in metadata.items() if k in kept} if isinstance(metadata, dict) else {},
        dict(spec) if isinstance(spec, dict) else {},
    )

"""The rules of writing: what the API server does to an object between request and storage.

Imitates, for every kind: uid, creationTimestamp, generateName; resourceVersion as precondition
(409 Conflict); a uid that differs in a patch (422 Invalid, unless a stale resourceVersion made it
a 409 first); status isolation; generation, raised by changes of desired state only; finalizers and
graceful deletion; CRDs that come into force when they are created. Called by `api` and `cluster`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.sim.defaults import defaulted
from gpu_pruner.sim.failures import already_exists, bad_request, conflict, invalid, not_found
from gpu_pruner.sim.identity import Identities
from gpu_pruner.sim.patches import Patch, patched
from gpu_pruner.sim.resources import (
    CRDS,
    EVENTS,
    NAMESPACES,
    PODS,
    Catalogue,
    Resource,
    resources_of_crd,
)
from gpu_pruner.sim.schema import admitted
from gpu_pruner.sim.store import Item, Key, Store
from gpu_pruner.sim.tree import JsonObject, child, mapping, text, texts, with_value, without

_SERVER_OWNED = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "selfLink")
_GENERATED_LENGTH = 5


@dataclass(frozen=True, slots=True)
class Target:
    """Which object a request is about."""

    resource: Resource
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """Return namespace and name."""
        return (self.namespace if self.resource.namespaced else "", self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What a DELETE may ask for."""

    grace_seconds: int | None = None
    uid: str = ""
    version: str = ""
    orphan: bool = False


class Writer:
    """Creates, replaces, patches and deletes objects as an API server would."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        *,
        now: Callable[[], Timestamp],
        identities: Identities,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._now = now
        self._identities = identities

    def create(self, target: Target, body: JsonObject, *, dry_run: bool = False) -> Item:
        """Store a new object.

        Raises:
            ApiFailure: 400, 404 (namespace), 409 (name taken) or 422.
        """
        resource = target.resource
        metadata = mapping(body, "metadata")
        name = text(metadata, "name")
        if not name and text(metadata, "generateName"):
            suffix = self._identities.word(_GENERATED_LENGTH)
            name = f"{text(metadata, 'generateName')}{suffix}"
        self._check_new(replace(target, name=name), body)
        fresh = {key: value for key, value in metadata.items() if key not in _SERVER_OWNED}
        fresh |= {"name": name, "uid": self._identities.uid()}
        fresh["creationTimestamp"] = rfc3339(self._now())
        if resource.namespaced:
            fresh["namespace"] = target.namespace
        if "spec" in body and resource is not PODS:
            fresh["generation"] = 1
        wanted = with_value(defaulted(resource, body), ("metadata",), to=fresh)
        if resource.has_status:
            wanted = without(wanted, ("status",))
        if resource in (PODS, NAMESPACES):
            phase = "Pending" if resource is PODS else "Active"
            wanted = with_value(wanted, ("status",), to={"phase": phase})
        return self._commit(target, admitted(resource, wanted), dry_run=dry_run)

    def _check_new(self, target: Target, body: JsonObject) -> None:
        resource, name = target.resource, target.name
        if not name:
            raise invalid(resource, "", field="metadata.name", why="it or generateName is needed")
        if text(body, "metadata", "resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        stated = text(body, "metadata", "namespace")
        if stated and stated != target.namespace:
            raise bad_request("the namespace of the object does not match that of the request")
        if resource.namespaced and not self._store.get(NAMESPACES, ("", target.namespace)):
            raise not_found(NAMESPACES, target.namespace)
        if resource is EVENTS and text(body, "involvedObject", "namespace") != target.namespace:
            field = "involvedObject.namespace"
            raise invalid(resource, name, field=field, why="is not the namespace of the Event")
        if self._store.get(resource, target.key):
            raise already_exists(resource, name)

    def patch(self, target: Target, patch: Patch, *, dry_run: bool = False) -> Item:
        """Apply a patch to the stored object (or to its status, by the subresource).

        Raises:
            ApiFailure: 400, 404, 409 (resourceVersion), 415 or 422 (uid among others).
        """
        before = self.existing(target)
        after = patched(before.body, patch, resource=target.resource)
        return self._update(target, before, after=after, dry_run=dry_run)

    def replace(self, target: Target, body: JsonObject, *, dry_run: bool = False) -> Item:
        """Replace the stored object (or its status, by the subresource): PUT.

        Raises:
            ApiFailure: 400, 404, 409 (resourceVersion or uid) or 422.
        """
        before = self.existing(target)
        if text(body, "metadata", "name") != target.name:
            raise bad_request("the name of the object does not match the name in the URL")
        uid = text(body, "metadata", "uid")
        if uid and uid != before.uid:
            raise conflict(target.resource, target.name, why="the uid is another object's")
        return self._update(target, before, after=body, dry_run=dry_run)

    def _update(self, target: Target, before: Item, *, after: JsonObject, dry_run: bool) -> Item:
        resource = target.resource
        version = text(after, "metadata", "resourceVersion")
        if version and version != str(before.version):
            why = "the object has been modified; read it again and decide again"
            raise conflict(resource, target.name, why=why)
        for field in ("uid", "name", "namespace"):
            stated = text(after, "metadata", field)
            if stated and stated != text(before.body, "metadata", field):
                raise invalid(resource, target.name, field=f"metadata.{field}", why="is immutable")
        owned = {
            key: value
            for key, value in mapping(before.body, "metadata").items()
            if key in {*_SERVER_OWNED, "name", "namespace", "resourceVersion"}
        }
        metadata = {
            key: value
            for key, value in mapping(after, "metadata").items()
            if key not in _SERVER_OWNED
        }
        wanted = _isolated(
            target, with_value(after, ("metadata",), to=metadata | owned), before=before.body
        )
        if _desired(wanted, resource) != _desired(before.body, resource):
            generation = child(before.body, "metadata", "generation")
            if isinstance(generation, int):
                wanted = with_value(wanted, ("metadata", "generation"), to=generation + 1)
        return self._commit(target, admitted(resource, wanted, before=before.body), dry_run=dry_run)

    def delete(self, target: Target, options: DeleteOptions, *, dry_run: bool = False) -> Item:
        """Delete an object: at once, or by marking it where a kubelet or finalizer must agree.

        Raises:
            ApiFailure: 404, or 409 where a precondition fails.
        """
        item = self.existing(target)
        if options.uid and options.uid != item.uid:
            raise conflict(target.resource, target.name, why="the uid is another object's")
        if options.version and options.version != str(item.version):
            raise conflict(target.resource, target.name, why="the resourceVersion has changed")
        if dry_run:
            return item
        if options.orphan:
            self._orphan(item)
        grace = options.grace_seconds
        runs = target.resource is PODS and bool(text(item.body, "spec", "nodeName"))
        if (runs and grace != 0) or child(item.body, "metadata", "finalizers"):
            return self._mark_deleted(item, grace)
        if target.resource is CRDS:
            self._retire(item)
        return self._store.remove(item)

    def _mark_deleted(self, item: Item, grace: int | None) -> Item:
        if text(item.body, "metadata", "deletionTimestamp"):
            return item
        seconds = 30 if grace is None else grace
        metadata = mapping(item.body, "metadata") | {
            "deletionTimestamp": rfc3339(self._now() + seconds),
            "deletionGracePeriodSeconds": seconds,
        }
        return self._store.put(item.resource, with_value(item.body, ("metadata",), to=metadata))

    def _orphan(self, item: Item) -> None:
        for dependent in self._store.dependents(item.uid):
            body = without(dependent.body, ("metadata", "ownerReferences"))
            self._store.put(dependent.resource, body)

    def existing(self, target: Target) -> Item:
        """Return the stored object of a target.

        Raises:
            ApiFailure: 404.
        """
        item = self._store.get(target.resource, target.key)
        if item is None:
            raise not_found(target.resource, target.name)
        return item

    def _commit(self, target: Target, body: JsonObject, *, dry_run: bool) -> Item:
        if dry_run:
            return self._store.preview(target.resource, body)
        item = self._store.put(target.resource, body)
        if target.resource is CRDS:
            return self._establish(item)
        is_marked = bool(text(body, "metadata", "deletionTimestamp"))
        if is_marked and not child(body, "metadata", "finalizers") and item.resource is not PODS:
            return self._store.remove(item)
        return item

    def _establish(self, item: Item) -> Item:
        for resource in resources_of_crd(item.body):
            self._catalogue.add(resource)
        moment = rfc3339(self._now())
        conditions = [
            {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": moment}
            for kind, reason in (("NamesAccepted", "NoConflicts"), ("Established", "InitialNames"))
        ]
        status: JsonObject = {
            "acceptedNames": mapping(item.body, "spec", "names"),
            "conditions": conditions,
        }
        if child(item.body, "status", "conditions"):
            return item
        return self._store.put(CRDS, with_value(item.body, ("status",), to=status))

    def _retire(self, item: Item) -> None:
        group = text(item.body, "spec", "group")
        plural = text(item.body, "spec", "names", "plural")
        for resource in resources_of_crd(item.body):
            for one in self._store.all(resource):
                self._store.remove(one)
        self._catalogue.remove_all(group, plural)


def _isolated(target: Target, after: JsonObject, *, before: JsonObject) -> JsonObject:
    """Keep the half of the object that this endpoint may not change."""
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


def _desired(body: JsonObject, resource: Resource) -> JsonObject:
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

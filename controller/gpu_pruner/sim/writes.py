"""The rules of writing: what the API server does to an object between request and storage.

Imitates, for every kind: uid, creationTimestamp, generateName; resourceVersion as precondition
(409 Conflict); a uid that differs in a patch (422 Invalid, unless a stale resourceVersion made it
a 409 first); status isolation; generation, raised by changes of desired state only; field managers;
CRDs that come into force when they are created. Called by `api`, `cluster` and the controllers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.sim.defaults import defaulted
from gpu_pruner.sim.deletes import DeleteOptions, Deletes, has_let_go
from gpu_pruner.sim.failures import (
    already_exists,
    bad_request,
    conflict,
    create_with_version,
    invalid,
    mistyped,
    not_found,
)
from gpu_pruner.sim.halves import desired_of, isolated
from gpu_pruner.sim.identity import Identities
from gpu_pruner.sim.managers import Manager, managed_fields
from gpu_pruner.sim.metadata import check_metadata, mistyped_metadata, without_empty
from gpu_pruner.sim.patches import Patch, patched
from gpu_pruner.sim.resources import (
    CRDS,
    EVENTS,
    NAMESPACES,
    PODS,
    Catalogue,
    resources_of_crd,
)
from gpu_pruner.sim.schema import admitted
from gpu_pruner.sim.store import Item, Store
from gpu_pruner.sim.targets import Target
from gpu_pruner.sim.tree import JsonObject, child, mapping, text, with_value, without

_SERVER_OWNED = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "selfLink")
_GENERATED_LENGTH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a client wants something written."""

    dry_run: bool = False
    manager: str = ""
    """Whose the changed fields are; empty: nobody's, as for the simulated controllers."""
    strict: bool = False
    """Refuse unknown fields."""
    unknown: list[str] = field(default_factory=list)
    """Gets the paths of unknown fields, which are dropped."""


_PLAIN = WriteOptions()


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
        self._deletes = Deletes(store, catalogue, now=now)

    def create(self, target: Target, body: JsonObject, options: WriteOptions = _PLAIN) -> Item:
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
        target = replace(target, name=name)
        self._check_new(target, body)
        fresh = {key: value for key, value in metadata.items() if key not in _SERVER_OWNED}
        fresh |= {"name": name, "uid": self._identities.uid()}
        fresh["creationTimestamp"] = rfc3339(self._now())
        if resource.namespaced:
            fresh["namespace"] = target.namespace
        if resource.has_generation:
            fresh["generation"] = 1
        wanted = with_value(defaulted(resource, body), ("metadata",), to=fresh)
        if resource.has_status:
            wanted = without(wanted, ("status",))
        if resource in (PODS, NAMESPACES):
            phase = "Pending" if resource is PODS else "Active"
            wanted = with_value(wanted, ("status",), to={"phase": phase})
        return self._commit(target, wanted, None, options=options)

    def _check_new(self, target: Target, body: JsonObject) -> None:
        resource, name = target.resource, target.name
        if text(body, "metadata", "resourceVersion"):
            raise create_with_version()
        stated = text(body, "metadata", "namespace")
        if stated and stated != target.namespace:
            raise bad_request("the namespace of the object does not match that of the request")
        if not name:
            why, cause = "name or generateName is required", "FieldValueRequired"
            raise invalid(resource, "", field="metadata.name", why=why, cause=cause)
        if resource.namespaced and not self._store.get(NAMESPACES, ("", target.namespace)):
            raise not_found(NAMESPACES, target.namespace)
        if resource is EVENTS and text(body, "involvedObject", "namespace") != target.namespace:
            where = "involvedObject.namespace"
            raise invalid(resource, name, field=where, why="is not the namespace of the Event")
        if self._store.get(resource, target.key):
            raise already_exists(resource, name)

    def patch(self, target: Target, patch: Patch, options: WriteOptions = _PLAIN) -> Item:
        """Apply a patch to the stored object (or to its status, by the subresource).

        Raises:
            ApiFailure: 400, 404, 409 (resourceVersion), 415 or 422 (uid among others).
        """
        before = self.existing(target)
        after = patched(before.body, patch, resource=target.resource)
        for stated in ("name", "namespace"):
            if text(after, "metadata", stated) != text(before.body, "metadata", stated):
                raise bad_request(f"the {stated} of the object does not match that of the request")
        return self._update(target, before, after=after, options=options, is_patch=True)

    def replace(self, target: Target, body: JsonObject, options: WriteOptions = _PLAIN) -> Item:
        """Replace the stored object (or its status, by the subresource): PUT.

        Raises:
            ApiFailure: 400, 404, 409 (resourceVersion or uid) or 422.
        """
        if text(body, "metadata", "name") != target.name:
            raise bad_request("the name of the object does not match the name in the URL")
        before = self.existing(target)
        uid, version = (text(body, "metadata", key) for key in ("uid", "resourceVersion"))
        if uid and uid != before.uid:
            raise conflict(target.resource, target.name, why="the uid is another object's")
        if not version and not target.resource.unconditional:
            where, why = "metadata.resourceVersion", "must be specified for an update"
            raise invalid(target.resource, target.name, field=where, why=why)
        return self._update(target, before, after=body, options=options)

    def _update(
        self,
        target: Target,
        before: Item,
        *,
        after: JsonObject,
        options: WriteOptions,
        is_patch: bool = False,
    ) -> Item:
        resource = target.resource
        version, uid = (text(after, "metadata", key) for key in ("resourceVersion", "uid"))
        if version and version != str(before.version):
            why = "the object has been modified; read it again and decide again"
            raise conflict(resource, target.name, why=why)
        if uid and uid != before.uid:
            raise invalid(resource, target.name, field="metadata.uid", why="field is immutable")
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
        wanted = isolated(
            target, with_value(after, ("metadata",), to=metadata | owned), before=before.body
        )
        wanted = defaulted(resource, wanted)
        return self._commit(target, wanted, before, options=options, is_patch=is_patch)

    def _commit(
        self,
        target: Target,
        body: JsonObject,
        before: Item | None,
        *,
        options: WriteOptions,
        is_patch: bool = False,
    ) -> Item:
        """Check what is to be stored, and store it."""
        resource = target.resource
        if path := mistyped_metadata(mapping(body, "metadata")):
            raise mistyped(resource, f"{path} is no string", is_patch=is_patch)
        metadata = without_empty(mapping(body, "metadata"))
        check_metadata(resource, metadata)
        old = before.body if before else None
        wanted = admitted(
            resource,
            with_value(body, ("metadata",), to=metadata),
            before=old,
            is_patch=is_patch,
            unknown=options.unknown,
        )
        if options.strict and options.unknown:
            raise mistyped(resource, f'unknown field "{options.unknown[0]}"', is_patch=is_patch)
        generation = child(old, "metadata", "generation")
        if (
            old
            and isinstance(generation, int)
            and desired_of(wanted, resource) != desired_of(old, resource)
        ):
            wanted = with_value(wanted, ("metadata", "generation"), to=generation + 1)
        wanted = self._managed(target, wanted, old, manager=options.manager)
        if options.dry_run:
            return self._store.preview(resource, wanted)
        return self._settled(self._store.put(resource, wanted))

    def _managed(
        self, target: Target, body: JsonObject, before: JsonObject | None, *, manager: str
    ) -> JsonObject:
        """Note whose the fields are. A list with an empty entry wipes what was known."""
        place = ("metadata", "managedFields")
        known = child(before, *place)
        if child(body, *place) == [{}]:
            return without(body, place)
        if manager:
            who = Manager(
                name=manager,
                api_version=target.resource.api_version,
                subresource=target.subresource,
            )
            known = managed_fields(before or {}, body, manager=who, moment=rfc3339(self._now()))
        return with_value(body, place, to=known) if known else without(body, place)

    def _settled(self, item: Item) -> Item:
        """Let a CRD come into force, and let go what nothing holds back any more."""
        if item.resource is CRDS:
            return self._establish(item)
        if has_let_go(item.body) and item.resource is not PODS:
            return self._store.remove(item)
        return item

    def delete(
        self, target: Target, options: DeleteOptions, *, dry_run: bool = False
    ) -> tuple[Item, bool]:
        """Delete an object: at once, or by marking it where a kubelet or finalizer must agree.

        Returns:
            Its last state, and whether it is gone (in a dry run: would be).

        Raises:
            ApiFailure: 404, or 409 where a precondition fails.
        """
        return self._deletes.delete(self.existing(target), options, dry_run=dry_run)

    def existing(self, target: Target) -> Item:
        """Return the stored object of a target.

        Raises:
            ApiFailure: 404.
        """
        item = self._store.get(target.resource, target.key)
        if item is None:
            raise not_found(target.resource, target.name)
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

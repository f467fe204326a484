"""Which groups, versions and kinds there are: what ``kubectl`` asks before anything else.

Imitates ``/api``, ``/apis``, ``/api/v1``, ``/apis/<group>/<version>`` and ``/version``.
Called by `serving`.
"""

from __future__ import annotations

from gpu_pruner.sim.resources import Catalogue, Resource
from gpu_pruner.sim.tree import JsonObject

_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
VERSION: JsonObject = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0-simulated",
    "platform": "linux/amd64",
}


def discover(catalogue: Catalogue, path: str) -> JsonObject | None:
    """Return the discovery document of a path, or None where there is none."""
    match path.strip("/").split("/"):
        case ["version"]:
            document: JsonObject | None = VERSION
        case ["api"]:
            document = {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            groups = sorted({one.group for one in catalogue if one.group})
            listed = [_group(catalogue, one) for one in groups]
            document = {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if any(one.group == group for one in catalogue):
            document = {"kind": "APIGroup", "apiVersion": "v1"} | _group(catalogue, group)
        case ["api", version]:
            document = _resources(catalogue, group="", version=version)
        case ["apis", group, version]:
            document = _resources(catalogue, group=group, version=version)
        case _:
            document = None
    return document


def _group(catalogue: Catalogue, name: str) -> JsonObject:
    versions = sorted({one.version for one in catalogue if one.group == name})
    listed = [{"groupVersion": f"{name}/{one}", "version": one} for one in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(catalogue: Catalogue, *, group: str, version: str) -> JsonObject | None:
    found = [one for one in catalogue if (one.group, one.version) == (group, version)]
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": [entry for one in found for entry in _entries(one)],
    }


def _entries(resource: Resource) -> list[JsonObject]:
    entry: JsonObject = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["create"] if resource.create_only else list(_VERBS),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    entries = [entry]
    for name, present in (("status", resource.has_status), ("scale", resource.scale is not None)):
        if present:
            sub: JsonObject = {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": "Scale" if name == "scale" else resource.kind,
                "verbs": ["get", "patch", "update"],
            }
            if name == "scale":
                sub |= {"group": "autoscaling", "version": "v1"}
            entries.append(sub)
    return entries

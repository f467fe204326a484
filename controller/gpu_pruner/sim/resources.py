"""Which kinds the simulated API server serves: built-in ones, and those that a CRD brings.

Imitates discovery: a group, version and plural that nobody registered does not exist, and a
path under it answers 404 as on a real server. Called by `api`, `writes` and `controllers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, number, text, texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A printer column of a CRD."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resource:
    """One served resource."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    has_status: bool = True
    """Has a status subresource: the main resource then ignores ``status``, and the reverse."""
    has_scale: bool = False
    custom: bool = False
    """Defined by a CRD: no strategic merge patch, list items carry their kind."""
    create_only: bool = False
    """A review: answers a POST and is not stored."""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    schema: JsonObject | None = None
    """``openAPIV3Schema`` of a CRD."""

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Return ``plural.group``: how the server's messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def key(self) -> tuple[str, str]:
        """Return group and plural: versions of one kind share their objects."""
        return (self.group, self.plural)


def _core(plural: str, kind: str, *, short: str, has_status: bool = False) -> Resource:
    return Resource(
        group="",
        version="v1",
        plural=plural,
        kind=kind,
        namespaced=kind not in {"Node", "Namespace"},
        has_status=has_status,
        singular=kind.lower(),
        short_names=(short,),
    )


def _apps(plural: str, kind: str, *, has_scale: bool, short: str) -> Resource:
    return Resource(
        group="apps",
        version="v1",
        plural=plural,
        kind=kind,
        has_scale=has_scale,
        singular=kind.lower(),
        short_names=(short,),
    )


PODS = _core("pods", "Pod", short="po", has_status=True)
NODES = _core("nodes", "Node", short="no", has_status=True)
NAMESPACES = _core("namespaces", "Namespace", short="ns", has_status=True)
EVENTS = _core("events", "Event", short="ev")
DEPLOYMENTS = _apps("deployments", "Deployment", has_scale=True, short="deploy")
REPLICASETS = _apps("replicasets", "ReplicaSet", has_scale=True, short="rs")
STATEFULSETS = _apps("statefulsets", "StatefulSet", has_scale=True, short="sts")
DAEMONSETS = _apps("daemonsets", "DaemonSet", has_scale=False, short="ds")
NOTEBOOKS = Resource(
    group="kubeflow.org",
    version="v1",
    plural="notebooks",
    kind="Notebook",
    custom=True,
    singular="notebook",
)
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    singular="customresourcedefinition",
    short_names=("crd",),
)
LEASES = Resource(
    group="coordination.k8s.io", version="v1", plural="leases", kind="Lease", has_status=False
)
ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
    has_status=False,
    create_only=True,
)
BUILT_IN = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    _core("configmaps", "ConfigMap", short="cm"),
    _core("services", "Service", short="svc", has_status=True),
    _core("serviceaccounts", "ServiceAccount", short="sa"),
    DEPLOYMENTS,
    REPLICASETS,
    STATEFULSETS,
    DAEMONSETS,
    CRDS,
    LEASES,
    ACCESS_REVIEWS,
)


class Catalogue:
    """The resources that are served now."""

    def __init__(self, resources: tuple[Resource, ...] = BUILT_IN) -> None:
        self._served: dict[tuple[str, str, str], Resource] = {}
        for resource in resources:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Serve a resource from now on."""
        self._served[resource.group, resource.version, resource.plural] = resource

    def remove_all(self, group: str, plural: str) -> None:
        """Stop serving every version of a resource."""
        for key in [one for one in self._served if (one[0], one[2]) == (group, plural)]:
            del self._served[key]

    def find(self, *, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource of a path, or None where there is no such path."""
        return self._served.get((group, version, plural))

    def of_kind(self, kind: str) -> Resource | None:
        """Return the resource of a kind; names of kinds are unique here."""
        return next((one for one in self._served.values() if one.kind == kind), None)

    def __iter__(self) -> Iterator[Resource]:
        """Go through all resources, ordered by path."""
        return iter([self._served[key] for key in sorted(self._served)])


def resources_of_crd(crd: JsonObject) -> tuple[Resource, ...]:
    """Read the resources that a CustomResourceDefinition defines, one per served version."""
    names = mapping(crd, "spec", "names")
    kind = text(names, "kind")
    return tuple(
        Resource(
            group=text(crd, "spec", "group"),
            version=text(version, "name"),
            plural=text(names, "plural"),
            kind=kind,
            namespaced=text(crd, "spec", "scope") != "Cluster",
            has_status=child(version, "subresources", "status") is not None,
            custom=True,
            singular=text(names, "singular") or kind.lower(),
            short_names=_short_names(names),
            columns=tuple(_column(one) for one in elements(version, "additionalPrinterColumns")),
            schema=mapping(version, "schema", "openAPIV3Schema") or None,
        )
        for version in elements(crd, "spec", "versions")
        if child(version, "served") is not False
    )


def _short_names(names: JsonObject) -> tuple[str, ...]:
    found = names.get("shortNames")
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def _column(column: JsonObject) -> Column:
    strings = texts(column)
    return Column(
        name=strings.get("name", ""),
        json_path=strings.get("jsonPath", ""),
        type=strings.get("type", "string"),
        priority=number(column, "priority"),
    )

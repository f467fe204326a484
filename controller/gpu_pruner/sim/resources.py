"""Which kinds the simulated API server serves: built-in ones, and those that a CRD brings.

Imitates discovery: a group, version and plural that nobody registered does not exist, and a
path under it answers 404 as on a real server. Called by `api`, `writes` and `controllers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpu_pruner.sim.builtin_schemas import CONFIG_MAP, LEASE, SIZED
from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, number, strings, text, texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A printer column of a CRD."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePaths:
    """Where the scale subresource finds what it shows."""

    desired: tuple[str, ...] = ("spec", "replicas")
    observed: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ()
    """Of a custom kind: a string. Built-in kinds have ``spec.selector.matchLabels``."""


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
    scale: ScalePaths | None = None
    """Has a scale subresource, and where it finds what it shows."""
    has_generation: bool = False
    """Counts the changes of what is desired."""
    upserts: bool = False
    """A PUT of an object that is not there creates it."""
    unconditional: bool = True
    """A PUT need not say which version it replaces."""
    custom: bool = False
    """Defined by a CRD: no strategic merge patch, list items carry their kind."""
    create_only: bool = False
    """A review: answers a POST and is not stored."""
    token_requests: bool = False
    """Has a token subresource."""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    schema: JsonObject | None = None
    """``openAPIV3Schema`` of a CRD, or what is checked of a built-in kind."""

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
        scale=ScalePaths() if has_scale else None,
        has_generation=True,
        schema=SIZED if has_scale else None,
        singular=kind.lower(),
        short_names=(short,),
    )


PODS = _core("pods", "Pod", short="po", has_status=True)
NODES = _core("nodes", "Node", short="no", has_status=True)
NAMESPACES = _core("namespaces", "Namespace", short="ns", has_status=True)
EVENTS = replace(_core("events", "Event", short="ev"), upserts=True)
CONFIG_MAPS = replace(_core("configmaps", "ConfigMap", short="cm"), schema=CONFIG_MAP)
SERVICE_ACCOUNTS = replace(
    _core("serviceaccounts", "ServiceAccount", short="sa"), token_requests=True
)
DEPLOYMENTS = _apps("deployments", "Deployment", has_scale=True, short="deploy")
REPLICASETS = _apps("replicasets", "ReplicaSet", has_scale=True, short="rs")
STATEFULSETS = _apps("statefulsets", "StatefulSet", has_scale=True, short="sts")
DAEMONSETS = _apps("daemonsets", "DaemonSet", has_scale=False, short="ds")


def _custom(path: str, kind: str, *, short: str = "", scale: ScalePaths | None = None) -> Resource:
    """Return a kind that others define, without its schema: ``<group>/<version>/<plural>``."""
    group, version, plural = path.split("/")
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        has_generation=True,
        unconditional=False,
        custom=True,
        scale=scale,
        singular=kind.lower(),
        short_names=(short,) if short else (),
    )


NOTEBOOKS = _custom("kubeflow.org/v1/notebooks", "Notebook")
LEADER_WORKER_SETS = _custom(
    "leaderworkerset.x-k8s.io/v1/leaderworkersets",
    "LeaderWorkerSet",
    short="lws",
    scale=ScalePaths(selector=("status", "hpaPodSelector")),
)
INFERENCE_SERVICES = _custom(
    "serving.kserve.io/v1beta1/inferenceservices", "InferenceService", short="isvc"
)
OTHERS_KINDS = (NOTEBOOKS, LEADER_WORKER_SETS, INFERENCE_SERVICES)
"""Kinds that others define and that a simulated cluster has installed."""
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    has_generation=True,
    singular="customresourcedefinition",
    short_names=("crd",),
)
LEASES = Resource(
    group="coordination.k8s.io",
    version="v1",
    plural="leases",
    kind="Lease",
    has_status=False,
    upserts=True,
    unconditional=False,
    schema=LEASE,
)


def _review(group: str, kind: str) -> Resource:
    return Resource(
        group=group,
        version="v1",
        plural=f"{kind.lower()}s",
        kind=kind,
        namespaced=False,
        has_status=False,
        create_only=True,
    )


OWN_ACCESS_REVIEWS = _review("authorization.k8s.io", "SelfSubjectAccessReview")
ACCESS_REVIEWS = _review("authorization.k8s.io", "SubjectAccessReview")
TOKEN_REVIEWS = _review("authentication.k8s.io", "TokenReview")
OWN_REVIEWS = _review("authentication.k8s.io", "SelfSubjectReview")
BUILT_IN = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    CONFIG_MAPS,
    _core("services", "Service", short="svc", has_status=True),
    SERVICE_ACCOUNTS,
    DEPLOYMENTS,
    REPLICASETS,
    STATEFULSETS,
    DAEMONSETS,
    CRDS,
    LEASES,
    OWN_ACCESS_REVIEWS,
    ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    OWN_REVIEWS,
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
            has_generation=True,
            unconditional=False,
            scale=_scale_paths(mapping(version, "subresources", "scale")),
            custom=True,
            singular=text(names, "singular") or kind.lower(),
            short_names=tuple(strings(names, "shortNames")),
            columns=tuple(_column(one) for one in elements(version, "additionalPrinterColumns")),
            schema=mapping(version, "schema", "openAPIV3Schema") or None,
        )
        for version in elements(crd, "spec", "versions")
        if child(version, "served") is not False
    )


def _scale_paths(scale: JsonObject) -> ScalePaths | None:
    if not scale:
        return None
    return ScalePaths(
        desired=_path(scale, "specReplicasPath"),
        observed=_path(scale, "statusReplicasPath"),
        selector=_path(scale, "labelSelectorPath"),
    )


def _path(scale: JsonObject, key: str) -> tuple[str, ...]:
    return tuple(one for one in text(scale, key).split(".") if one)


def _column(column: JsonObject) -> Column:
    strings = texts(column)
    return Column(
        name=strings.get("name", ""),
        json_path=strings.get("jsonPath", ""),
        type=strings.get("type", "string"),
        priority=number(column, "priority"),
    )

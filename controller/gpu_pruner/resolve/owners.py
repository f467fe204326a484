"""From a pod to the object that owns it in the end.

It answers which root a pod belongs to, and why that root could not be paused where the walk finds
such a reason. It follows only the owner reference with ``controller: true``, by uid, group and
kind; it never trusts a label. `assemble` calls it once per pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from gpu_pruner.model import jupyterhub
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import OwnerObject, OwnerRef, PodRecord, RootRef

_POD = ("", "Pod")

_KNATIVE = "serving.knative.dev"
_KSERVE = "serving.kserve.io"

_OWNED: Mapping[tuple[str, str], frozenset[tuple[str, str]]] = {
    ("apps", "ReplicaSet"): frozenset({_POD}),
    ("apps", "Deployment"): frozenset({("apps", "ReplicaSet")}),
    ("apps", "StatefulSet"): frozenset({_POD}),
    ("argoproj.io", "Rollout"): frozenset({("apps", "ReplicaSet")}),
    # The workers of a group are a StatefulSet that its leader owns, which is a Pod.
    _POD: frozenset({("apps", "StatefulSet")}),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): frozenset({("apps", "StatefulSet")}),
    ("kubeflow.org", "Notebook"): frozenset({("apps", "StatefulSet")}),
    ("kubeflow.org", "Workspace"): frozenset({("apps", "StatefulSet")}),
    (_KNATIVE, "Revision"): frozenset({("apps", "Deployment")}),
    (_KNATIVE, "Configuration"): frozenset({(_KNATIVE, "Revision")}),
    (_KNATIVE, "Service"): frozenset({(_KNATIVE, "Configuration")}),
    (_KSERVE, "InferenceService"): frozenset({("apps", "Deployment"), (_KNATIVE, "Service")}),
    (_KSERVE, "LLMInferenceService"): frozenset(
        {("apps", "Deployment"), ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")}
    ),
    ("batch", "Job"): frozenset({_POD}),
    ("jobset.x-k8s.io", "JobSet"): frozenset({("batch", "Job")}),
    ("trainer.kubeflow.org", "TrainJob"): frozenset({("jobset.x-k8s.io", "JobSet")}),
    ("kubeflow.org", "PyTorchJob"): frozenset({_POD}),
    ("ray.io", "RayCluster"): frozenset({_POD}),
    (jupyterhub.GROUP, jupyterhub.KIND): frozenset({_POD}),
}
"""What the controller of each watched kind makes. Anybody can write a reference into an object of
theirs; one that no controller writes leads nowhere."""

Made: TypeAlias = Mapping[tuple[str, str], frozenset[tuple[str, str]]]
"""By group and kind: what the controller of a kind makes."""

_NOTHING_CUSTOM: Made = MappingProxyType({})

_HIGHEST = 8
"""Most owners above a pod; the longest chain that controllers make has six. References that people
wrote may go in a circle."""

WATCHED: frozenset[tuple[str, str]] = frozenset(_OWNED)
"""Group and kind of everything that `ClusterView.owners` can hold."""

PAUSABLE: frozenset[tuple[str, str]] = WATCHED - {
    _POD,
    (_KNATIVE, "Revision"),
    (_KNATIVE, "Configuration"),
    (_KNATIVE, "Service"),
}
"""Group and kind of the roots for which `act` has a lever."""

_DAEMON_SET = ("apps", "DaemonSet")


@dataclass(frozen=True, slots=True)
class Root:
    """Where a walk ended."""

    ref: RootRef
    owner: OwnerObject | None = None
    """The root object itself, where it can be read."""
    obstacle: Reason | None = None
    """Why the walk alone rules out a pause, or None."""


def root_of(
    pod: PodRecord,
    owners: Mapping[str, OwnerObject],
    *,
    missing_kinds: frozenset[str],
    custom: Made = _NOTHING_CUSTOM,
) -> Root:
    """Walk from a pod to its root.

    Args:
        pod: any pod.
        owners: by uid, as in `ClusterView`.
        missing_kinds: watched kinds whose API is absent or forbidden here.
        custom: kinds that only the settings know, as in `Rules.custom_kinds`.

    Returns:
        The topmost object that the walk reaches. An owner of a kind that we do not watch is the
        root, with an obstacle: its operator would put back what we change below it.
    """
    if pod.owner is None:
        bare = RootRef(kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
        return Root(bare, obstacle=Reason.BARE_POD)
    at, below, here = pod.owner, _POD, _ref(pod.owner, pod.namespace)
    for _ in range(_HIGHEST):
        kind = (at.group, at.kind)
        here, made = _ref(at, pod.namespace), _OWNED.get(kind) or custom.get(kind)
        if made is not None and below not in made:
            return Root(here, obstacle=Reason.UNKNOWN_OWNER)
        found = None if made is None else owners.get(at.uid)
        if found is None or not _is(found, at, namespace=pod.namespace):
            return Root(here, obstacle=_unread(at, missing_kinds, watched=made is not None))
        if found.owner is None:
            return Root(found.root, owner=found)
        at, below = found.owner, kind
    return Root(here, obstacle=Reason.UNKNOWN_OWNER)


def _ref(owner: OwnerRef, namespace: str) -> RootRef:
    return RootRef(
        kind=owner.kind, namespace=namespace, name=owner.name, group=owner.group, uid=owner.uid
    )


def _is(found: OwnerObject, wanted: OwnerRef, *, namespace: str) -> bool:
    """Whether an object is what the reference says: a uid alone can be claimed by anybody."""
    root = found.root
    return (root.group, root.kind, root.name, root.namespace) == (
        wanted.group,
        wanted.kind,
        wanted.name,
        namespace,
    )


def _unread(wanted: OwnerRef, missing_kinds: frozenset[str], *, watched: bool) -> Reason:
    """Why an owner is not among the ones that we hold."""
    if (wanted.group, wanted.kind) == _DAEMON_SET:
        return Reason.DAEMON_SET
    if watched and wanted.kind not in missing_kinds:
        return Reason.OWNER_MISSING
    return Reason.UNKNOWN_OWNER


def obstacle_of(root: Root, rules: Rules) -> Reason | None:
    """Return why a root can never be paused, or None where it can."""
    if root.obstacle is not None:
        return root.obstacle
    ref, owner = root.ref, root.owner
    kind = (ref.group, ref.kind)
    known = kind in PAUSABLE
    found = (
        (not known and kind not in rules.custom_kinds, Reason.NO_LEVER),
        (known and ref.kind not in rules.enabled_kinds, Reason.KIND_DISABLED),
        (owner is not None and owner.unstoppable, Reason.NO_LEVER),
        (owner is not None and owner.deletes_volumes, Reason.DELETES_VOLUMES),
    )
    return next((reason for stands, reason in found if stands), None)

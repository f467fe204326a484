"""The API resources that we read or write: where each lives in the API, in one list.

Answers which path a kind has. It never talks to anybody and knows no kind that we do not use.
Everything that names a resource to `kube.client` takes it from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from gpu_pruner.model import jupyterhub


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of object as the API server names it."""

    group: str
    """API group; empty for the core group."""
    version: str
    plural: str
    """Lower-case plural, as it stands in paths and in RBAC rules."""
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """Return the plural with its group, as ``kubectl`` accepts it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of a collection, an object or a subresource, percent-encoded.

        Args:
            namespace: empty for all namespaces, or for a kind that has none.
            name: empty for the collection.
            subresource: for example ``status``; only with a name.

        Raises:
            ValueError: the parts do not make a path, such as an object without its namespace.
        """
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name!r} needs a namespace")
        if subresource and not name:
            raise ValueError(f"{subresource!r} of a {self.kind} needs a name")
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = ["namespaces", namespace] if namespace and self.namespaced else []
        parts += [part for part in (self.plural, name, subresource) if part]
        if any(part in {".", ".."} for part in parts):
            raise ValueError(f"{name!r} in {namespace!r} is not a name")
        return "/".join([root, *(quote(part, safe="") for part in parts)])


PODS = Resource(group="", version="v1", plural="pods", kind="Pod")
NODES = Resource(group="", version="v1", plural="nodes", kind="Node", namespaced=False)
NAMESPACES = Resource(
    group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False
)
EVENTS = Resource(group="", version="v1", plural="events", kind="Event")
REPLICASETS = Resource(group="apps", version="v1", plural="replicasets", kind="ReplicaSet")
DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments", kind="Deployment")
STATEFULSETS = Resource(group="apps", version="v1", plural="statefulsets", kind="StatefulSet")
NOTEBOOKS = Resource(group="kubeflow.org", version="v1", plural="notebooks", kind="Notebook")
WORKSPACES = Resource(
    group="kubeflow.org", version="v1beta1", plural="workspaces", kind="Workspace"
)
LEADERWORKERSETS = Resource(
    group="leaderworkerset.x-k8s.io",
    version="v1",
    plural="leaderworkersets",
    kind="LeaderWorkerSet",
)
ROLLOUTS = Resource(group="argoproj.io", version="v1alpha1", plural="rollouts", kind="Rollout")
INFERENCESERVICES = Resource(
    group="serving.kserve.io",
    version="v1beta1",
    plural="inferenceservices",
    kind="InferenceService",
)
LLMINFERENCESERVICES = Resource(
    group="serving.kserve.io",
    version="v1alpha2",
    plural="llminferenceservices",
    kind="LLMInferenceService",
)
"""By the first version whose controller honours the stop annotation: KServe 0.17 serves it, and
0.16, which knows only v1alpha1, ignores the annotation."""
KNATIVE_SERVICES = Resource(
    group="serving.knative.dev", version="v1", plural="services", kind="Service"
)
KNATIVE_CONFIGURATIONS = Resource(
    group="serving.knative.dev", version="v1", plural="configurations", kind="Configuration"
)
KNATIVE_REVISIONS = Resource(
    group="serving.knative.dev", version="v1", plural="revisions", kind="Revision"
)
JOBS = Resource(group="batch", version="v1", plural="jobs", kind="Job")
JOBSETS = Resource(group="jobset.x-k8s.io", version="v1alpha2", plural="jobsets", kind="JobSet")
RAYCLUSTERS = Resource(group="ray.io", version="v1", plural="rayclusters", kind="RayCluster")
PYTORCHJOBS = Resource(group="kubeflow.org", version="v1", plural="pytorchjobs", kind="PyTorchJob")
TRAINJOBS = Resource(
    group="trainer.kubeflow.org", version="v1alpha1", plural="trainjobs", kind="TrainJob"
)
SCALEDOBJECTS = Resource(
    group="keda.sh", version="v1alpha1", plural="scaledobjects", kind="ScaledObject"
)
KUEUE_WORKLOADS = Resource(
    group="kueue.x-k8s.io", version="v1beta2", plural="workloads", kind="Workload"
)
"""By the version that Kueue stores since 0.15; releases before do not serve it."""
GPUWORKLOADS = Resource(
    group="gpu-pruner.io", version="v1alpha1", plural="gpuworkloads", kind="GPUWorkload"
)

JUPYTERSERVERS = Resource(
    group=jupyterhub.GROUP, version="v1", plural="jupyterservers", kind=jupyterhub.KIND
)
"""Only a name, for `spec.rootRef` and Events: the Hub has these servers, and no API server does."""

OWNERS: tuple[Resource, ...] = (
    REPLICASETS,
    DEPLOYMENTS,
    STATEFULSETS,
    LEADERWORKERSETS,
    ROLLOUTS,
    NOTEBOOKS,
    WORKSPACES,
    INFERENCESERVICES,
    LLMINFERENCESERVICES,
    KNATIVE_SERVICES,
    KNATIVE_CONFIGURATIONS,
    KNATIVE_REVISIONS,
    JOBS,
    JOBSETS,
    RAYCLUSTERS,
    PYTORCHJOBS,
    TRAINJOBS,
)
"""What can stand between a pod and its root, or be the root."""

GOVERNORS: tuple[Resource, ...] = (SCALEDOBJECTS, KUEUE_WORKLOADS)
"""What owns the size of a root, without owning the root."""
CONFIGMAPS = Resource(group="", version="v1", plural="configmaps", kind="ConfigMap")
LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease")
"""Both are used in our own namespace only, so that a Role names them and no ClusterRole."""

ALL: tuple[Resource, ...] = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    *OWNERS,
    *GOVERNORS,
    GPUWORKLOADS,
)
"""Every resource that the shipped ClusterRole has to name."""

_BY_KIND = {(one.group, one.kind): one for one in (*ALL, JUPYTERSERVERS)}


def resource_for(group: str, kind: str) -> Resource | None:
    """Return where a kind lives, by group and kind and never by kind alone; None if unknown."""
    return _BY_KIND.get((group, kind))


def group_of(api_version: str) -> str:
    """Return the group of an ``apiVersion``; empty for the core group (``v1``)."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""

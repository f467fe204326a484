"""One running object of every kind that can be paused, as people apply them.

Each is as small as the kind's own schema lets it be. They are data for tests against a real API
server; nothing here talks to one.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.model.workload import RootRef
from gpu_pruner.sim.tree import JsonObject, text

_LABELS: JsonObject = {"app": "server"}
_SERVERLESS = "an older InferenceService on Knative"


@dataclass(frozen=True)
class Example:
    """What stands in the cluster before the pause."""

    name: str
    bodies: tuple[JsonObject, ...]
    """The root first; where something governs its size, that comes last."""
    field: tuple[str, ...]
    """What of the lever object stops it: below the object, or an annotation's key alone."""
    stopped: object
    """Its value that means: no pods."""
    adopted: bool = False
    """The root is the owner of what governs it."""

    @property
    def root(self) -> RootRef:
        """Return the root, without namespace and uid."""
        body = self.bodies[0]
        group, _, _ = text(body, "apiVersion").rpartition("/")
        return RootRef(text(body, "kind"), "", text(body, "metadata", "name"), group)

    @property
    def lever(self) -> JsonObject:
        """Return the object that the pause goes to."""
        return self.bodies[-1]


def pod_spec(**more: object) -> JsonObject:
    """Return a pod with a GPU."""
    room: JsonObject = {"limits": {"nvidia.com/gpu": "1"}}
    container: JsonObject = {
        "name": "main",
        "image": "registry.example/server:1",
        "resources": room,
    }
    return {"containers": [container], **more}


def template(**more: object) -> JsonObject:
    """Return a pod template."""
    return {"metadata": {"labels": _LABELS}, "spec": pod_spec(**more)}


def thing(
    api_version: str,
    kind: str,
    spec: JsonObject,
    *,
    annotations: dict[str, str] | None = None,
    status: JsonObject | None = None,
) -> JsonObject:
    """Return an object named ``server``."""
    meta: JsonObject = {"name": "server", "annotations": annotations or {"team": "vision"}}
    body: JsonObject = {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}
    return body if status is None else body | {"status": status}


def _sized(**more: object) -> JsonObject:
    return {
        "replicas": 3,
        "selector": {"matchLabels": _LABELS},
        "template": template(),
        **more,
    }


DEPLOYMENT = thing("apps/v1", "Deployment", _sized())
REPLICA_SET = thing("apps/v1", "ReplicaSet", _sized())
STATEFUL_SET = thing("apps/v1", "StatefulSet", _sized(serviceName="server"))
LEADER_WORKER_SET = thing(
    "leaderworkerset.x-k8s.io/v1",
    "LeaderWorkerSet",
    {"replicas": 3, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template()}},
)
ROLLOUT = thing("argoproj.io/v1alpha1", "Rollout", _sized(strategy={"canary": {}}))
NOTEBOOK = thing("kubeflow.org/v1", "Notebook", {"template": {"spec": pod_spec()}})
WORKSPACE = thing(
    "kubeflow.org/v1beta1", "Workspace", {"kind": "jupyterlab", "podTemplate": {"options": {}}}
)


def _condition(kind: str, status: str) -> JsonObject:
    at = "2026-01-31T12:00:00Z"
    return {"type": kind, "status": status, "lastTransitionTime": at}


def inference_service(mode: str, *conditions: JsonObject, least: int | None = None) -> JsonObject:
    """Return an InferenceService with what its controller told of it."""
    predictor: JsonObject = pod_spec() | ({} if least is None else {"minReplicas": least})
    return thing(
        "serving.kserve.io/v1beta1",
        "InferenceService",
        {"predictor": predictor},
        status={
            "deploymentMode": mode,
            "conditions": [_condition("Ready", "True"), *conditions],
        },
    )


INFERENCE_SERVICE = inference_service("Standard", _condition("Stopped", "False"), least=2)
LLM_INFERENCE_SERVICE = thing(
    "serving.kserve.io/v1alpha2",
    "LLMInferenceService",
    {"model": {"uri": "hf://example/model"}, "replicas": 2, "template": pod_spec()},
    annotations={"serving.kserve.io/stop": "false"},
)
JOB = thing("batch/v1", "Job", {"template": template(restartPolicy="Never")})
JOB_SET = thing(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    {
        "suspend": False,
        "replicatedJobs": [
            {"name": "workers", "template": {"spec": {"template": template()}}},
        ],
    },
)
RAY_CLUSTER = thing(
    "ray.io/v1",
    "RayCluster",
    {"suspend": False, "headGroupSpec": {"rayStartParams": {}, "template": template()}},
)
TRAIN_JOB = thing("trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "torch"}})
PYTORCH_JOB = thing(
    "kubeflow.org/v1",
    "PyTorchJob",
    {
        "runPolicy": {"suspend": False},
        "pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template()}},
    },
)
SCALED_OBJECT = thing(
    "keda.sh/v1alpha1",
    "ScaledObject",
    {
        "scaleTargetRef": {"name": "server"},
        "minReplicaCount": 2,
        "triggers": [{"type": "cpu", "metadata": {"value": "60"}}],
    },
    annotations={"autoscaling.keda.sh/paused-replicas": "2"},
)
KUEUE_WORKLOAD = thing(
    "kueue.x-k8s.io/v1beta2",
    "Workload",
    {"active": True, "podSets": [{"name": "main", "count": 1, "template": template()}]},
)

_REPLICAS = ("spec", "replicas")
_SUSPEND = ("spec", "suspend")

OBJECTS: tuple[Example, ...] = (
    *(
        Example(text(body, "kind"), (body,), _REPLICAS, 0)
        for body in (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, LEADER_WORKER_SET, ROLLOUT)
    ),
    *(
        Example(text(body, "kind"), (body,), _SUSPEND, stopped=True)
        for body in (JOB, JOB_SET, RAY_CLUSTER, TRAIN_JOB)
    ),
    Example("PyTorchJob", (PYTORCH_JOB,), ("spec", "runPolicy", "suspend"), stopped=True),
    Example("Notebook", (NOTEBOOK,), ("kubeflow-resource-stopped",), ...),
    Example("Workspace", (WORKSPACE,), ("spec", "paused"), stopped=True),
    Example("InferenceService", (INFERENCE_SERVICE,), ("serving.kserve.io/stop",), "true"),
    Example(
        _SERVERLESS,
        (inference_service("Serverless", least=2),),
        ("spec", "predictor", "minReplicas"),
        0,
    ),
    Example("LLMInferenceService", (LLM_INFERENCE_SERVICE,), ("serving.kserve.io/stop",), "true"),
    Example(
        "a Deployment that KEDA scales",
        (DEPLOYMENT, SCALED_OBJECT),
        ("autoscaling.keda.sh/paused-replicas",),
        "0",
    ),
    Example(
        "a Job that Kueue admitted",
        (JOB, KUEUE_WORKLOAD),
        ("spec", "active"),
        stopped=False,
        adopted=True,
    ),
)

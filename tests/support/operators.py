"""Plays the controllers of kinds that others define, against a real API server.

Each makes and sizes what its real controller would, so that pods of the real Deployment,
ReplicaSet, StatefulSet and Job controllers come of it, and reports what the product reads of it.
Reproduced is what matters to a pause, each with its source:

- Notebook and Workspace: a StatefulSet, sized by the stop annotation and `spec.paused` alone
  (kubeflow/notebooks, `notebook_controller.go`, `workspace_controller.go`).
- LeaderWorkerSet: a StatefulSet of leaders, and one of workers that each leader pod owns
  (kubernetes-sigs/lws, `leaderworkerset_controller.go`, `pod_controller.go`).
- Rollout: a ReplicaSet (argoproj/argo-rollouts, `rollout/sync.go`).
- InferenceService, in Standard mode, and LLMInferenceService: a Deployment that is *deleted* while
  `serving.kserve.io/stop` is set, whose pod template carries the service's annotations, and whose
  size is one at least (kserve/kserve#3514, #6001).
- ScaledObject: puts its target's size back to `minReplicaCount` unless `paused-replicas` is set
  (kedacore/keda, `scale_scaledobjects.go`).
- JobSet, TrainJob, RayCluster, PyTorchJob: a Job, a JobSet, a Pod, while not suspended.
- what Knative and Kueue do: `support.knative`, `support.kueue`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

from support import knative, kueue
from support.lever_objects import template
from support.operating import BY_KIND, Part, Server, condition, name_of, notes_of, owned, sized

from gpu_pruner.model.annotations import (
    KEDA_PAUSED_REPLICAS,
    KSERVE_STOP,
    LWS_NAME,
    NOTEBOOK_STOPPED,
)
from gpu_pruner.sim.tree import JsonObject, child, mapping, number, text, texts

_PAUSE_SECONDS = 0.3


class Operators:
    """A context manager around a thread that looks after the objects of some namespaces."""

    def __init__(self, server: Server, kinds: Iterable[str], namespaces: Iterable[str]) -> None:
        self._server = server
        self._kinds = tuple(sorted(set(kinds) & KINDS.keys()))
        self._namespaces = tuple(namespaces)
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="operators", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(60)
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        try:
            while not self._over.wait(_PAUSE_SECONDS):
                for kind in self._kinds:
                    for namespace in self._namespaces:
                        for one in self._server.list(BY_KIND[kind], namespace):
                            self._reconcile(kind, one)
        except Exception as error:  # noqa: BLE001 - handed to the test's thread
            self._failure = error

    def _reconcile(self, kind: str, one: JsonObject) -> None:
        if text(one, "metadata", "deletionTimestamp"):
            return
        parts = list(KINDS[kind](self._server, one))
        live = [self._make(part) for part in parts]
        status = STATUS.get(kind)
        if status is not None:
            told = status(one, [child for child in live if child])
            if any(child(one, "status", key) != value for key, value in told.items()):
                self._server.patch(one, {"status": told}, "status")

    def _make(self, part: Part) -> JsonObject | None:
        meta = mapping(part.body, "metadata")
        kind = text(part.body, "kind")
        live = self._server.get(kind, text(meta, "namespace"), text(meta, "name"))
        if live is None:
            if part.present:
                self._server.create(part.body)
            return None
        if not part.present:
            if not text(live, "metadata", "deletionTimestamp"):
                self._server.delete(live)
            return None
        wanted = _difference(part.body, live)
        if wanted:
            self._server.patch(live, {"spec": wanted})
        return live


def _difference(body: JsonObject, live: JsonObject) -> JsonObject:
    wanted: JsonObject = {}
    size = child(body, "spec", "replicas")
    if size is not None and size != child(live, "spec", "replicas"):
        wanted["replicas"] = size
    noted = ("spec", "template", "metadata", "annotations")
    if child(body, *noted) is not None and texts(body, *noted) != texts(live, *noted):
        gone = dict.fromkeys(texts(live, *noted))
        wanted["template"] = {"metadata": {"annotations": gone | texts(body, *noted)}}
    return wanted


# What each kind's controller makes.


def _notebook(_: Server, one: JsonObject) -> Iterable[Part]:
    yield Part(
        sized(one, "StatefulSet", name_of(one), 0 if NOTEBOOK_STOPPED in notes_of(one) else 1)
    )


def _workspace(_: Server, one: JsonObject) -> Iterable[Part]:
    paused = child(one, "spec", "paused") is True
    yield Part(sized(one, "StatefulSet", name_of(one), 0 if paused else 1))


def _rollout(_: Server, one: JsonObject) -> Iterable[Part]:
    yield Part(sized(one, "ReplicaSet", f"{name_of(one)}-1", number(one, "spec", "replicas")))


def _leader_worker_set(server: Server, one: JsonObject) -> Iterable[Part]:
    name, namespace = name_of(one), text(one, "metadata", "namespace")
    size = number(one, "spec", "leaderWorkerTemplate", "size", default=1)
    groups, labels = number(one, "spec", "replicas", default=1), {LWS_NAME: name}
    yield Part(sized(one, "StatefulSet", name, groups, labels=labels))
    for index in range(groups):
        leader = server.get("Pod", namespace, f"{name}-{index}")
        if leader is not None and not text(leader, "metadata", "deletionTimestamp"):
            workers = sized(leader, "StatefulSet", f"{name}-{index}", size - 1, labels=labels)
            yield Part(workers)


def _served(suffix: str) -> Callable[[Server, JsonObject], Iterable[Part]]:
    def parts(_: Server, one: JsonObject) -> Iterable[Part]:
        least = child(one, "spec", "predictor", "minReplicas") or child(one, "spec", "replicas")
        size = max(1, least) if isinstance(least, int) else 1
        body = sized(one, "Deployment", f"{name_of(one)}-{suffix}", size, annotations=notes_of(one))
        yield Part(body, present=notes_of(one).get(KSERVE_STOP, "").lower() != "true")

    return parts


_standard = _served("predictor")


def _inference_service(server: Server, one: JsonObject) -> Iterable[Part]:
    return knative.served(one) if knative.is_serverless(one) else _standard(server, one)


def _server(_: Server, one: JsonObject) -> Iterable[Part]:
    runs = text(one, "spec", "mode") == "serving"
    size = number(one, "spec", "workers") if runs else 0
    yield Part(sized(one, "StatefulSet", name_of(one), size))


def _scaled_object(server: Server, one: JsonObject) -> Iterable[Part]:
    namespace, name = (
        text(one, "metadata", "namespace"),
        text(one, "spec", "scaleTargetRef", "name"),
    )
    target = server.get("Deployment", namespace, name)
    held = notes_of(one).get(KEDA_PAUSED_REPLICAS)
    least = number(one, "spec", "minReplicaCount")
    size = number(target, "spec", "replicas")
    wanted = int(held) if held is not None else max(size, least)
    if target is not None and size != wanted:
        server.patch(target, {"spec": {"replicas": wanted}})
    return ()


def _runs(one: JsonObject) -> bool:
    suspended = child(one, "spec", "suspend"), child(one, "spec", "runPolicy", "suspend")
    return True not in suspended


def _pod_of(_: Server, one: JsonObject) -> Iterable[Part]:
    spec = mapping(template(), "spec")
    yield Part(owned(one, "Pod", f"{name_of(one)}-{text(one, 'kind').lower()}", spec), _runs(one))


def _job_set(_: Server, one: JsonObject) -> Iterable[Part]:
    spec: JsonObject = {"template": template(restartPolicy="Never")}
    yield Part(owned(one, "Job", f"{name_of(one)}-workers-0", spec), _runs(one))


def _train_job(_: Server, one: JsonObject) -> Iterable[Part]:
    jobs = [{"name": "node", "template": {"spec": {"template": template()}}}]
    yield Part(owned(one, "JobSet", name_of(one), {"replicatedJobs": jobs}), _runs(one))


KINDS: Mapping[str, Callable[[Server, JsonObject], Iterable[Part]]] = {
    "Notebook": _notebook,
    "Workspace": _workspace,
    "Rollout": _rollout,
    "LeaderWorkerSet": _leader_worker_set,
    "InferenceService": _inference_service,
    "Service": knative.service,
    "Configuration": knative.configuration,
    "Revision": knative.revision,
    "LLMInferenceService": _served("kserve"),
    "ScaledObject": _scaled_object,
    "JobSet": _job_set,
    "TrainJob": _train_job,
    "RayCluster": _pod_of,
    "PyTorchJob": _pod_of,
    "Job": kueue.job,
    "Server": _server,
}
"""By kind, what there is to be."""

MADE: Mapping[str, frozenset[str]] = {
    "TrainJob": frozenset({"JobSet"}),
    "InferenceService": frozenset({"Service", "Configuration", "Revision"}),
}
"""By kind, which other kinds come of it that are played here, too."""


def _counts(one: JsonObject, live: list[JsonObject]) -> JsonObject:
    whole = live[0] if live else {}
    return {
        "replicas": number(whole, "status", "replicas"),
        "readyReplicas": number(whole, "status", "readyReplicas"),
        "updatedReplicas": number(whole, "status", "replicas"),
    }


def _rollout_status(one: JsonObject, live: list[JsonObject]) -> JsonObject:
    seen = str(number(one, "metadata", "generation"))
    return _counts(one, live) | {"observedGeneration": seen}


def _notebook_status(one: JsonObject, live: list[JsonObject]) -> JsonObject:
    return {"readyReplicas": number(live[0] if live else {}, "status", "readyReplicas")}


def _served_status(one: JsonObject, live: list[JsonObject]) -> JsonObject:
    if knative.is_serverless(one):
        return knative.served_status(one, live)
    stopped = notes_of(one).get(KSERVE_STOP, "").lower() == "true"
    ready = any(number(child, "status", "readyReplicas") for child in live)
    conditions = [condition("Ready", holds=ready), condition("Stopped", holds=stopped)]
    return {"deploymentMode": "Standard", "conditions": conditions}


def _server_status(_: JsonObject, live: list[JsonObject]) -> JsonObject:
    return {"ready": number(live[0] if live else {}, "status", "readyReplicas")}


STATUS: Mapping[str, Callable[[JsonObject, list[JsonObject]], JsonObject]] = {
    "Notebook": _notebook_status,
    "LeaderWorkerSet": _counts,
    "Rollout": _rollout_status,
    "InferenceService": _served_status,
    "Revision": knative.revision_status,
    "Server": _server_status,
}
"""By kind, what its controller reports, as far as anybody reads it."""

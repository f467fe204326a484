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
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Self

import requests
from support.lever_objects import template

from gpu_pruner.kube.resources import ALL, Resource
from gpu_pruner.model.annotations import (
    KEDA_PAUSED_REPLICAS,
    KSERVE_STOP,
    LWS_NAME,
    NOTEBOOK_STOPPED,
)
from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, number, text, texts

_PAUSE_SECONDS = 0.3
_BY_KIND = {one.kind: one for one in ALL}
_AGAIN = {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
"""It is gone, or changed, or its kind is so new that the server asks for patience."""
MERGE = {"Content-Type": "application/merge-patch+json"}


class Server:
    """The API server, as seen by somebody with a session."""

    def __init__(self, url: str, session: requests.Session) -> None:
        self._url = url
        self._session = session

    def list(self, resource: Resource, namespace: str) -> list[JsonObject]:
        found: JsonObject = self._ask("GET", resource.path(namespace=namespace)) or {}
        return elements(found, "items")

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        return self._ask("GET", _BY_KIND[kind].path(namespace=namespace, name=name))

    def create(self, body: JsonObject) -> None:
        kind, namespace = text(body, "kind"), text(body, "metadata", "namespace")
        self._ask("POST", _BY_KIND[kind].path(namespace=namespace), body)

    def patch(self, one: JsonObject, body: JsonObject, subresource: str = "") -> None:
        self._ask("PATCH", _path(one, subresource), body)

    def delete(self, one: JsonObject) -> None:
        self._ask("DELETE", _path(one), {"propagationPolicy": "Background"})

    def _ask(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject | None:
        headers = MERGE if method == "PATCH" else {}
        answer = self._session.request(
            method, self._url + path, json=body, headers=headers, timeout=30
        )
        if answer.status_code in _AGAIN:
            return None
        assert answer.ok, f"{method} {path}: {answer.text}"
        found: JsonObject = answer.json()
        return found


@dataclass(frozen=True)
class Part:
    """What an operator wants there to be."""

    body: JsonObject
    present: bool = True


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
                        for one in self._server.list(_BY_KIND[kind], namespace):
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


def _path(one: JsonObject, subresource: str = "") -> str:
    meta = mapping(one, "metadata")
    return _BY_KIND[text(one, "kind")].path(
        namespace=text(meta, "namespace"), name=text(meta, "name"), subresource=subresource
    )


def owned(owner: JsonObject, kind: str, name: str, spec: JsonObject) -> JsonObject:
    """Return an object that another one controls."""
    meta = mapping(owner, "metadata")
    reference = {
        "apiVersion": text(owner, "apiVersion"),
        "kind": text(owner, "kind"),
        "name": text(meta, "name"),
        "uid": text(meta, "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": _BY_KIND[kind].api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": text(meta, "namespace"),
            "labels": {"app": name},
            "ownerReferences": [reference],
        },
        "spec": spec,
    }


def _sized(
    owner: JsonObject, kind: str, name: str, size: int, **metadata: Mapping[str, str]
) -> JsonObject:
    """Return a Deployment, ReplicaSet or StatefulSet; more labels and annotations are its pods'."""
    labels = {"app": name}
    pods = {"metadata": metadata | {"labels": labels | dict(metadata.get("labels", {}))}}
    spec: JsonObject = {"replicas": size, "selector": {"matchLabels": labels}}
    spec["template"] = template() | pods
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return owned(owner, kind, name, spec)


def _name(one: JsonObject) -> str:
    return text(one, "metadata", "name")


def _notes(one: JsonObject) -> dict[str, str]:
    return texts(one, "metadata", "annotations")


# What each kind's controller makes.


def _notebook(_: Server, one: JsonObject) -> Iterable[Part]:
    yield Part(_sized(one, "StatefulSet", _name(one), 0 if NOTEBOOK_STOPPED in _notes(one) else 1))


def _workspace(_: Server, one: JsonObject) -> Iterable[Part]:
    paused = child(one, "spec", "paused") is True
    yield Part(_sized(one, "StatefulSet", _name(one), 0 if paused else 1))


def _rollout(_: Server, one: JsonObject) -> Iterable[Part]:
    yield Part(_sized(one, "ReplicaSet", f"{_name(one)}-1", number(one, "spec", "replicas")))


def _leader_worker_set(server: Server, one: JsonObject) -> Iterable[Part]:
    name, namespace = _name(one), text(one, "metadata", "namespace")
    size = number(one, "spec", "leaderWorkerTemplate", "size", default=1)
    groups, labels = number(one, "spec", "replicas", default=1), {LWS_NAME: name}
    yield Part(_sized(one, "StatefulSet", name, groups, labels=labels))
    for index in range(groups):
        leader = server.get("Pod", namespace, f"{name}-{index}")
        if leader is not None and not text(leader, "metadata", "deletionTimestamp"):
            workers = _sized(leader, "StatefulSet", f"{name}-{index}", size - 1, labels=labels)
            yield Part(workers)


def _served(suffix: str) -> Callable[[Server, JsonObject], Iterable[Part]]:
    def parts(_: Server, one: JsonObject) -> Iterable[Part]:
        least = child(one, "spec", "predictor", "minReplicas") or child(one, "spec", "replicas")
        size = max(1, least) if isinstance(least, int) else 1
        body = _sized(one, "Deployment", f"{_name(one)}-{suffix}", size, annotations=_notes(one))
        yield Part(body, present=_notes(one).get(KSERVE_STOP, "").lower() != "true")

    return parts


def _scaled_object(server: Server, one: JsonObject) -> Iterable[Part]:
    namespace, name = (
        text(one, "metadata", "namespace"),
        text(one, "spec", "scaleTargetRef", "name"),
    )
    target = server.get("Deployment", namespace, name)
    held = _notes(one).get(KEDA_PAUSED_REPLICAS)
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
    yield Part(owned(one, "Pod", f"{_name(one)}-{text(one, 'kind').lower()}", spec), _runs(one))


def _job_set(_: Server, one: JsonObject) -> Iterable[Part]:
    spec: JsonObject = {"template": template(restartPolicy="Never")}
    yield Part(owned(one, "Job", f"{_name(one)}-workers-0", spec), _runs(one))


def _train_job(_: Server, one: JsonObject) -> Iterable[Part]:
    jobs = [{"name": "node", "template": {"spec": {"template": template()}}}]
    yield Part(owned(one, "JobSet", _name(one), {"replicatedJobs": jobs}), _runs(one))


KINDS: Mapping[str, Callable[[Server, JsonObject], Iterable[Part]]] = {
    "Notebook": _notebook,
    "Workspace": _workspace,
    "Rollout": _rollout,
    "LeaderWorkerSet": _leader_worker_set,
    "InferenceService": _served("predictor"),
    "LLMInferenceService": _served("kserve"),
    "ScaledObject": _scaled_object,
    "JobSet": _job_set,
    "TrainJob": _train_job,
    "RayCluster": _pod_of,
    "PyTorchJob": _pod_of,
}
"""By kind, what there is to be."""


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
    stopped = _notes(one).get(KSERVE_STOP, "").lower() == "true"
    ready = any(number(child, "status", "readyReplicas") for child in live)
    conditions = [_condition("Ready", holds=ready), _condition("Stopped", holds=stopped)]
    return {"deploymentMode": "Standard", "conditions": conditions}


def _condition(kind: str, *, holds: bool) -> JsonObject:
    return {"type": kind, "status": str(holds), "lastTransitionTime": "2026-01-31T12:00:00Z"}


STATUS: Mapping[str, Callable[[JsonObject, list[JsonObject]], JsonObject]] = {
    "Notebook": _notebook_status,
    "LeaderWorkerSet": _counts,
    "Rollout": _rollout_status,
    "InferenceService": _served_status,
}
"""By kind, what its controller reports, as far as anybody reads it."""

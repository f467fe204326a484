"""Plays Knative Serving, and KServe on top of it, as far as a pause has to do with them.

- KServe makes a Knative Service whose template carries the InferenceService's annotations, the
  scale bounds among them, and deletes it while `serving.kserve.io/stop` is set (kserve/kserve,
  `reconcilers/knative/ksvc_reconciler.go`). Its mode is called `Knative` since the release that
  knows the annotation in every mode, `Serverless` before: one of these is played as not knowing it.
- A Service has a Configuration, and each change of the template is a new Revision, named by the
  Configuration's generation (knative/serving, `reconciler/configuration/configuration.go`).
- A Revision has a Deployment. It starts with one pod at least (`initial-scale`) and then goes down
  to its `min-scale`, because nobody calls it here; one that a newer Ready one replaced goes to zero
  (knative/serving, `reconciler/autoscaling/kpa/kpa.go`).
"""

from __future__ import annotations

from collections.abc import Iterable

from support.lever_objects import pod_spec
from support.operating import Part, Server, condition, name_of, notes_of, owned, sized

from gpu_pruner.model.annotations import KSERVE_STOP
from gpu_pruner.sim.tree import (
    JsonObject,
    child,
    elements,
    mapping,
    number,
    text,
    texts,
    with_value,
)

MODE = "serving.kserve.io/deploymentMode"
"""The annotation by which somebody chooses how an InferenceService is run."""
MIN_SCALE = "autoscaling.knative.dev/min-scale"
_NOT_PASSED_ON = "kubectl.kubernetes.io/last-applied-configuration"


def is_serverless(one: JsonObject) -> bool:
    """Whether an InferenceService runs on Knative."""
    return notes_of(one).get(MODE) in {"Knative", "Serverless"}


def _knows_stop(one: JsonObject) -> bool:
    return notes_of(one).get(MODE) == "Knative"


def _is_stopped(one: JsonObject) -> bool:
    return _knows_stop(one) and notes_of(one).get(KSERVE_STOP, "").lower() == "true"


# KServe.


def served(one: JsonObject) -> Iterable[Part]:
    """Return the Knative Service of an InferenceService."""
    least = child(one, "spec", "predictor", "minReplicas")
    notes = notes_of(one) | {MIN_SCALE: str(1 if least is None else least)}
    notes.pop(_NOT_PASSED_ON, None)
    template: JsonObject = {"metadata": {"annotations": notes}, "spec": pod_spec()}
    body = owned(one, "Service", f"{name_of(one)}-predictor", {"template": template})
    yield Part(body, present=not _is_stopped(one))


def served_status(one: JsonObject, live: list[JsonObject]) -> JsonObject:
    """Return what KServe reports of an InferenceService on Knative."""
    conditions = [condition("Ready", holds=bool(live))]
    if _knows_stop(one):
        conditions.append(condition("Stopped", holds=_is_stopped(one)))
    return {"deploymentMode": notes_of(one)[MODE], "conditions": conditions}


# Knative.


def service(_: Server, one: JsonObject) -> Iterable[Part]:
    """Return the Configuration of a Service."""
    template = mapping(one, "spec", "template")
    yield Part(owned(one, "Configuration", name_of(one), {"template": template}))


def _latest(configuration: JsonObject | None) -> str:
    generation = number(configuration, "metadata", "generation")
    return f"{name_of(configuration or {})}-{generation:05d}"


def configuration(_: Server, one: JsonObject) -> Iterable[Part]:
    """Return the newest Revision of a Configuration; the others stay."""
    template = mapping(one, "spec", "template")
    body = owned(one, "Revision", _latest(one), mapping(template, "spec"))
    notes = texts(template, "metadata", "annotations")
    yield Part(with_value(body, ("metadata", "annotations"), to=notes))


def revision(server: Server, one: JsonObject) -> Iterable[Part]:
    """Return the Deployment of a Revision, at the size that it has without any traffic."""
    [owner] = elements(one, "metadata", "ownerReferences")
    namespace = text(one, "metadata", "namespace")
    latest = _latest(server.get("Configuration", namespace, text(owner, "name")))
    least = int(notes_of(one).get(MIN_SCALE, "0"))
    size = least if _is_ready(one) else max(1, least)
    if latest != name_of(one) and _is_ready(server.get("Revision", namespace, latest)):
        size = 0
    name = f"{name_of(one)}-deployment"
    yield Part(sized(one, "Deployment", name, size, annotations=notes_of(one)))


def revision_status(one: JsonObject, live: list[JsonObject]) -> JsonObject:
    """Return what is reported of a Revision: once Ready, it stays so at any size."""
    whole = live[0] if live else {}
    wanted = number(whole, "spec", "replicas")
    ready = wanted > 0 and number(whole, "status", "readyReplicas") >= wanted
    return {"conditions": [condition("Ready", holds=ready or _is_ready(one))]}


def _is_ready(one: JsonObject | None) -> bool:
    return any(
        (text(told, "type"), text(told, "status")) == ("Ready", "True")
        for told in elements(one, "status", "conditions")
    )

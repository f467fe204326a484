"""InferenceService in Standard mode → Deployment.

Imitates KServe as far as a pause can tell: the Deployment is *deleted* while the stop annotation
says so (kserve/kserve#6001); a size of zero is taken for one (kserve/kserve#3514); the service's
annotations are copied into the pod template, so that a new annotation restarts the model server.
Knative services, transformers and explainers are not simulated.
"""

from __future__ import annotations

from gpu_pruner.model.annotations import KSERVE_STOP
from gpu_pruner.sim.controllers.toolbox import Toolbox, generation, is_terminating
from gpu_pruner.sim.resources import DEPLOYMENTS
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, mapping, number, texts

_NOT_COPIED = ("kubectl.kubernetes.io/", KSERVE_STOP)
_OF_THE_SERVICE = frozenset({"minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "model"})


def reconcile_inference_service(tools: Toolbox, item: Item) -> None:
    """Make, reshape or delete the Deployment of an InferenceService, and report."""
    stopped = texts(item.body, "metadata", "annotations").get(KSERVE_STOP, "").lower() == "true"
    owned = [one for one in tools.children(item, DEPLOYMENTS) if not is_terminating(one)]
    if stopped:
        for one in owned:
            tools.delete(one)
    elif owned:
        template: JsonObject = {"metadata": {"annotations": _copied(item, old=owned[0])}}
        tools.amend(owned[0], {"spec": {"replicas": _size(item), "template": template}})
    else:
        tools.create(DEPLOYMENTS, _deployment(item), owner=item)
    ready = sum(number(one.body, "status", "readyReplicas") for one in owned)
    conditions = [
        tools.condition(item, "PredictorReady", holds=bool(ready) and not stopped),
        tools.condition(item, "Ready", holds=bool(ready) and not stopped),
        tools.condition(item, "Stopped", holds=stopped),
    ]
    status: JsonObject = {
        "observedGeneration": generation(item),
        "deploymentMode": "Standard",
        "conditions": conditions,
    }
    tools.report(item, status)


def _size(item: Item) -> int:
    return max(1, number(item.body, "spec", "predictor", "minReplicas", default=1))


def _copied(item: Item, *, old: Item | None = None) -> JsonObject:
    """Return the annotations of the pods, and null for those that are there no more."""
    path = ("spec", "template", "metadata", "annotations")
    gone: JsonObject = dict.fromkeys(texts(old.body, *path)) if old else {}
    annotations = texts(item.body, "metadata", "annotations")
    return gone | {k: v for k, v in annotations.items() if not k.startswith(_NOT_COPIED)}


def _deployment(item: Item) -> JsonObject:
    name = f"{item.name}-predictor"
    labels = {"app": f"isvc.{name}", "serving.kserve.io/inferenceservice": item.name}
    predictor = mapping(item.body, "spec", "predictor")
    pod: JsonObject = {key: one for key, one in predictor.items() if key not in _OF_THE_SERVICE}
    metadata: JsonObject = {"labels": labels, "annotations": _copied(item)}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": _size(item),
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": pod},
        },
    }

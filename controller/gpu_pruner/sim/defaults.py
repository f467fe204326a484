"""Fields that the API server fills in when a client leaves them out.

Only those that something in this product reads: sizes, the StatefulSet's claim policy, and a
container's requests, which follow its limits. Called by `writes`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpu_pruner.sim.resources import DEPLOYMENTS, PODS, REPLICASETS, STATEFULSETS, Resource
from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, with_value

_SIZE: JsonObject = {"replicas": 1}
_STRATEGY: JsonObject = {
    "type": "RollingUpdate",
    "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
}
_SPECS: Mapping[tuple[str, str], JsonObject] = {
    DEPLOYMENTS.key: _SIZE | {"strategy": _STRATEGY, "progressDeadlineSeconds": 600},
    REPLICASETS.key: _SIZE,
    STATEFULSETS.key: _SIZE
    | {
        "podManagementPolicy": "OrderedReady",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    PODS.key: {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30},
}


def defaulted(resource: Resource, body: JsonObject) -> JsonObject:
    """Return the body with what a client may leave out filled in."""
    defaults = _SPECS.get(resource.key)
    if defaults is None:
        return body
    filled = with_value(body, ("spec",), to=defaults | mapping(body, "spec"))
    return _with_requests(filled) if resource is PODS else filled


def _with_requests(body: JsonObject) -> JsonObject:
    containers = [_requested(one) for one in elements(body, "spec", "containers")]
    return with_value(body, ("spec", "containers"), to=containers)


def _requested(container: JsonObject) -> JsonObject:
    limits = child(container, "resources", "limits")
    if not isinstance(limits, dict):
        return container
    requests = limits | mapping(container, "resources", "requests")
    return with_value(container, ("resources", "requests"), to=requests)

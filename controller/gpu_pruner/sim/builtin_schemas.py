"""What is checked of the built-in kinds: the few fields that somebody might get wrong.

Structural schemas as CRDs have them; everything that is not named here is stored as it comes.
Called by `resources`.
"""

from __future__ import annotations

from gpu_pruner.sim.tree import JsonObject

_ANYTHING: JsonObject = {"x-kubernetes-preserve-unknown-fields": True}
_MOMENT: JsonObject = {"type": "string", "format": "micro-time", "nullable": True}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}

SIZED: JsonObject = _ANYTHING | {
    "type": "object",
    "properties": {
        "spec": _ANYTHING
        | {
            "type": "object",
            "properties": {
                "replicas": _COUNT,
                "selector": _ANYTHING
                | {"type": "object", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
            },
        }
    },
}
"""Deployments, ReplicaSets, StatefulSets."""

CONFIG_MAP: JsonObject = _ANYTHING | {
    "type": "object",
    "properties": {"data": {"type": "object", "additionalProperties": {"type": "string"}}},
}

LEASE: JsonObject = {
    "type": "object",
    "properties": {
        "spec": _ANYTHING
        | {
            "type": "object",
            "properties": {
                "holderIdentity": {"type": "string", "nullable": True},
                "leaseDurationSeconds": {"type": "integer", "minimum": 1, "nullable": True},
                "leaseTransitions": _COUNT | {"nullable": True},
                "acquireTime": _MOMENT,
                "renewTime": _MOMENT,
            },
        }
    },
}

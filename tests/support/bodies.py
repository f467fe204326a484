"""Bodies of requests that tests of API servers send."""

from __future__ import annotations

from gpu_pruner.sim.tree import JsonObject


def deployment(name: str = "server", *, replicas: int = 1) -> JsonObject:
    labels = {"app": name}
    containers = [{"name": "main", "image": "registry.example/server:1"}]
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def thing(name: str, **labels: str) -> JsonObject:
    """Return an object of the custom kind of `contract/conftest.py`."""
    return {
        "apiVersion": "contract.example/v1",
        "kind": "Thing",
        "metadata": {"name": name, "labels": labels},
        "spec": {"owner": "me"},
    }


def event(name: str, *, namespace: str, uid: str = "") -> JsonObject:
    about: JsonObject = {"kind": "ConfigMap", "namespace": namespace, "name": "one"}
    about |= {"apiVersion": "v1"} | ({"uid": uid} if uid else {})
    return {
        "metadata": {"name": name},
        "involvedObject": about,
        "reason": "Idle",
        "type": "Normal",
        "message": "It is idle.",
    }

"""REF: how people name a workload on the command line."""

from __future__ import annotations

from gpu_pruner.act.levers import LEVERS
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.workload import RootRef

_GROUPS = {"pod": ("", "Pod")} | {one.kind.lower(): (one.group, one.kind) for one in LEVERS}
_SHORT = {
    "deploy": "deployment",
    "deployments": "deployment",
    "sts": "statefulset",
    "statefulsets": "statefulset",
    "notebooks": "notebook",
    "isvc": "inferenceservice",
    "lws": "leaderworkerset",
    "rs": "replicaset",
    "po": "pod",
    "pods": "pod",
}


def parse_reference(text: str) -> RootRef:
    """Read ``kind/namespace/name``.

    Args:
        text: for example ``deployment/team-a/train`` or ``pod/team-a/train-0``.

    Returns:
        The reference, without uid.

    Raises:
        ConfigurationError: it has another shape or an unknown kind.
    """
    parts = text.split("/")
    if len(parts) != 3 or not all(parts):  # noqa: PLR2004 - kind, namespace, name
        raise ConfigurationError(
            f"{text[:80]!r} is not kind/namespace/name, for example deployment/team-a/train"
        )
    kind, namespace, name = parts
    key = _SHORT.get(kind.lower(), kind.lower())
    if key not in _GROUPS:
        raise ConfigurationError(f"unknown kind {kind[:40]!r}; known: {', '.join(_GROUPS)}")
    group, proper = _GROUPS[key]
    return RootRef(kind=proper, namespace=namespace, name=name, group=group)

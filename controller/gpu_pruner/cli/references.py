"""REF: how people name a workload on the command line."""

from __future__ import annotations

from collections.abc import Iterable

from gpu_pruner.act.levers import LEVERS
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.workload import RootRef
from gpu_pruner.settings.levers import CustomLever

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


def parse_reference(text: str, *, custom: Iterable[CustomLever] = ()) -> RootRef:
    """Read ``kind/namespace/name``.

    Args:
        text: for example ``deployment/team-a/train`` or ``pod/team-a/train-0``.
        custom: levers of the settings, whose kinds can be named, too.

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
    groups = _GROUPS | {one.kind.lower(): (one.group, one.kind) for one in custom}
    key = _SHORT.get(kind.lower(), kind.lower())
    if key not in groups:
        raise ConfigurationError(f"unknown kind {kind[:40]!r}; known: {', '.join(groups)}")
    group, proper = groups[key]
    return RootRef(kind=proper, namespace=namespace, name=name, group=group)

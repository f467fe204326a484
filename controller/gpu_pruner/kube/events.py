"""Kubernetes Events about a root, as bodies to create.

An Event is how somebody with nothing but ``kubectl describe`` learns what we did. This module
makes the body; `notify` decides what to say and sends it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum

from gpu_pruner.kube.resources import EVENTS, resource_for
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.workload import RootRef

REASON_LIMIT = 128
MESSAGE_LIMIT = 1024
_NAME_LIMIT = 200
_COMPONENT = "gpu-pruner"


class EventType(StrEnum):
    """The two types that Kubernetes knows."""

    NORMAL = "Normal"
    WARNING = "Warning"


def event_body(
    root: RootRef,
    reason: str,
    *,
    message: str,
    at: Timestamp,
    event_type: EventType = EventType.NORMAL,
    key: str = "",
) -> Mapping[str, object]:
    """Return a core/v1 Event about a root, to be created in the root's namespace.

    Args:
        root: what it is about.
        reason: one CamelCase word; cut to 128 characters.
        message: what happened, in a sentence or two; cut to 1024 characters.
        at: when, Unix seconds.
        event_type: Normal or Warning.
        key: what makes this Event unique, for example a decision id. The same root, reason and
            key give the same name, so that an Event repeated after a crash is refused as already
            there (`Conflict`). Empty: the time to the second.
    """
    resource = resource_for(root.group, root.kind)
    moment = rfc3339(at)
    mark = hashlib.sha256("\n".join([root.uid, reason, key or moment]).encode()).hexdigest()[:16]
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {
            "name": f"{root.name[:_NAME_LIMIT].strip('-.')}.{mark}",
            "namespace": root.namespace,
        },
        "involvedObject": {
            "apiVersion": resource.api_version if resource else root.group,
            "kind": root.kind,
            "namespace": root.namespace,
            "name": root.name,
            "uid": root.uid,
        },
        "reason": reason[:REASON_LIMIT],
        "message": _cut(message),
        "type": event_type.value,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "reportingInstance": _COMPONENT,
    }


def _cut(message: str) -> str:
    return message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…"

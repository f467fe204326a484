"""What kubelets, device plugins and GPU feature discovery write: nodes, and the status of pods.

Pure functions, called by `support.kubelet`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.sim.meter import board_of
from gpu_pruner.sim.tree import JsonObject, elements, text
from gpu_pruner.sim.world import Node


def node_manifest(node: Node, resources: Mapping[str, int]) -> JsonObject:
    """Return a node as its kubelet, device plugin and GPU feature discovery make it."""
    labels = {
        "kubernetes.io/hostname": node.name,
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": node.model.replace(" ", "-"),
        "nvidia.com/gpu.count": str(node.gpus),
        "nvidia.com/gpu.memory": str(board_of(node.model).memory_mib),
    }
    room = {"cpu": "96", "memory": "1056763348Ki", "pods": "250"}
    room |= {name: str(count) for name, count in resources.items()}
    status: JsonObject = {
        "capacity": dict(room),
        "allocatable": dict(room),
        "conditions": [node_ready(ready=node.ready)],
    }
    return {"metadata": {"name": node.name, "labels": labels | node.labels}, "status": status}


def node_ready(*, ready: bool) -> JsonObject:
    moment = rfc3339(time.time())
    return {
        "type": "Ready",
        "status": "True" if ready else "Unknown",
        "reason": "KubeletReady" if ready else "NodeStatusUnknown",
        "lastTransitionTime": moment,
        "lastHeartbeatTime": moment,
    }


def running(
    pod: JsonObject, started: Timestamp, *, ready_since: Timestamp | None = None
) -> JsonObject:
    uid, moment = text(pod, "metadata", "uid"), rfc3339(started)
    byte, ready = int(uid[:2], 16), ready_since is not None
    changed = rfc3339(started if ready_since is None else ready_since)
    holds = {"PodScheduled": True, "Initialized": True, "ContainersReady": ready, "Ready": ready}
    return {
        "phase": "Running",
        "startTime": moment,
        "podIP": f"10.1.{byte}.{int(uid[2:4], 16)}",
        "conditions": [
            {"type": name, "status": str(value), "lastTransitionTime": changed}
            for name, value in holds.items()
        ],
        "containerStatuses": [
            {
                "name": text(one, "name"),
                "image": text(one, "image"),
                "imageID": text(one, "image"),
                "containerID": f"containerd://{uid}-{text(one, 'name')}",
                "ready": ready,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": moment}},
            }
            for one in elements(pod, "spec", "containers")
        ],
    }

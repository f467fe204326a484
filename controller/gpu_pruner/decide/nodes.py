"""What the devices of a node say about one another, held by somebody or not.

It answers on which nodes the telemetry contradicts itself, and on which a shared device is at work
or in doubt: neither can be told from one workload alone. It never judges a workload. `plan` calls
it once per plan and puts the answers on the `Yardstick`.
"""

from __future__ import annotations

from gpu_pruner.decide.device import Yardstick, contradicts_itself, is_quiet_share
from gpu_pruner.model.signals import PodName
from gpu_pruner.model.snapshot import Snapshot
from gpu_pruner.resolve.attribution import node_key


def suspect_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Return the keys of nodes on which any device, held or not, contradicts itself."""
    held = [
        node_key(pod.record.node)
        for workload in snapshot.workloads
        for pod in workload.pods
        for one in pod.devices
        if contradicts_itself(one)
    ]
    loose = [node_key(one.node) for one in snapshot.loose if contradicts_itself(one)]
    return frozenset((*held, *loose)) - {""}


def restless_nodes(snapshot: Snapshot, yardstick: Yardstick) -> frozenset[str]:
    """Return the keys of nodes with a shared device, held or not, that is not proven idle.

    One that tells another node than the pod's that it names may be of either.
    """
    shared = {
        (node_key(pod.record.node), one.device): one
        for workload in snapshot.workloads
        for pod in workload.pods
        for one in pod.devices
        if one.shared
    }
    loose = [one for one in snapshot.loose if one.shared]
    shared |= {(node_key(one.node), one.device): one for one in loose}
    if loose:
        named = _nodes_of_pods(snapshot)
        shared |= {
            (named[name], one.device): one
            for one in loose
            for labels in one.owners
            for name in (labels.exported, labels.native)
            if name in named
        }
    return frozenset(
        node for (node, _), one in shared.items() if not is_quiet_share(one, yardstick)
    )


def _nodes_of_pods(snapshot: Snapshot) -> dict[PodName | None, str]:
    """Return the keys of the nodes that pods run on, by the names that series call the pods."""
    return {
        pod.record.pod_name: node_key(pod.record.node)
        for workload in snapshot.workloads
        for pod in workload.pods
    }

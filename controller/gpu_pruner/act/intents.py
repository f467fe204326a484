"""What people ask for, written where the leader reads it: the spec of a GPUWorkload.

Answers nothing and decides nothing: how long a keep is honoured is decided when it is read. Any
replica writes it, whether it leads or not, because people must not need to know which one does.
Called by `serve`, after it has found out who asks and that they may.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.act.ports import Cluster
from gpu_pruner.errors import ActionRefused, Conflict, NotFound
from gpu_pruner.kube.gpuworkloads import manifest_for, name_for
from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.workload import RootRef

LONGEST_REASON = 1024
"""Characters; the schema of the GPUWorkload says so."""
_LONGEST_NAME = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Somebody wants a workload to be kept."""

    until: Timestamp
    by: str
    """Who asks, as the API server knows them."""
    reason: str


async def ask_to_keep(client: Cluster, root: RootRef, keep: Keep, *, object_name: str = "") -> None:
    """Write a keep into the root's GPUWorkload, which is made where there is none.

    Args:
        client: with no fence.
        root: with its uid.
        keep: it takes the place of the one before.
        object_name: name of the GPUWorkload where it is known.

    Raises:
        ActionRefused: the GPUWorkload kind, or the namespace, does not exist.
        ClusterError: no usable answer.
    """
    wish = {
        "keepUntil": rfc3339(keep.until),
        "keepBy": keep.by[:_LONGEST_NAME],
        "keepReason": keep.reason[:LONGEST_REASON],
    }
    name = object_name or name_for(root)
    try:
        await client.patch(GPUWORKLOADS, name, {"spec": wish}, namespace=root.namespace)
    except NotFound:
        await _create(client, root, wish)


async def _create(client: Cluster, root: RootRef, wish: dict[str, str]) -> None:
    manifest = dict(manifest_for(root))
    spec = manifest["spec"]
    if not isinstance(spec, dict):
        raise TypeError("the manifest of a GPUWorkload has a spec")
    body = manifest | {"spec": spec | wish}
    try:
        await client.create(GPUWORKLOADS, body, namespace=root.namespace)
    except Conflict:  # the leader was faster
        patch = {"spec": wish}
        await client.patch(GPUWORKLOADS, name_for(root), patch, namespace=root.namespace)
    except NotFound as error:
        raise ActionRefused(
            "there is no GPUWorkload kind, or no such namespace, any more"
        ) from error

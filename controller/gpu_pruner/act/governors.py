"""Who owns the size of a root: the lever object where that is not the root itself.

Answers which ScaledObject or Kueue Workload governs a root at this moment, read from the API
server, because a pause of the root itself would be put back by it. Never writes. Called by
`act.actor`.
"""

from __future__ import annotations

from gpu_pruner.act.keda import SCALED_OBJECT
from gpu_pruner.act.kueue import KUEUE_WORKLOAD
from gpu_pruner.act.lever import Lever
from gpu_pruner.act.ports import Cluster
from gpu_pruner.errors import ActionRefused, NotFound
from gpu_pruner.kube.governing import governed, governs
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.workload import RootRef

GOVERNORS: tuple[Lever, ...] = (SCALED_OBJECT, KUEUE_WORKLOAD)


async def governor_of(client: Cluster, root: RootRef) -> tuple[Lever, Owner] | None:
    """Return what governs a root now, with its lever; None where nothing does.

    Args:
        client: to list the governors of the root's namespace with.
        root: with its uid.

    Raises:
        ActionRefused: several do.
        ClusterError: they could not be listed; what governs it is then not known.
    """
    found: list[tuple[Lever, Owner]] = []
    for lever in GOVERNORS:
        found += [(lever, one) for one in await _of_kind(client, lever, root)]
    if len(found) > 1:
        names = " and ".join(f"{lever.kind} {one.metadata.name}" for lever, one in found[:2])
        raise ActionRefused(f"{names} both own its size")
    return found[0] if found else None


async def _of_kind(client: Cluster, lever: Lever, root: RootRef) -> list[Owner]:
    found: list[Owner] = []
    pages = client.list_pages(lever.resource, decode=lever.decode, namespace=root.namespace)
    try:
        async for page in pages:
            for one in page.items:
                target = governed(one, lever.resource)
                if target is not None and governs(target, root):
                    found.append(one)
    except NotFound:  # the kind is not installed, so that it governs nobody
        return []
    return [one for one in found if not one.metadata.deletion_timestamp]

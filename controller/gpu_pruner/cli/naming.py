"""From a name that somebody typed to the root that it means, as the API server has it.

Answers with the uid, or with the names that are most like what was typed. Reads with the rights of
whoever types, and writes nothing. Called by `cli.wishes`.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_pruner.act.levers import Levers
from gpu_pruner.act.ports import Cluster
from gpu_pruner.cli.references import near
from gpu_pruner.errors import ActionRefused, ClusterError, ConfigurationError, NotFound
from gpu_pruner.kube.resources import PODS, Resource, group_of, resource_for
from gpu_pruner.kube.wire import Bare
from gpu_pruner.model.workload import RootRef

_LONGEST_CHAIN = 8
"""Owners above a pod; the longest that we know, a served model by Knative, has five."""


async def root_named(client: Cluster, named: RootRef, *, levers: Levers) -> RootRef:
    """Return the root of what was named, with its uid.

    Args:
        client: to read with.
        named: a workload, or a pod of one.
        levers: those of the settings, too: where their kinds live.

    Raises:
        ConfigurationError: nothing is called so.
        ActionRefused: it is a pod that nobody controls, or of an owner that we do not know.
        ClusterError: no usable answer.
    """
    if named.kind != PODS.kind:
        return (await _read(client, named, levers=levers))[0]
    found, above = await _read(client, named, levers=levers)
    if above is None:
        raise ActionRefused(f"{named.ref} has no controller, so it is never paused")
    for _ in range(_LONGEST_CHAIN):
        found, above = await _read(client, above, levers=levers)
        if above is None:
            return found
    raise ActionRefused(f"{named.ref} has too many owners above it")


def _resource(root: RootRef, levers: Levers) -> Resource:
    lever = levers.find(root.kind, root.group)
    resource = lever.resource if lever else resource_for(root.group, root.kind)
    if resource is None:
        raise ActionRefused(f"{root.ref} is of a kind that we do not know")
    return resource


async def _read(
    client: Cluster, named: RootRef, *, levers: Levers
) -> tuple[RootRef, RootRef | None]:
    """Return an object with its uid, and its controller where it has one."""
    resource = _resource(named, levers)
    try:
        live = await client.get(resource, named.name, namespace=named.namespace, decode=Bare)
    except NotFound:
        raise ConfigurationError(await _unknown(client, named, resource)) from None
    owner = live.metadata.controller
    found = replace(named, uid=live.metadata.uid)
    if owner is None:
        return found, None
    above = RootRef(owner.kind, named.namespace, owner.name, group_of(owner.api_version))
    return found, above


async def _unknown(client: Cluster, named: RootRef, resource: Resource) -> str:
    """Return that nothing is called so, with the names that are most like it."""
    told = f"there is no {named.ref}"
    try:
        pages = client.list_pages(resource, decode=Bare, namespace=named.namespace)
        names = [one.metadata.name async for page in pages for one in page.items]
    except ClusterError:  # who may read one object need not be allowed to list them
        return told
    likely = [f"{named.kind.lower()}/{named.namespace}/{one}" for one in near(named.name, names)]
    return f"{told}; did you mean {' or '.join(likely)}?" if likely else told

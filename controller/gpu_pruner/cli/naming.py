"""From a name that somebody typed to the root that it means, as the API server has it.

Answers with the uid, or with the names that are most like what was typed. Reads with the rights of
whoever types, and writes nothing. Called by `cli.wishes` and `cli.running`.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_pruner.act.levers import Levers
from gpu_pruner.act.ports import Cluster
from gpu_pruner.cli.references import near
from gpu_pruner.errors import ActionRefused, ClusterError, ConfigurationError, NotFound
from gpu_pruner.kube.jupyterhub import server_of
from gpu_pruner.kube.resources import PODS, Resource, group_of, resource_for
from gpu_pruner.kube.wire import Bare, Meta
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.workload import RootRef

_PODS = frozenset({PODS.kind, jupyterhub.KIND})
"""Kinds that go by the name of a pod."""
_LONGEST_CHAIN = 8
"""Owners above a pod; the longest that we know, a served model by Knative, has five."""


async def root_named(client: Cluster, named: RootRef, *, levers: Levers) -> RootRef:
    """Return the root of what was named, with its uid.

    Args:
        client: to read with.
        named: a workload, or a pod of one. A JupyterHub server goes by the name of its pod.
        levers: those of the settings, too: where their kinds live.

    Raises:
        ConfigurationError: nothing is called so.
        ActionRefused: it is a pod that nobody controls, or of an owner that we do not know.
        ClusterError: no usable answer.
    """
    meta = await _meta(client, named, levers=levers)
    if named.kind not in _PODS:
        return replace(named, uid=meta.uid)
    server = server_of(meta)
    if server is not None:
        return RootRef(jupyterhub.KIND, named.namespace, named.name, jupyterhub.GROUP, server.uid)
    owner = meta.controller
    if owner is None:
        raise ActionRefused(f"{named.ref} has no controller, so it is never paused")
    for _ in range(_LONGEST_CHAIN):
        above = RootRef(owner.kind, named.namespace, owner.name, group_of(owner.api_version))
        meta = await _meta(client, above, levers=levers)
        owner = meta.controller
        if owner is None:
            return replace(above, uid=meta.uid)
    raise ActionRefused(f"{named.ref} has too many owners above it")


async def must_exist(client: Cluster, root: RootRef, *, levers: Levers) -> None:
    """Check that what a person's order names is there, where it is of a kind that can be ordered.

    A JupyterHub server has no object while it is stopped, so it is never missed here.

    Args:
        client: to read with.
        root: what was named.
        levers: those of the settings, too.

    Raises:
        ConfigurationError: nothing is called so.
        ClusterError: no usable answer.
    """
    if levers.find(root.kind, root.group) is not None:
        await _meta(client, root, levers=levers)


def _resource(root: RootRef, levers: Levers) -> Resource:
    if root.kind in _PODS:
        return PODS
    lever = levers.find(root.kind, root.group)
    resource = lever.resource if lever else resource_for(root.group, root.kind)
    if resource is None:
        raise ActionRefused(f"{root.ref} is of a kind that we do not know")
    return resource


async def _meta(client: Cluster, named: RootRef, *, levers: Levers) -> Meta:
    """Return the metadata of what is called so."""
    resource = _resource(named, levers)
    try:
        live = await client.get(resource, named.name, namespace=named.namespace, decode=Bare)
    except NotFound:
        raise ConfigurationError(await _unknown(client, named, resource)) from None
    return live.metadata


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

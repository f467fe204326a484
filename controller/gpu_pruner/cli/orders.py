"""What is looked at before a person's own order, because no plan looked at it.

Answers, as a sentence, why an order makes no sense for a workload. What forbids a pause to
everybody is `act`'s business. Called by `cli.running`.
"""

from __future__ import annotations

from gpu_pruner.act.levers import lever_for
from gpu_pruner.act.live import LiveOwner, template_of
from gpu_pruner.act.ports import Cluster
from gpu_pruner.errors import NotFound
from gpu_pruner.kube.resources import PODS
from gpu_pruner.kube.wire import Pod, PodSpec
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.workload import RootRef
from gpu_pruner.observe.gpu_requests import gpu_requests


async def holds_no_gpu(client: Cluster, root: RootRef) -> str:
    """Return a sentence where the root's pods request no GPU, so that a pause gives none back.

    Args:
        client: to read the root with.
        root: by kind, namespace and name.

    Returns:
        Nothing where it requests GPUs, where its kind does not tell, and where there is no such
        root: then the order itself says so.

    Raises:
        ClusterError: the root could not be read.
    """
    try:
        spec = await _pod_spec(client, root)
    except NotFound:
        return ""
    if spec is None or gpu_requests(spec).counts:
        return ""
    return f"the pods of {root.ref} request no GPU, so there is none to give back"


async def _pod_spec(client: Cluster, root: RootRef) -> PodSpec | None:
    """Return what the root's pods are made of; None where its kind does not tell."""
    if root.kind == jupyterhub.KIND:
        return (await client.get(PODS, root.name, namespace=root.namespace, decode=Pod)).spec
    lever = lever_for(root.kind, root.group)
    if lever is None:
        return None
    live = await client.get(lever.resource, root.name, namespace=root.namespace, decode=LiveOwner)
    template = template_of(live)
    return template.spec if template else None

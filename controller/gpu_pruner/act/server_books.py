"""The GPUWorkload of a JupyterHub server that does not run: all that is left of it in the cluster.

Answers which server a root was, from the record of its pause. Called by `act.servers`.
"""

from __future__ import annotations

from gpu_pruner.act.books import ClusterBook
from gpu_pruner.act.ports import Cluster
from gpu_pruner.errors import NotFound
from gpu_pruner.kube.bookkeeping import to_bookkeeping
from gpu_pruner.kube.gpuworkloads import GPUWorkload
from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.book import Phase
from gpu_pruner.model.cluster import Bookkeeping
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.model.workload import RootRef

_OURS = frozenset({Phase.PAUSING, Phase.PAUSED, Phase.RESTORING})


async def book_about(books: ClusterBook, client: Cluster, root: RootRef) -> Bookkeeping | None:
    """Return what is kept about a root; by its name where its uid is not known.

    Args:
        books: to read one with.
        client: to list those of the namespace with.
        root: an empty uid means whatever was called that last.

    Raises:
        ClusterError: no usable answer.
    """
    if root.uid:
        found = await books.read(root)
        return found if found is not None and found.root.uid == root.uid else None
    pages = client.list_pages(GPUWORKLOADS, decode=GPUWorkload, namespace=root.namespace)
    kept: list[Bookkeeping] = []
    try:
        async for page in pages:
            kept += [one for one in map(to_bookkeeping, page.items) if one is not None]
    except NotFound:  # the kind is not installed
        return None
    named = [one for one in kept if (one.root.kind, one.root.name) == (root.kind, root.name)]
    return max(named, key=lambda one: one.book.paused_at or 0.0, default=None)


def server_in(kept: Bookkeeping | None) -> ServerName | None:
    """Return which server a pause that stands is about; None where the record does not say.

    The root's uid is made of the server's names, so that a record with other names than these is
    not about it.
    """
    record = kept.book.pause if kept is not None else None
    if kept is None or record is None or kept.book.phase not in _OURS:
        return None
    user = record.former.get(jupyterhub.USERNAME, "")
    name = ServerName(kept.root.namespace, user, record.former.get(jupyterhub.SERVERNAME, ""))
    if record.lever != jupyterhub.KIND or name.uid != kept.root.uid:
        return None
    return name

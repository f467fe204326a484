"""JupyterHub servers as roots: what the Hub says of them, laid over a view of the cluster.

A user's pod has no owner that the API server knows of. Where a Hub is set for its namespace, the
server that it says to be becomes its owner here, so that everything behind treats it as any other
root. Pure. A server without an answer of its Hub gets no owner object, which reads as a root that
is out of sight: nothing is concluded from it. `observe.hubs` calls it for every view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from gpu_pruner.jupyterhub.answers import HubServer, Servers
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.cluster import Bookkeeping, ClusterView
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.model.workload import OwnerObject, OwnerRef, PodPhase, PodRecord, RootRef

Answers = Mapping[str, Servers | None]
"""By namespace with a Hub: its active servers, or None where it gave no complete answer."""

_OVER = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


def with_servers(view: ClusterView, answers: Answers) -> ClusterView:
    """Return the view in which the servers of the Hubs own their pods.

    Args:
        view: as the API server tells it.
        answers: of the Hubs.
    """
    if not answers:
        return view
    roots: dict[str, RootRef] = {}
    held: dict[str, list[PodRecord]] = {}
    pods: list[PodRecord] = []
    for pod in sorted(view.pods, key=lambda one: (one.namespace, one.name)):
        name = pod.server
        if name is None or pod.owner is not None or name.namespace not in answers:
            pods.append(pod)
            continue
        root = roots.setdefault(name.uid, _root(name, pod, view.books.get(name.uid)))
        owner = OwnerRef(root.group, root.kind, root.name, root.uid)
        pods.append(replace(pod, owner=owner))
        if pod.phase not in _OVER:
            held.setdefault(root.uid, []).append(pod)
    for uid, kept in view.books.items():
        if _is_a_server(kept, answers):
            roots.setdefault(uid, kept.root)
    owners = dict(view.owners)
    active = {name.uid: one for known in answers.values() for name, one in (known or {}).items()}
    for uid, root in roots.items():
        if answers[root.namespace] is None:
            continue
        found = _owner(root, active.get(uid), held.get(uid, ()), view.books.get(uid))
        if found is not None:
            owners[uid] = found
    return replace(view, pods=tuple(pods), owners=owners)


def _root(name: ServerName, pod: PodRecord, kept: Bookkeeping | None) -> RootRef:
    """Return the root of a pod: by the name that its book has, else by the pod's own."""
    known = kept is not None and kept.root.namespace == pod.namespace
    shown = kept.root.name if kept is not None and known else pod.name
    return RootRef(jupyterhub.KIND, pod.namespace, shown, jupyterhub.GROUP, name.uid)


def _is_a_server(kept: Bookkeeping, answers: Answers) -> bool:
    root = kept.root
    return (root.kind, root.group) == (jupyterhub.KIND, jupyterhub.GROUP) and (
        root.namespace in answers
    )


def _owner(
    root: RootRef, server: HubServer | None, pods: Iterable[PodRecord], kept: Bookkeeping | None
) -> OwnerObject | None:
    """Return a server as the owner of its pods; None where Hub and pods tell different stories.

    A Hub that has just started does not know its servers yet, and a page of its list may miss one,
    so that a pod without an active server proves nothing.
    """
    notes: dict[str, str] = {}
    labels: dict[str, str] = {}
    running = False
    for pod in pods:
        running = True
        notes |= pod.annotations
        labels |= pod.labels
    if (server is None and running) or (server is not None and _is_open(server, kept)):
        return None
    notes.pop(PAUSED, None)  # a pod's word is not ours
    if kept is not None and (record := _record(kept.book, root, server)):
        notes[PAUSED] = record
    return OwnerObject(
        root=root,
        resource_version=server.started if server else "",
        halted=server is None or server.is_stopping,
        is_ready=server is not None and server.ready,
        labels=labels,
        annotations=notes,
    )


def _is_open(server: HubServer, kept: Bookkeeping | None) -> bool:
    """Whether a paused server is being started: that may fail, and may be an order of ours.

    The order is written into the book when the Hub has answered, which it does before a start is
    over, or at its end.
    """
    phase = Phase.WATCHING if kept is None else kept.book.phase
    return server.pending == "spawn" and phase in {Phase.PAUSING, Phase.PAUSED}


def _record(book: Book, root: RootRef, server: HubServer | None) -> str:
    """Return what identifies the pause that was done; empty where none was, or not yet.

    The record is written before the Hub is asked. As long as the very start that it names goes on,
    the stop has not arrived.
    """
    record = book.pause
    if record is None or record.uid != root.uid or book.phase not in {Phase.PAUSING, Phase.PAUSED}:
        return ""
    same = server is not None and server.started == record.former.get(jupyterhub.STARTED)
    if server is not None and same and not server.is_stopping:
        return ""
    return msgspec.json.encode({"uid": record.uid, "decision": record.decision}).decode()

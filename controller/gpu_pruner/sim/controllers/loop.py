"""Runs the controllers: a queue of objects that changed, drained on the event loop.

Also the garbage collector: an object all of whose owners are gone is deleted. Reacts to commits
of the store only; there is no polling. Listeners never write, they only queue, so that watches
see changes in the order of their versions. Called by `cluster`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from gpu_pruner.sim.controllers.daemonset import reconcile_daemon_set
from gpu_pruner.sim.controllers.deployment import reconcile_deployment, reconcile_replica_set
from gpu_pruner.sim.controllers.inferenceservice import reconcile_inference_service
from gpu_pruner.sim.controllers.leaderworkerset import reconcile_leader_worker_set
from gpu_pruner.sim.controllers.notebook import reconcile_notebook
from gpu_pruner.sim.controllers.statefulset import reconcile_stateful_set
from gpu_pruner.sim.controllers.toolbox import Toolbox, is_terminating
from gpu_pruner.sim.deletes import FOREGROUND
from gpu_pruner.sim.kubelet import Kubelet, Pace
from gpu_pruner.sim.resources import (
    DAEMONSETS,
    DEPLOYMENTS,
    INFERENCE_SERVICES,
    LEADER_WORKER_SETS,
    NODES,
    NOTEBOOKS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from gpu_pruner.sim.state import State
from gpu_pruner.sim.store import Change, ChangeType, Item, Key
from gpu_pruner.sim.tree import elements, strings, text

Reconcile = Callable[[Toolbox, Item], None]

_RECONCILERS: Mapping[tuple[str, str], Reconcile] = {
    DEPLOYMENTS.key: reconcile_deployment,
    REPLICASETS.key: reconcile_replica_set,
    STATEFULSETS.key: reconcile_stateful_set,
    NOTEBOOKS.key: reconcile_notebook,
    LEADER_WORKER_SETS.key: reconcile_leader_worker_set,
    INFERENCE_SERVICES.key: reconcile_inference_service,
    DAEMONSETS.key: reconcile_daemon_set,
}


class ControlLoop:
    """The control plane of the simulated cluster."""

    def __init__(self, state: State, *, pace: Pace) -> None:
        self._tools = Toolbox(state)
        self._kubelet = Kubelet(self._tools, state.occupancy, world=state.world, pace=pace)
        self._queue: dict[tuple[Resource, Key], None] = {}
        self._gone: list[Item] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awake = False
        state.store.subscribe(self._on_change)

    def start(self) -> None:
        """React to changes on the running event loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._wake()

    def stop(self) -> None:
        """Stop reacting: the control plane is down, the API server is not."""
        self._loop = None

    def drain(self) -> None:
        """Reconcile until nothing changes any more."""
        self._awake = False
        while self._queue or self._gone:
            while self._gone:
                self._collect(self._gone.pop(0))
            if self._queue:
                entry = next(iter(self._queue))
                del self._queue[entry]
                self._reconcile(*entry)

    def _on_change(self, change: Change) -> None:
        item = change.item
        self._enqueue(item)
        owner = self._tools.owner_of(item)
        if owner is not None:
            self._enqueue(owner if owner.resource is not PODS else self._tools.root_of(owner))
        if change.type is ChangeType.DELETED:
            self._gone.append(item)
        if item.resource is NODES:
            for daemon_set in self._tools.store.all(DAEMONSETS):
                self._enqueue(daemon_set)
        self._wake()

    def _enqueue(self, item: Item) -> None:
        self._queue[item.resource, item.key] = None

    def _wake(self) -> None:
        if self._loop is not None and not self._awake:
            self._awake = True
            self._loop.call_soon(self._drain_if_running)

    def _drain_if_running(self) -> None:
        if self._loop is not None:
            self.drain()

    def _reconcile(self, resource: Resource, key: Key) -> None:
        item = self._tools.store.get(resource, key)
        if item is None:
            return
        if self._is_orphan(item) and not is_terminating(item):
            self._tools.delete(item)
            return
        if FOREGROUND in strings(item.body, "metadata", "finalizers") and is_terminating(item):
            self._delete_from_below(item)
        elif resource is PODS:
            self._kubelet.reconcile(item)
        elif resource is NODES:
            self._kubelet.retry()
        elif not is_terminating(item) and (act := _RECONCILERS.get(resource.key)):
            act(self._tools, item)

    def _delete_from_below(self, item: Item) -> None:
        """Delete what an object owns, and let the object go when all of that is gone."""
        dependents = self._tools.store.dependents(item.uid)
        for one in dependents:
            if not is_terminating(one):
                self._tools.delete(one)
        if not dependents:
            left = [
                one for one in strings(item.body, "metadata", "finalizers") if one != FOREGROUND
            ]
            self._tools.amend(item, {"metadata": {"finalizers": left or None}})

    def _is_orphan(self, item: Item) -> bool:
        owners = elements(item.body, "metadata", "ownerReferences")
        known = self._tools.store.exists
        return bool(owners) and not any(known(text(one, "uid")) for one in owners)

    def _collect(self, gone: Item) -> None:
        if gone.resource is PODS:
            self._kubelet.forget(gone)
            waiting = (gone.namespace, gone.name.rpartition("-")[0])
            if successor := self._tools.store.get(STATEFULSETS, waiting):
                self._enqueue(successor)  # which may have waited for the name
        for dependent in self._tools.store.dependents(gone.uid):
            if self._is_orphan(dependent) and not is_terminating(dependent):
                self._tools.delete(dependent)
        for owner in self._tools.owners_of(gone):
            self._enqueue(owner)

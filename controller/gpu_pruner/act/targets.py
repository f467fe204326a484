"""What an order is carried out on: a root as it is at this moment, and what pauses it.

Answers which object has to be patched, read right before that. Never writes. Called by `act.actor`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_pruner.act.checks import record_on
from gpu_pruner.act.governors import governor_of
from gpu_pruner.act.lever import Lever
from gpu_pruner.act.levers import Levers
from gpu_pruner.act.ports import Cluster
from gpu_pruner.errors import ActionRefused, ClusterError, NotFound
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.workload import RootRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A root as it is right now, with its lever."""

    root: RootRef
    """With the uid of the live object."""
    top: Owner
    """The root object."""
    own: Lever
    """The root's own lever."""
    lever: Lever
    """What pauses it: its own, or that of what owns its size."""
    live: Owner
    """The lever object: the root, or what owns its size."""

    @property
    def itself(self) -> Target:
        """Return the root with its own lever, whatever governs it."""
        return replace(self, lever=self.own, live=self.top)

    @property
    def is_paused_by_us(self) -> bool:
        """Return whether the lever object is paused, and by the record that stands on it."""
        record = record_on(self.lever, self.live)
        if record is None or not self.lever.is_paused(self.live):
            return False
        return self.lever.is_pause_of(self.live, record)


async def look(client: Cluster, levers: Levers, root: RootRef) -> Target:
    """Read a root as it is now, and what owns its size.

    Args:
        client: to read with.
        levers: those that there are.
        root: an empty uid means whatever has that name now.

    Raises:
        ActionRefused: no lever, no such object, another object of that name, or several that own
            its size.
        ClusterError: no usable answer.
    """
    lever = levers.find(root.kind, root.group)
    if lever is None:
        known = ", ".join(sorted(levers.kinds))
        raise ActionRefused(f"{root.kind} cannot be paused or resumed; these can: {known}")
    try:
        live = await client.get(
            lever.resource, root.name, namespace=root.namespace, decode=lever.decode
        )
    except NotFound as error:
        raise ActionRefused(f"{root.ref} does not exist any more") from error
    meta = live.metadata
    if not (meta.uid and meta.resource_version):
        raise ClusterError(f"{root.ref} was answered without uid or resourceVersion")
    if root.uid not in {"", meta.uid}:
        raise ActionRefused(f"another {root.kind} of that name has taken its place")
    found = replace(root, uid=meta.uid)
    above, held = await governor_of(client, found) or (lever, live)
    return Target(root=found, top=live, own=lever, lever=above, live=held)

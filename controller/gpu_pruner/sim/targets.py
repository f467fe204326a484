"""Which object a request is about. Used by `writes`, `deletes` and `api`."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.store import Key


@dataclass(frozen=True, slots=True)
class Target:
    """An object, a collection where there is no name, or a subresource."""

    resource: Resource
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """Return namespace and name."""
        return (self.namespace if self.resource.namespaced else "", self.name)

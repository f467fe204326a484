"""What `act` needs of the API server: four calls of `kube.client.ClusterClient`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol, TypeVar

from gpu_pruner.kube.client import Page
from gpu_pruner.kube.resources import Resource

T = TypeVar("T")


class Cluster(Protocol):
    """Reads, lists, patches and creates objects; failures are `ClusterError`."""

    async def get(
        self, resource: Resource, name: str, *, namespace: str = "", decode: type[T]
    ) -> T:
        """Read one object as it is now."""
        ...

    def list_pages(
        self, resource: Resource, *, decode: type[T], namespace: str = ""
    ) -> AsyncIterator[Page[T]]:
        """Read all objects of a kind in a namespace, page by page."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, object],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bytes:
        """Merge-patch one object, once."""
        ...

    async def create(
        self, resource: Resource, body: Mapping[str, object], *, namespace: str = ""
    ) -> bytes:
        """Create one object, once."""
        ...

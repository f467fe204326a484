"""What `act` needs of the API server and of a JupyterHub: calls of the two clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol, TypeVar

from gpu_pruner.jupyterhub.answers import HubServer
from gpu_pruner.kube.client import Page
from gpu_pruner.kube.resources import Resource
from gpu_pruner.model.jupyterhub import ServerName

T = TypeVar("T")


class Hub(Protocol):
    """`jupyterhub.client.HubClient`: one JupyterHub; failures are `HubError`."""

    @property
    def namespace(self) -> str:
        """Return where its user pods are."""
        ...

    async def server(self, name: ServerName) -> HubServer | None:
        """Return one server as it is now; None where it is not active."""
        ...

    async def stop(self, name: ServerName) -> None:
        """Ask for a server to be stopped, once."""
        ...

    async def start(self, name: ServerName) -> None:
        """Ask for a server to be started as it was, once."""
        ...


class Cluster(Protocol):
    """`kube.client.ClusterClient`; failures are `ClusterError`."""

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

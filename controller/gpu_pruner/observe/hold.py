"""The switch that stops everything: one ConfigMap, by its name, in our own namespace.

Answers whether somebody holds everything, and why. That it exists is enough, whatever it says.
Where that cannot be read, everything is held: nobody may have to wonder whether a switch works.
`loop` asks once per cycle, and again before it acts; it never writes.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from gpu_pruner.errors import ClusterError, Forbidden, NotFound
from gpu_pruner.kube.resources import CONFIGMAPS, Resource
from gpu_pruner.resolve.annotations import shown

T = TypeVar("T")

NAME = "gpu-pruner-hold"


class Reader(Protocol):
    """What is needed of `kube.client.ClusterClient`."""

    async def get(
        self, resource: Resource, name: str, *, namespace: str = "", decode: type[T]
    ) -> T:
        """Read one object."""
        ...


class _ConfigMap(msgspec.Struct, frozen=True, gc=False):
    data: dict[str, str] | None = None


class HoldSwitch:
    """Reads the ConfigMap."""

    def __init__(self, client: Reader, *, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def hold(self) -> str:
        """Return why everything is held, in a sentence; empty where it is not."""
        place = self._place
        try:
            return await self.found()
        except Forbidden:
            return f"{place} may not be read, as deploy/kustomize/base allows"
        except ClusterError as error:
            return f"{place} cannot be read: {error}"

    async def found(self) -> str:
        """Return what the ConfigMap says; empty where there is none.

        Raises:
            ClusterError: it cannot be read.
        """
        try:
            found = await self._client.get(
                CONFIGMAPS, NAME, namespace=self._namespace, decode=_ConfigMap
            )
        except NotFound:
            return ""
        reason = (found.data or {}).get("reason", "")
        told = f": {shown(reason)}" if reason else ""
        return f"{self._place} holds everything until it is deleted{told}"

    @property
    def _place(self) -> str:
        return f"ConfigMap {NAME} in namespace {self._namespace}"


class SeenSwitch:
    """The switch as somebody sees it who only looks, and who may lack the right to read it."""

    def __init__(self, switch: HoldSwitch) -> None:
        self._switch = switch

    async def hold(self) -> str:
        """Return why everything is held; empty where it is not, or where nobody can tell."""
        try:
            return await self._switch.found()
        except ClusterError:
            return ""

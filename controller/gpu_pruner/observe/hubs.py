"""The JupyterHubs of the settings, asked once a cycle.

Answers which servers are active, as the last cycle's question was answered. A Hub that does not
answer, or refuses the token, is logged once for each reason; its servers are then out of sight and
nothing is done to them. `loop.observation` calls it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from gpu_pruner.errors import HubError
from gpu_pruner.jupyterhub.answers import Servers
from gpu_pruner.jupyterhub.client import HubClient
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.observe.servers import with_servers

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class HubWatch:
    """What the Hubs said last."""

    def __init__(self, hubs: Iterable[HubClient]) -> None:
        self._hubs = tuple(hubs)
        self._answers: dict[str, Servers | None] = {one.namespace: None for one in self._hubs}
        self._failures: dict[str, str] = {}

    async def look(self) -> None:
        """Ask every Hub. Never fails: a Hub without an answer has none."""
        await asyncio.gather(*(self._ask(one) for one in self._hubs))

    def laid_over(self, view: ClusterView) -> ClusterView:
        """Return a view of the cluster in which servers own their pods. Cheap; asks nobody."""
        return with_servers(view, self._answers)

    async def _ask(self, hub: HubClient) -> None:
        before = self._failures.get(hub.namespace, "")
        try:
            self._answers[hub.namespace] = await hub.servers()
            failure = ""
        except HubError as error:
            self._answers[hub.namespace] = None
            failure = str(error)
        self._failures[hub.namespace] = failure
        if failure == before:
            return
        if failure:
            _log.error("a JupyterHub is out of sight", namespace=hub.namespace, why=failure)
        else:
            _log.info("a JupyterHub is in sight again", namespace=hub.namespace)

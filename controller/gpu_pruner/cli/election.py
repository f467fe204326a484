"""Who of several replicas acts: settings to an elector, or to the one that acts alone.

Called by `cli.wiring`. A daemon competes for the Lease as soon as anything of it could be written.
A single pass competes with nobody; it only reads when a leader last completed a cycle, so that it
pauses nothing on a warning that nobody has looked after since.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from gpu_pruner.errors import ClusterError
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.lease import LeaseObject, identity, lease_namespace
from gpu_pruner.kube.lease_elector import Elector
from gpu_pruner.loop.alone import Alone
from gpu_pruner.model.clock import Clock
from gpu_pruner.settings.schema import Settings

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def elector(settings: Settings, clock: Clock) -> AsyncIterator[Elector]:
    """Make an elector that has tried once, with a connection of its own.

    Neither a burst of other requests nor a connection that hangs may keep it from renewing.

    Args:
        settings: where the Lease is, and the times.
        clock: for what people read on the Lease.

    Raises:
        ConfigurationError: we may not use the Lease, or its namespace does not exist.
    """
    times = settings.lease
    patience = min(settings.kubernetes.timeout_seconds, times.renew_deadline_seconds / 2)
    client = await ClusterClient.connect(
        settings.kubernetes.model_copy(update={"timeout_seconds": patience}), clock=clock
    )
    try:
        name = identity(times, host=socket.gethostname(), ending=secrets.token_hex(4))
        made = Elector(_lease(settings, client), times, identity=name, clock=clock)
        await made.start()
        yield made
    finally:
        await client.close()


async def alone(settings: Settings, client: ClusterClient) -> Alone:
    """Return the leadership of a single pass that may act.

    Args:
        settings: where the Lease is.
        client: to read it with.
    """
    lease = _lease(settings, client)
    try:
        known = await lease.read()
    except ClusterError as error:
        _log.warning("lease not read", why=str(error))
        return Alone()
    return Alone(None if known is None else known.last_cycle_at)


def _lease(settings: Settings, client: ClusterClient) -> LeaseObject:
    return LeaseObject(client, namespace=lease_namespace(settings.lease), name=settings.lease.name)

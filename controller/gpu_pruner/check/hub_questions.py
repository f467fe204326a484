"""What a check asks a JupyterHub: who it is, what our token may do, and which servers it shows.

Stops and starts nothing: what the token may do is read from its scopes. Called by `examination`.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_pruner.check.hubs import HubLook
from gpu_pruner.errors import HubError
from gpu_pruner.jupyterhub.client import HubClient
from gpu_pruner.settings.hubs import HubSettings


async def look_at(hub: HubSettings) -> HubLook:
    """Ask one Hub; what it does not answer is part of what is found.

    Raises:
        ConfigurationError: its CA bundle cannot be read.
    """
    client = HubClient(hub)
    try:
        return await _asked(client, hub)
    finally:
        await client.close()


async def _asked(client: HubClient, hub: HubSettings) -> HubLook:
    look = HubLook(namespace=hub.namespace, place=client.place, token_file=hub.token_file)
    try:
        look = replace(look, version=await client.version())
    except HubError as error:
        return replace(look, unreachable=str(error))
    try:
        look = replace(look, scopes=await client.scopes())
    except HubError as error:
        return replace(look, refused=str(error))
    try:
        return replace(look, active=len(await client.servers()))
    except HubError as error:
        return replace(look, unlisted=str(error))

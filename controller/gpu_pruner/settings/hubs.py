"""How to reach a JupyterHub: the section of the settings that switches its lever on.

A namespace belongs to one Hub, because a pod does not say which Hub it is of. `settings.schema`
includes it.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from gpu_pruner.settings.addresses import ServerAddress
from gpu_pruner.settings.section import Section


class HubSettings(Section):
    """One JupyterHub, and the namespace in which it spawns."""

    namespace: str = Field(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        description="Namespace of its user pods. Pods of users elsewhere stay bare pods.",
    )
    url: ServerAddress = Field(
        description="Base URL of the Hub, without /hub/api: for example http://hub.jhub:8081, "
        "with the Hub's base_url behind it where that is set."
    )
    token_file: Path = Field(
        description="File with an API token of the scopes list:users, read:servers, "
        "delete:servers and start:servers; read again for every request."
    )
    ca_file: Path | None = Field(None, description="CA bundle (PEM) for a private authority.")
    timeout_seconds: float = Field(
        15.0, gt=0, description="Longest wait for one answer; a Hub takes 10 s to stop a server."
    )


def one_hub_each(hubs: tuple[HubSettings, ...]) -> tuple[HubSettings, ...]:
    """Return the Hubs as they are.

    Raises:
        ValueError: two are for one namespace; as pydantic wants it.
    """
    seen: set[str] = set()
    for one in hubs:
        if one.namespace in seen:
            raise ValueError(f"two Hubs for namespace {one.namespace}")
        seen.add(one.namespace)
    return hubs

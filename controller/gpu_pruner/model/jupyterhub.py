"""Which server of which JupyterHub user: the names that a pod, the Hub and our books share.

A JupyterHub server is no object of the API server, so nothing there has a uid that lasts from one
start to the next. The Hub's own name for it does last: user and server name, which are unique
within one Hub, and a namespace belongs to one Hub.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID, uuid5

KIND = "JupyterServer"
"""What we call it as a root. No API serves such a kind."""
GROUP = "hub.jupyter.org"
"""Prefix of KubeSpawner's labels and annotations; it stands for an API group in our books."""

USERNAME = f"{GROUP}/username"
SERVERNAME = f"{GROUP}/servername"
"""Annotations that KubeSpawner writes on its pods, unescaped; the labels of these names are slugs.
The default server has none for its name, which is empty."""
STARTED = f"{GROUP}/started"
"""Ours, in pause records only: the start, as the Hub tells it, of the server that was stopped."""

_NAMES = UUID("6f1d6d9a-7c53-4c0e-9a53-0d6a2f4a5b1e")
"""Any constant will do: it keeps our uids apart from others that are made of names."""


@dataclass(frozen=True, slots=True, order=True)
class ServerName:
    """One server of one user, in the namespace in which its Hub spawns."""

    namespace: str
    user: str
    server: str = ""
    """Empty for the default server."""

    @property
    def uid(self) -> str:
        """Return what stands for a uid: the same for every start of the same server."""
        return str(uuid5(_NAMES, json.dumps([self.namespace, self.user, self.server])))

    @property
    def told(self) -> str:
        """Return how people know it: ``alice`` or ``alice/gpu``."""
        return f"{self.user}/{self.server}" if self.server else self.user

"""What a pod says about the JupyterHub server that it is: KubeSpawner's annotations.

Read from annotations, because the labels of the same names hold slugs. Anybody who may create pods
in the namespace can write them. `observe` and `act` call it.

Source: jupyterhub/kubespawner 7.1, ``_build_common_annotations``.
"""

from __future__ import annotations

from gpu_pruner.kube.wire import Meta
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.jupyterhub import ServerName


def server_of(meta: Meta) -> ServerName | None:
    """Return which server a pod that nobody owns says to be; None where it says nothing."""
    notes = meta.annotations or {}
    user = notes.get(jupyterhub.USERNAME)
    if not user or meta.controller is not None:
        return None
    return ServerName(meta.namespace, user, notes.get(jupyterhub.SERVERNAME, ""))

"""Pausing a Kubeflow Workspace: `spec.paused`. Called through `act.levers`.

Its controller owns the StatefulSet, so scaling that would be reverted (source: kubeflow/notebooks,
``workspace_controller.go``).
"""

from __future__ import annotations

from gpu_pruner.act.switches import SwitchLever
from gpu_pruner.kube.resources import WORKSPACES

WORKSPACE = SwitchLever(WORKSPACES, ("paused",))
"""Its defining webhook may hold a pause back until the Workspace is redirected; that is then seen
as a refusal by the API server."""

"""Which workloads the settings select at all: by the namespace, and by the models of the devices.

What is not selected is judged and shown like everything else, and never warned or paused. A device
whose model is not told is not selected by any expression. `assemble` asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpu_pruner.model.rules import Rules
from gpu_pruner.model.workload import GpuPod, RootRef


def is_selected(root: RootRef, pods: Iterable[GpuPod], rules: Rules) -> bool:
    """Return whether a workload may be paused as far as its namespace and its devices go.

    Args:
        root: of the workload.
        pods: its GPU pods; every device of theirs has to be of a selected model.
        rules: with the expressions, each for the whole of a name.
    """
    if rules.namespaces is not None and not re.fullmatch(rules.namespaces, root.namespace):
        return False
    if rules.models is None:
        return True
    models = {device.model for pod in pods for device in pod.devices}
    return all(re.fullmatch(rules.models, model) for model in models)

"""The kubectl lines that people are told, so that nobody needs us to overrule us.

Answers: what does one type to keep, exempt or bring back this workload. Never runs anything.
Called by `notify.messages` and by `act.actor` in its refusals; pure text.
"""

from __future__ import annotations

from shlex import quote

from gpu_pruner.model.annotations import EXEMPT, NOTEBOOK_STOPPED
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.workload import RootRef


def _target(root: RootRef) -> str:
    kind = f"{root.kind}.{root.group}" if "." in root.group else root.kind
    return f"{quote(kind.lower())} {quote(root.name)} -n {quote(root.namespace)}"


def keep_command(*, namespace: str, object_name: str, until: Timestamp) -> str:
    """Return the line that keeps a workload until a time.

    Args:
        namespace: of the workload.
        object_name: name of its GPUWorkload.
        until: Unix seconds, UTC.
    """
    patch = quote(f'{{"spec":{{"keepUntil":"{rfc3339(until)}"}}}}')
    target = f"{quote(object_name)} -n {quote(namespace)}"
    return f"kubectl patch gpw {target} --type merge -p {patch}"


def exempt_command(root: RootRef) -> str:
    """Return the line that exempts a workload for good."""
    return f"kubectl annotate {_target(root)} {EXEMPT}=true --overwrite"


def resume_command(root: RootRef, *, replicas: int | None) -> str:
    """Return the line that brings a paused workload back.

    Args:
        root: the paused root.
        replicas: its former size; None where it is unknown, or where the kind has none.
    """
    if root.kind == "Notebook":
        return f"kubectl annotate {_target(root)} {NOTEBOOK_STOPPED}-"
    size = "N" if replicas is None else str(replicas)
    return f"kubectl scale {_target(root)} --replicas={size}"

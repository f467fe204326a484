"""The kubectl lines that people are told, so that nobody needs us to overrule us.

Answers: what does one type to keep, exempt or bring back this workload. Never runs anything.
Called by `notify.messages` and by `act.actor` in its refusals; pure text.
"""

from __future__ import annotations

from shlex import quote

from gpu_pruner.model import jupyterhub
from gpu_pruner.model.annotations import (
    EXEMPT,
    KEDA_PAUSED_REPLICAS,
    KSERVE_STOP,
    NOTEBOOK_STOPPED,
)
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.workload import RootRef

_SWITCHES = {
    "Workspace": '{"spec":{"paused":false}}',
    "PyTorchJob": '{"spec":{"runPolicy":{"suspend":false}}}',
    **dict.fromkeys(("Job", "JobSet", "RayCluster", "TrainJob"), '{"spec":{"suspend":false}}'),
}
"""By kind: the patch that lets it run."""

_MARKS = {
    "Notebook": NOTEBOOK_STOPPED,
    "InferenceService": KSERVE_STOP,
    "LLMInferenceService": KSERVE_STOP,
}
"""By kind: the annotation that stops it."""


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


def exempt_command(root: RootRef, *, object_name: str) -> str:
    """Return the line that exempts a workload for good.

    A JupyterHub server is no object that could be annotated, and its pod ends with each stop.

    Args:
        root: the workload.
        object_name: name of its GPUWorkload.
    """
    if root.kind == jupyterhub.KIND:
        target = f"gpw {quote(object_name)} -n {quote(root.namespace)}"
        return _patch(target, '{"spec":{"exempt":true}}')
    return f"kubectl annotate {_target(root)} {EXEMPT}=true --overwrite"


def resume_command(root: RootRef, *, pause: PauseRecord | None) -> str:
    """Return the line that brings a paused workload back, or what to do where kubectl cannot.

    Args:
        root: the paused root.
        pause: what was taken; None where it is not known.
    """
    if root.kind == jupyterhub.KIND:
        return "start the server in JupyterHub"
    if pause is not None and pause.name:
        return _release(root, pause)
    if root.kind in _SWITCHES:
        return _patch(_target(root), _SWITCHES[root.kind])
    if root.kind == "InferenceService" and pause is not None and pause.replicas is not None:
        return _patch(
            _target(root), f'{{"spec":{{"predictor":{{"minReplicas":{pause.replicas}}}}}}}'
        )
    if root.kind in _MARKS:
        return f"kubectl annotate {_target(root)} {_MARKS[root.kind]}-"
    size = "N" if pause is None or pause.replicas is None else str(pause.replicas)
    return f"kubectl scale {_target(root)} --replicas={size}"


def _release(root: RootRef, pause: PauseRecord) -> str:
    """Return the line for what owns the root's size."""
    place = f"{quote(pause.name)} -n {quote(root.namespace)}"
    if pause.lever == "Workload":
        return _patch(f"workload.kueue.x-k8s.io {place}", '{"spec":{"active":true}}')
    held_at = pause.former.get(KEDA_PAUSED_REPLICAS)
    mark = "-" if held_at is None else f"={quote(held_at)} --overwrite"
    return f"kubectl annotate scaledobject.keda.sh {place} {KEDA_PAUSED_REPLICAS}{mark}"


def _patch(target: str, body: str) -> str:
    return f"kubectl patch {target} --type merge -p {quote(body)}"

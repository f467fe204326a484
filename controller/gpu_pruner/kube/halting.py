"""What the desired state of each kind says: pods, or no pods.

Answers in each kind's own terms whether an object is stopped, and who stopped it. Knows nothing of
why. `observe.cluster_records` asks it of every object that a watch brings, and the levers of `act`
of the object that they are about to patch, so that both mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpu_pruner.kube.managed import FieldSet
from gpu_pruner.kube.resources import (
    DEPLOYMENTS,
    INFERENCESERVICES,
    JOBS,
    JOBSETS,
    KUEUE_WORKLOADS,
    LEADERWORKERSETS,
    LLMINFERENCESERVICES,
    NOTEBOOKS,
    PYTORCHJOBS,
    RAYCLUSTERS,
    REPLICASETS,
    ROLLOUTS,
    SCALEDOBJECTS,
    STATEFULSETS,
    TRAINJOBS,
    WORKSPACES,
    Resource,
)
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import (
    KEDA_PAUSED_REPLICAS,
    KSERVE_FROZEN,
    KSERVE_STOP,
    NOTEBOOK_LOCK,
    NOTEBOOK_STOPPED,
    PAUSED,
)

SIZED: frozenset[Resource] = frozenset(
    {REPLICASETS, DEPLOYMENTS, STATEFULSETS, LEADERWORKERSETS, ROLLOUTS}
)
"""Kinds with ``spec.replicas``, which is 1 where it is absent."""

SUSPENDABLE: frozenset[Resource] = frozenset({JOBS, JOBSETS, RAYCLUSTERS, TRAINJOBS, PYTORCHJOBS})
"""Kinds that can be suspended; PyTorchJob in its ``runPolicy``, the others in their ``spec``."""

SERVED: frozenset[Resource] = frozenset({INFERENCESERVICES, LLMINFERENCESERVICES})
"""KServe's kinds."""


def replicas(owner: Owner) -> int:
    """Return the desired size; the API server's default for an unset ``spec.replicas`` is 1."""
    if owner.spec is None or owner.spec.replicas is None:
        return 1
    return owner.spec.replicas


def is_halted(owner: Owner, resource: Resource) -> bool:
    """Return whether the desired state of an object says: no pods.

    A kind that cannot be stopped never is.
    """
    says_so = _HALTED.get(resource)
    return says_so is not None and says_so(owner)


def _is_empty(owner: Owner) -> bool:
    return owner.spec is not None and replicas(owner) == 0


def _note(owner: Owner, key: str) -> str | None:
    """Return one annotation's value, or None where it is not set."""
    return (owner.metadata.annotations or {}).get(key)


def is_suspended(owner: Owner) -> bool:
    """Return whether a job of any kind is suspended."""
    if owner.spec is None:
        return False
    policy = owner.spec.run_policy
    return owner.spec.suspend is True or (policy is not None and policy.suspend is True)


def is_stopped(owner: Owner) -> bool:
    """Return whether KServe's stop annotation is set, read as KServe reads it."""
    return (_note(owner, KSERVE_STOP) or "").lower() == "true"


def is_drained(owner: Owner) -> bool:
    """Return whether an InferenceService was paused by its ``minReplicas``, and by us.

    Knative takes the pods of such a service away while nobody calls it. That is the normal state
    of many; only our record makes it a pause.
    """
    predictor = owner.spec.predictor if owner.spec else None
    noted = _note(owner, PAUSED) is not None
    return noted and predictor is not None and predictor.min_replicas == 0


def can_be_stopped(owner: Owner, resource: Resource) -> bool:
    """Return whether its platform, in this version and mode, would do what we write to stop it.

    Asked of KServe only: of its controllers one tells by the ``Stopped`` condition, which those
    without the stop annotation do not know (0.16 sets it on every service, 0.15 on serverless ones
    that were stopped before); of an older one, a service of Knative's can still be drained.
    """
    if resource is not INFERENCESERVICES:
        return True
    return not is_frozen(owner) and (knows_stop(owner) or is_serverless(owner))


def is_frozen(owner: Owner) -> bool:
    """Return whether the controller of an InferenceService is told to leave it alone."""
    return _note(owner, KSERVE_FROZEN) == "true"


def knows_stop(owner: Owner) -> bool:
    """Return whether the controller of an InferenceService is known to honour the annotation."""
    conditions = owner.status.conditions if owner.status else None
    return any(one.type == "Stopped" for one in conditions or ())


def is_serverless(owner: Owner) -> bool:
    """Return whether an InferenceService runs on Knative, as its controller noted."""
    mode = owner.status.deployment_mode if owner.status else None
    return mode in {"Serverless", "Knative"}


def halted_by(owner: Owner, resource: Resource) -> str:
    """Return the field manager that last wrote what stops or starts an object.

    Empty where nobody tells: after the removal of an annotation nobody does.
    """
    if resource in SIZED:
        return owner.metadata.sized_by
    return owner.metadata.written_by(lambda fields: _names_switch(fields, resource))


def drained_by(owner: Owner) -> str:
    """Return the field manager that last wrote an InferenceService's ``minReplicas``."""
    return owner.metadata.written_by(_names_least)


def is_paused_by_us(owner: Owner, resource: Resource) -> bool:
    """Return whether what stops an object and its pause record are ours, and ours alone.

    One patch writes both, so that the API server names us for both until somebody else touches
    either: who restarts an object and stops it again has made that stop their own, and a record
    that somebody wrote by hand is theirs.
    """
    return (
        is_halted(owner, resource)
        and owner.metadata.written_by_us(names_record)
        and owner.metadata.written_by_us(lambda fields: _names_stop(fields, owner, resource))
    )


def names_record(fields: FieldSet) -> bool:
    """Return whether a set of fields names our pause record."""
    notes = fields.metadata.annotations if fields.metadata else None
    return notes is not None and notes.paused is not None


def _names_stop(fields: FieldSet, owner: Owner, resource: Resource) -> bool:
    """Return whether a set of fields names what stops this very object."""
    notes = fields.metadata.annotations if fields.metadata else None
    if resource is NOTEBOOKS:
        return notes is not None and notes.notebook_stopped is not None
    if resource is INFERENCESERVICES and not is_stopped(owner):
        return _names_least(fields)
    if resource in SIZED:
        return fields.spec is not None and fields.spec.replicas is not None
    return _names_switch(fields, resource)


def _names_least(fields: FieldSet) -> bool:
    """Return whether a set of fields names an InferenceService's ``minReplicas``."""
    predictor = fields.spec.predictor if fields.spec else None
    return predictor is not None and predictor.min_replicas is not None


def _names_switch(fields: FieldSet, resource: Resource) -> bool:
    """Return whether a set of fields names the one that stops objects of this kind."""
    if resource in SERVED or resource is SCALEDOBJECTS:
        notes = fields.metadata.annotations if fields.metadata else None
        key = notes and (notes.kserve_stop if resource in SERVED else notes.keda_replicas)
        return key is not None
    spec = fields.spec
    if spec is None:
        return False
    if resource is PYTORCHJOBS:
        return spec.run_policy is not None and spec.run_policy.suspend is not None
    if resource is WORKSPACES:
        return spec.paused is not None
    if resource is KUEUE_WORKLOADS:
        return spec.active is not None
    return spec.suspend is not None


_HALTED: Mapping[Resource, Callable[[Owner], bool]] = {
    **dict.fromkeys(SIZED, _is_empty),
    **dict.fromkeys(SUSPENDABLE, is_suspended),
    **dict.fromkeys(SERVED, lambda owner: is_stopped(owner) or is_drained(owner)),
    NOTEBOOKS: lambda owner: _note(owner, NOTEBOOK_STOPPED) not in {None, NOTEBOOK_LOCK},
    WORKSPACES: lambda owner: owner.spec is not None and owner.spec.paused is True,
    SCALEDOBJECTS: lambda owner: _note(owner, KEDA_PAUSED_REPLICAS) == "0",
    KUEUE_WORKLOADS: lambda owner: owner.spec is not None and owner.spec.active is False,
}

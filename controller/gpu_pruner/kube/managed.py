"""``metadata.managedFields``: who wrote what of an object, cut down to the fields that stop things.

Nothing here judges who may write. `kube.wire` reads owners with it.
"""

from __future__ import annotations

import msgspec

FIELD_MANAGER = "gpu-pruner"
"""What the API server calls us in ``managedFields``: the name in our User-Agent."""


class _Named(msgspec.Struct, frozen=True, gc=False):
    """A field that a `FieldSet` names; what is below it does not matter."""


class RunPolicyFields(msgspec.Struct, frozen=True, gc=False):
    """``f:runPolicy`` of a PyTorchJob."""

    suspend: _Named | None = msgspec.field(default=None, name="f:suspend")


class PredictorFields(msgspec.Struct, frozen=True, gc=False):
    """``f:predictor`` of an InferenceService."""

    min_replicas: _Named | None = msgspec.field(default=None, name="f:minReplicas")


class SpecFields(msgspec.Struct, frozen=True, gc=False):
    """``f:spec`` of a `FieldSet`, as far as sizes and switches go."""

    replicas: _Named | None = msgspec.field(default=None, name="f:replicas")
    paused: _Named | None = msgspec.field(default=None, name="f:paused")
    suspend: _Named | None = msgspec.field(default=None, name="f:suspend")
    run_policy: RunPolicyFields | None = msgspec.field(default=None, name="f:runPolicy")
    active: _Named | None = msgspec.field(default=None, name="f:active")
    predictor: PredictorFields | None = msgspec.field(default=None, name="f:predictor")


class AnnotationFields(msgspec.Struct, frozen=True, gc=False):
    """``f:annotations`` of a `FieldSet`: the keys that stop something, and our pause record."""

    paused: _Named | None = msgspec.field(default=None, name="f:gpu-pruner.io/paused")
    notebook_stopped: _Named | None = msgspec.field(
        default=None, name="f:kubeflow-resource-stopped"
    )

    kserve_stop: _Named | None = msgspec.field(default=None, name="f:serving.kserve.io/stop")
    keda_replicas: _Named | None = msgspec.field(
        default=None, name="f:autoscaling.keda.sh/paused-replicas"
    )


class MetaFields(msgspec.Struct, frozen=True, gc=False):
    """``f:metadata`` of a `FieldSet`."""

    annotations: AnnotationFields | None = msgspec.field(default=None, name="f:annotations")


class FieldSet(msgspec.Struct, frozen=True, gc=False):
    """``fieldsV1``: which fields somebody wrote."""

    metadata: MetaFields | None = msgspec.field(default=None, name="f:metadata")
    spec: SpecFields | None = msgspec.field(default=None, name="f:spec")


class ManagedFields(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One entry of ``metadata.managedFields``: who wrote what, and when."""

    manager: str = ""
    time: str | None = None
    fields_v1: FieldSet | None = None

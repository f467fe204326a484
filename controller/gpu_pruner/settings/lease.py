"""The section ``lease``: which of several replicas acts, and where they agree on it.

The times are those of Kubernetes' own controllers (``--leader-elect-lease-duration`` and the like).
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from gpu_pruner.settings.section import Duration, Section

OWN_NAMESPACE = "gpu-pruner-system"
"""Where `deploy/kustomize/base` puts us."""

_NAME = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"


class LeaseSettings(Section):
    """Which of several replicas acts: the one that holds the Lease. The others watch and answer."""

    name: str = Field("gpu-pruner", pattern=_NAME, max_length=253, description="Name of the Lease.")
    namespace: str | None = Field(
        None,
        pattern=_NAME,
        max_length=63,
        description="Its namespace. Unset: the one that we run in, and outside a cluster "
        f"{OWN_NAMESPACE}, so that a run from elsewhere stands in line with what is installed.",
    )
    identity: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="Name of this replica in it; the host's where unset. A random ending is added.",
    )
    duration_seconds: Duration = Field(
        15.0, gt=0, description="How long the others wait for a leader that is not heard of."
    )
    renew_deadline_seconds: Duration = Field(
        10.0, gt=0, description="How long the leader acts on without a renewal; shorter than that."
    )
    retry_seconds: Duration = Field(
        2.0, gt=0, description="Time between two renewals, or two looks at the Lease."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not 2 * self.retry_seconds < self.renew_deadline_seconds < self.duration_seconds:
            message = (
                "the times do not fit together: duration > renew deadline > twice the retry, "
                "or a leader would act after another took over, or give up after one lost answer"
            )
            raise ValueError(message)
        if self.duration_seconds != int(self.duration_seconds):
            raise ValueError("duration_seconds must be whole: a Lease has no parts of seconds")
        return self

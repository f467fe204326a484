"""What a lever needs to know of an object that was read right before a write.

Answers in the API server's own terms: a field that it omits has its default. Called by the levers
and `act.actor`, with what `ClusterClient.get` decoded.
"""

from __future__ import annotations

from gpu_pruner.kube.wire import Owner, OwnerSpec, PodTemplate


class LiveSpec(OwnerSpec, frozen=True, gc=False, rename="camel"):
    """``spec`` of an owner with its pod template, which the watch leaves out: it is long."""

    template: PodTemplate | None = None


class LiveOwner(Owner, frozen=True, gc=False):
    """An owner as it is read right before a write."""

    spec: LiveSpec | None = None


def template_of(live: Owner) -> PodTemplate | None:
    """Return the pod template, where the kind has one that we know."""
    return live.spec.template if isinstance(live, LiveOwner) and live.spec else None


def annotation(live: Owner, key: str) -> str | None:
    """Return one annotation's value, or None where it is not set."""
    return (live.metadata.annotations or {}).get(key)

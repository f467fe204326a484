"""What a lever needs to know of an object that was read right before a write.

Answers in the API server's own terms: a field that it omits has its default. Called by the levers
and `act.actor`, with what `ClusterClient.get` decoded.
"""

from __future__ import annotations

from gpu_pruner.kube.wire import Owner


def annotation(live: Owner, key: str) -> str | None:
    """Return one annotation's value, or None where it is not set."""
    return (live.metadata.annotations or {}).get(key)


def replicas(live: Owner) -> int:
    """Return the desired size; the API server's default for an unset ``spec.replicas`` is 1."""
    if live.spec is None or live.spec.replicas is None:
        return 1
    return live.spec.replicas

"""Which kinds may be paused, and how others can be.

Holds the names of the kinds that have a lever, those of them that lose their progress by a stop,
and the settings of levers for kinds that we do not know. Says nothing of how a lever works.
`settings.schema` includes it.
"""

from __future__ import annotations

KIND_LETTERS = {
    "d": "Deployment",
    "r": "ReplicaSet",
    "s": "StatefulSet",
    "i": "InferenceService",
    "n": "Notebook",
    "l": "LeaderWorkerSet",
}
"""The Rust tool's letters for `-e`."""

LOSING_KINDS: frozenset[str] = frozenset({"Job", "JobSet", "PyTorchJob", "RayCluster", "TrainJob"})
"""Kinds whose pods begin anew after a stop, with whatever checkpoint they wrote."""

KINDS: frozenset[str] = (
    frozenset(KIND_LETTERS.values())
    | LOSING_KINDS
    | {"LLMInferenceService", "Rollout", "Workspace"}
)
"""Every root kind with a lever of ours."""


def known_kinds(kinds: frozenset[str]) -> frozenset[str]:
    """Return the kinds as they are.

    Raises:
        ValueError: there is none of that name; as pydantic wants it.
    """
    unknown = sorted(kinds - KINDS)
    if unknown:
        raise ValueError(f"unknown kind {unknown[0]!r}; known: {', '.join(sorted(KINDS))}")
    return kinds

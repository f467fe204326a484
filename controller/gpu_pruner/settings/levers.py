"""Which kinds may be paused, and how others can be.

Holds the names of the kinds that have a lever, those of them that lose their progress by a stop,
and the settings of levers for kinds that we do not know. Says nothing of how a lever works.
`settings.schema` includes it.
"""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, field_validator, model_validator

from gpu_pruner.model import jupyterhub
from gpu_pruner.model.annotations import PREFIX
from gpu_pruner.settings.expressions import Expression, Path
from gpu_pruner.settings.section import Section

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
    | {"LLMInferenceService", "Rollout", "Workspace", jupyterhub.KIND}
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


class CustomLever(Section):
    """How a kind that we do not know is paused: by a size, or by a pair of patches."""

    group: str = Field(pattern=r"^[a-z0-9.-]+\.[a-z0-9-]+$", description="Its API group.")
    version: str = Field(pattern=r"^v[0-9]+[a-z0-9]*$", description="The version to use.")
    plural: str = Field(pattern=r"^[a-z0-9-]+$", description="Lower-case plural, as in RBAC.")
    kind: str = Field(pattern=r"^[A-Z][A-Za-z0-9]*$", description="Its kind.")
    owns: tuple[str, ...] = Field(
        ("Pod", "apps/ReplicaSet", "apps/StatefulSet", "apps/Deployment", "batch/Job"),
        min_length=1,
        description="What its controller makes: kinds, with their API group before a slash.",
    )
    replicas: str | None = Field(
        None, description="Path of the size, for example spec.replicas; a pause sets it to 0."
    )
    pause: dict[str, object] | None = Field(
        None, description="Merge patch that stops it; below spec or metadata.annotations."
    )
    restore: dict[str, object] | None = Field(None, description="Merge patch that undoes that.")
    paused_when: str | None = Field(
        None,
        description='When its desired state says: no pods. For example spec.mode == "stopped".',
    )
    ready_when: str | None = Field(
        None,
        description="When it is back after a restore. For example status.ready >= spec.workers.",
    )

    @field_validator("replicas")
    @classmethod
    def _is_path(cls, text: str | None) -> str | None:
        if text is not None and Path.parse(text).keys[0] != "spec":
            raise ValueError("a size that can be set is below spec")
        return text

    @field_validator("paused_when", "ready_when")
    @classmethod
    def _is_expression(cls, text: str | None) -> str | None:
        if text is not None:
            Expression.parse(text)
        return text

    @field_validator("owns")
    @classmethod
    def _are_kinds(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        for one in kinds:
            if not _KIND.fullmatch(one):
                raise ValueError(f"{one[:60]!r} is not a kind like Pod or apps/StatefulSet")
        return kinds

    @field_validator("pause", "restore")
    @classmethod
    def _changes_only(cls, patch: dict[str, object] | None) -> dict[str, object] | None:
        if patch is not None:
            _check_patch(patch)
        return patch

    @model_validator(mode="after")
    def _is_one_way(self) -> Self:
        pair = (self.pause, self.restore, self.paused_when, self.ready_when)
        if self.replicas is not None and (self.pause or self.restore or self.paused_when):
            raise ValueError("give either replicas, or pause, restore, paused_when and ready_when")
        if self.replicas is None and None in pair:
            raise ValueError("without replicas: pause, restore, paused_when and ready_when")
        if self.kind in KINDS:
            raise ValueError(f"{self.kind} has a lever already")
        return self

    @property
    def made(self) -> frozenset[tuple[str, str]]:
        """Return group and kind of what its controller makes."""
        split = (one.rpartition("/") for one in self.owns)
        return frozenset((group, kind) for group, _, kind in split)


_KIND = re.compile(r"(?:[a-z0-9.-]+/)?[A-Z][A-Za-z0-9]*")


def _check_patch(patch: dict[str, object]) -> None:
    """Pass where a patch changes no more than what somebody may want of an object.

    Raises:
        ValueError: it changes something else; as pydantic wants it.
    """
    if not patch or set(patch) - {"spec", "metadata"}:
        raise ValueError("a patch changes spec, or metadata.annotations, and nothing else")
    meta = patch.get("metadata", {"annotations": {}})
    notes = meta.get("annotations") if isinstance(meta, dict) and len(meta) == 1 else None
    if not isinstance(notes, dict):
        raise ValueError("of metadata, a patch changes only annotations")  # noqa: TRY004 - as pydantic wants it
    ours = [key for key in notes if key.startswith(PREFIX)]
    if ours:
        raise ValueError(f"{ours[0]} is an annotation of ours")


def distinct(levers: tuple[CustomLever, ...]) -> tuple[CustomLever, ...]:
    """Return the levers as they are.

    Raises:
        ValueError: two are for one kind; as pydantic wants it.
    """
    seen: set[str] = set()
    for one in levers:
        if one.kind in seen:
            raise ValueError(f"two levers for {one.kind}")
        seen.add(one.kind)
    return levers

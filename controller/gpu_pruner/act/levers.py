"""The levers that there are, and the one question to ask of this list: which one fits a root.

Called by `act.actor`, and by `cli` for a person's own order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpu_pruner.act.custom import custom_lever
from gpu_pruner.act.deployment import DEPLOYMENT
from gpu_pruner.act.inferenceservice import INFERENCE_SERVICE
from gpu_pruner.act.jobs import JOB, JOB_SET, PYTORCH_JOB, RAY_CLUSTER, TRAIN_JOB
from gpu_pruner.act.leaderworkerset import LEADER_WORKER_SET
from gpu_pruner.act.lever import Lever
from gpu_pruner.act.llminferenceservice import LLM_INFERENCE_SERVICE
from gpu_pruner.act.notebook import NOTEBOOK
from gpu_pruner.act.replicaset import REPLICA_SET
from gpu_pruner.act.rollout import ROLLOUT
from gpu_pruner.act.statefulset import STATEFUL_SET
from gpu_pruner.act.workspace import WORKSPACE
from gpu_pruner.settings.levers import CustomLever

LEVERS: tuple[Lever, ...] = (
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    LEADER_WORKER_SET,
    ROLLOUT,
    NOTEBOOK,
    WORKSPACE,
    INFERENCE_SERVICE,
    LLM_INFERENCE_SERVICE,
    JOB,
    JOB_SET,
    PYTORCH_JOB,
    RAY_CLUSTER,
    TRAIN_JOB,
)
"""Every lever that is the root itself, one per kind."""

LEVER_KINDS: frozenset[str] = frozenset(lever.kind for lever in LEVERS)
"""The kinds that can be paused without a word in the settings."""


@dataclass(frozen=True, slots=True)
class Levers:
    """The levers of one process: those that there are, and those of the settings."""

    custom: tuple[Lever, ...] = ()

    @classmethod
    def of_settings(cls, levers: Iterable[CustomLever]) -> Levers:
        """Return what the settings name, beside those that there are."""
        return cls(tuple(custom_lever(one) for one in levers))

    @property
    def kinds(self) -> frozenset[str]:
        """Return the kinds that can be paused."""
        return LEVER_KINDS | {one.kind for one in self.custom}

    def find(self, kind: str, group: str) -> Lever | None:
        """Return the lever of a root, by kind *and* group, or None where there is none.

        Args:
            kind: for example ``Deployment``.
            group: API group, for example ``apps``. Another group's Deployment is another thing.
        """
        every = (*LEVERS, *self.custom)
        return next((one for one in every if (one.kind, one.group) == (kind, group)), None)


def lever_for(kind: str, group: str) -> Lever | None:
    """Return a lever as `Levers.find` does, of those that need no settings."""
    return Levers().find(kind, group)

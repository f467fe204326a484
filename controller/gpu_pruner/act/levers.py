"""The levers that there are, and the one question to ask of this list: which one fits a root.

Called by `act.actor`, and by `cli` for a person's own order.
"""

from __future__ import annotations

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
"""The kinds that can be paused."""


def lever_for(kind: str, group: str) -> Lever | None:
    """Return the lever of a root, by kind *and* group, or None where there is none.

    Args:
        kind: for example ``Deployment``.
        group: API group, for example ``apps``. Another group's Deployment is another thing.
    """
    return next((one for one in LEVERS if (one.kind, one.group) == (kind, group)), None)

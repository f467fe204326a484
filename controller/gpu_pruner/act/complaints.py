"""A pause that was wrong: what somebody says of it is written where the leader counts it.

The complaint and the exemption that goes with it are one write into the spec of the GPUWorkload.
The decision's own sentence goes with it, because a restore removes the record of the pause. What is
said of one pause twice is one complaint. Restores nothing. Called by `cli`, with the person's own
rights.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.act.announcing import CONTROLLER
from gpu_pruner.act.intents import Exempt, Spec, create, fields_of, signed
from gpu_pruner.act.levers import Levers
from gpu_pruner.act.ports import Cluster
from gpu_pruner.act.wishes import intent_of
from gpu_pruner.errors import ActionRefused, NotFound
from gpu_pruner.kube.gpuworkload_spec import LONGEST_NAME, LONGEST_REASON
from gpu_pruner.kube.gpuworkloads import name_for
from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.units import DAY, Seconds, Timestamp, rfc3339
from gpu_pruner.model.workload import Intent, RootRef
from gpu_pruner.resolve.annotations import shown

EXEMPT_FOR: Seconds = DAY
"""How long a workload is exempt whose pause was wrong: a working day and the night around it, in
which its owner can say for how long it really has to be left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """What somebody says of a pause."""

    by: str
    """Who says so, as the API server knows them."""
    reason: str
    at: Timestamp


async def complain(
    client: Cluster, root: RootRef, record: PauseRecord, said: Wrong, *, levers: Levers
) -> Timestamp | None:
    """Call a pause wrong, and exempt its workload for a while.

    An exemption that reaches farther stays as it is.

    Args:
        client: with no fence.
        root: with its uid.
        record: of the pause.
        said: who says what of it.
        levers: those of the settings, too: where their kinds live.

    Returns:
        Until when it is exempt; None where it is for good.

    Raises:
        ActionRefused: the pause was a person's order, so that no evidence of ours was wrong; or the
            GPUWorkload kind, or the namespace, does not exist.
        ClusterError: no usable answer.
    """
    if record.by != CONTROLLER:
        raise ActionRefused(
            f"{root.ref} was paused by {shown(record.by) or 'somebody'} and not by what was "
            "measured; resume it without --wrong"
        )
    until: Timestamp | None = float(int(said.at + EXEMPT_FOR))
    spec = _complaint(record, said)
    now = await intent_of(client, root)
    if _reaches(now, until):
        until = now.exempt_until
    else:
        why = f"its pause was wrong: {said.reason}"
        spec = {**fields_of(Exempt(until=until, by=said.by, reason=why)), **spec}
    try:
        await client.patch(GPUWORKLOADS, name_for(root), {"spec": spec}, namespace=root.namespace)
    except NotFound:
        await create(client, root, spec, levers=levers)
    return until


def _complaint(record: PauseRecord, said: Wrong) -> Spec:
    paused_at = rfc3339(record.at)
    return {
        "wrongPause": (record.decision or paused_at)[:LONGEST_NAME],
        "wrongPausedAt": paused_at,
        "wrongEvidence": record.why[:LONGEST_REASON],
        "wrongAt": rfc3339(said.at),
        **signed("wrong", said.by, said.reason),
    }


def _reaches(intent: Intent, until: Timestamp | None) -> bool:
    """Whether there is an exemption already that ends no earlier."""
    if not intent.exempt:
        return False
    return intent.exempt_until is None or (until is not None and intent.exempt_until >= until)

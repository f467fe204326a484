"""What people ask for, written where the leader reads it: the spec of a GPUWorkload.

A person may keep a workload, exempt it, give it back, and withdraw each of these. Each wish says
who asks and why. Answers nothing and decides nothing: how long a keep or a release is honoured is
decided when it is read. Any replica writes it, whether it leads or not, because people must not
need to know which one does. Called by `serve`, after it has found out who asks and that they may,
and by `cli` with the person's own rights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from gpu_pruner.act.levers import Levers
from gpu_pruner.act.ports import Cluster
from gpu_pruner.act.wishes import intent_of
from gpu_pruner.errors import ActionRefused, Conflict, NotFound
from gpu_pruner.kube.gpuworkload_spec import LONGEST_NAME, LONGEST_REASON
from gpu_pruner.kube.gpuworkloads import manifest_for, name_for
from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.workload import Intent, Release, RootRef
from gpu_pruner.resolve.annotations import shown

__all__ = ["LONGEST_REASON", "Exempt", "Keep", "Kind", "Release", "Wish", "Withdrawal", "ask"]


class Kind(StrEnum):
    """What a person can ask for, as routes and commands name it."""

    KEEP = "keep"
    EXEMPT = "exempt"
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Somebody wants a workload to be kept."""

    until: Timestamp
    by: str
    """Who asks, as the API server knows them."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exempt:
    """Somebody wants a workload never to be paused."""

    until: Timestamp | None
    """None: for good."""
    by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """Somebody takes a wish back, their own or another's."""

    of: Kind
    by: str
    reason: str


Wish: TypeAlias = Keep | Exempt | Release | Withdrawal
Spec: TypeAlias = Mapping[str, str | bool | None]
"""Fields of a GPUWorkload's spec; None removes one."""

_EMPTY: Mapping[Kind, Spec] = {
    Kind.KEEP: dict.fromkeys(("keepUntil", "keepBy", "keepReason")),
    Kind.EXEMPT: dict.fromkeys(("exempt", "exemptUntil", "exemptBy", "exemptReason")),
    Kind.RELEASE: dict.fromkeys(("release", "releaseAt", "releaseBy", "releaseReason")),
}


async def ask(
    client: Cluster,
    root: RootRef,
    wish: Wish,
    *,
    levers: Levers | None = None,
    object_name: str = "",
) -> None:
    """Write a wish into the root's GPUWorkload, which is made where there is none.

    A wish takes the place of the one of its kind before. A keep or an exemption takes a release
    back, because it is the later word; a release ends a keep of the same person, and no other.

    Args:
        client: with no fence.
        root: with its uid.
        wish: who asks for what, and why.
        levers: those of the settings, too: where their kinds live.
        object_name: name of the GPUWorkload where it is known.

    Raises:
        ActionRefused: the GPUWorkload kind, or the namespace, does not exist; or somebody's keep or
            exemption stands against a release.
        ClusterError: no usable answer.
    """
    if isinstance(wish, Release):
        _check_release(await intent_of(client, root), wish)
    name, spec = object_name or name_for(root), fields_of(wish)
    try:
        await client.patch(GPUWORKLOADS, name, {"spec": spec}, namespace=root.namespace)
    except NotFound:
        if not isinstance(wish, Withdrawal):
            await create(client, root, spec, levers=levers or Levers())


def fields_of(wish: Wish) -> Spec:
    """Return what a wish changes in the spec."""
    match wish:
        case Keep():
            told = {"keepUntil": rfc3339(wish.until)} | signed("keep", wish.by, wish.reason)
            return {**_EMPTY[Kind.RELEASE], **told}
        case Exempt():
            until = None if wish.until is None else rfc3339(wish.until)
            told = signed("exempt", wish.by, wish.reason)
            return {**_EMPTY[Kind.RELEASE], "exempt": True, "exemptUntil": until, **told}
        case Release():
            told = {"releaseAt": rfc3339(wish.at)} | signed("release", wish.by, wish.reason)
            return {**_EMPTY[Kind.KEEP], "release": True, **told}
        case Withdrawal():
            return _EMPTY[wish.of]


def signed(kind: str, by: str, reason: str) -> dict[str, str]:
    """Return who wishes something, and why, as fields of the spec."""
    return {f"{kind}By": by[:LONGEST_NAME], f"{kind}Reason": reason[:LONGEST_REASON]}


def _check_release(intent: Intent, release: Release) -> None:
    """Pass where no other wish stands against a release; deciding looks again, and at all wishes.

    Raises:
        ActionRefused: says whose wish it is.
    """
    if intent.exempt and (intent.exempt_until is None or intent.exempt_until > release.at):
        raise ActionRefused("it is exempt; take the exemption back first")
    keeps = intent.keep_until is not None and intent.keep_until > release.at
    if keeps and intent.keep_by != release.by:
        who = shown(intent.keep_by) or "somebody"
        until = rfc3339(intent.keep_until or release.at)
        raise ActionRefused(f"it is kept by {who} until {until}; a release does not end that")


async def create(client: Cluster, root: RootRef, spec: Spec, *, levers: Levers) -> None:
    """Make the root's GPUWorkload with a wish in it.

    Raises:
        ActionRefused: the GPUWorkload kind, or the namespace, does not exist.
        ClusterError: no usable answer.
    """
    lever = levers.find(root.kind, root.group)
    manifest = dict(manifest_for(root, lever.resource if lever else None))
    about = manifest["spec"]
    if not isinstance(about, dict):
        raise TypeError("the manifest of a GPUWorkload has a spec")
    wanted = {name: value for name, value in spec.items() if value is not None}
    try:
        body = manifest | {"spec": about | wanted}
        await client.create(GPUWORKLOADS, body, namespace=root.namespace)
    except Conflict:  # the leader was faster
        patch = {"spec": spec}
        await client.patch(GPUWORKLOADS, name_for(root), patch, namespace=root.namespace)
    except NotFound as error:
        raise ActionRefused(
            "there is no GPUWorkload kind, or no such namespace, any more"
        ) from error

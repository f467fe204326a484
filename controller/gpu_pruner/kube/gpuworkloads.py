"""The `GPUWorkload` object: its type, its name, and how it is made and patched.

The Structs here and in `kube.gpuworkload_spec` are the one definition of the CRD: `kube.crd` writes
``deploy/crds`` from them, and `kube.bookkeeping` reads objects with them. Nothing here sends
anything; `act` does.

The status keeps times to the second, as the API server writes them. `whole_seconds` rounds a
book the same way, so that a book that was written and read back is equal to itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import msgspec

from gpu_pruner.errors import ClusterError
from gpu_pruner.kube.gpuworkload_spec import TIME, Time
from gpu_pruner.kube.resources import GPUWORKLOADS, JUPYTERSERVERS, Resource, resource_for
from gpu_pruner.kube.wire import Meta
from gpu_pruner.model.book import Book, PauseRecord, Phase
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.model.workload import RootRef

_NAME_LIMIT = 63
"""So that the name also fits into a label value."""
_UID_SHOWN = 8

_About = msgspec.Meta
_NOT_NEGATIVE = {"minimum": 0}


class PauseStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What was taken, mirrored from the record on the lever object."""

    lever: Annotated[str, _About(description="Kind of the object that was patched.")]
    uid: Annotated[str, _About(description="uid of that object.")]
    generation: Annotated[int, _About(description="Its generation before the patch.")]
    at: Annotated[Time, _About(description="When.", extra_json_schema=TIME)]
    decision: Annotated[str, _About(description="Decision id, as in the log.")]
    why: Annotated[str, _About(description="The evidence, in a sentence.")]
    by: Annotated[str, _About(description="Who ordered it.")]
    replicas: Annotated[
        int | None,
        _About(
            description="Former size; absent for a kind without one.",
            extra_json_schema=_NOT_NEGATIVE,
        ),
    ] = None
    name: Annotated[
        str | None,
        _About(description="Name of the object that was patched, where that is not the root."),
    ] = None
    former: Annotated[
        dict[str, str] | None,
        _About(
            description="Former values of the annotations that the pause replaced; of a JupyterHub "
            "server: whose it is, and which start was stopped."
        ),
    ] = None


class GPUWorkloadStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What the controller remembers of the workload. Written on transitions only."""

    phase: Annotated[Phase | None, _About(description="Where the workload stands.")] = None
    verdict: Annotated[Verdict | None, _About(description="What the evidence says.")] = None
    reason: Annotated[str | None, _About(description="Why it is where it is, in a word.")] = None
    message: Annotated[str | None, _About(description="The evidence, in a sentence.")] = None
    gpus: Annotated[
        int | None,
        _About(description="GPUs that it requests.", extra_json_schema=_NOT_NEGATIVE),
    ] = None
    confirmations: Annotated[
        int | None,
        _About(description="Cycles in a row that found it idle.", extra_json_schema=_NOT_NEGATIVE),
    ] = None
    idle_since: Annotated[
        Time | None,
        _About(description="No work was seen since then.", extra_json_schema=TIME),
    ] = None
    nominated_at: Annotated[
        Time | None, _About(description="First found idle.", extra_json_schema=TIME)
    ] = None
    warned_at: Annotated[
        Time | None, _About(description="The warning was delivered.", extra_json_schema=TIME)
    ] = None
    warned_via: Annotated[
        tuple[str, ...] | None, _About(description="Channels that confirmed the warning.")
    ] = None
    warned_mode: Annotated[
        str | None, _About(description="Mode of the controller when it warned.")
    ] = None
    pause_at: Annotated[
        Time | None, _About(description="The pause is due.", extra_json_schema=TIME)
    ] = None
    frozen_since: Annotated[
        Time | None,
        _About(description="The deadline moves with the clock since then.", extra_json_schema=TIME),
    ] = None
    paused_at: Annotated[
        Time | None, _About(description="The pause was ordered.", extra_json_schema=TIME)
    ] = None
    pause: Annotated[PauseStatus | None, _About(description="What was taken.")] = None
    long_keep_until: Annotated[
        Time | None,
        _About(description="End of a keep beyond the cap, as asked for.", extra_json_schema=TIME),
    ] = None
    long_keep_read_at: Annotated[
        Time | None,
        _About(description="The cap of that keep counts from here.", extra_json_schema=TIME),
    ] = None
    alerts_in: Annotated[
        tuple[str, ...] | None,
        _About(description="Channels that hold an alert about it open."),
    ] = None
    reverted_by: Annotated[
        str | None, _About(description="Field manager that took the last pause back, if unknown.")
    ] = None
    contested_by: Annotated[
        str | None, _About(description="Field manager that the workload is left to.")
    ] = None
    contested_until: Annotated[
        Time | None,
        _About(description="It is left alone until then.", extra_json_schema=TIME),
    ] = None
    counted_wrong: Annotated[
        str | None,
        _About(description="Decision id of the last pause that was called wrong and is counted."),
    ] = None


class GPUWorkload(msgspec.Struct, frozen=True, gc=False):
    """A GPUWorkload as sent. Spec and status stay undecoded, for anybody may have edited them."""

    metadata: Meta = Meta()
    spec: msgspec.Raw = msgspec.Raw()
    status: msgspec.Raw = msgspec.Raw()


def name_for(root: RootRef) -> str:
    """Return the name of a root's GPUWorkload: ``<kind>-<name, cut>-<first 8 of uid>``.

    Raises:
        ClusterError: the root has no uid, so its GPUWorkload cannot be named.
    """
    if not root.uid:
        raise ClusterError(f"{root.ref} has no uid, so no GPUWorkload can be named for it")
    kind = root.kind.lower()
    tail = re.sub(r"[^a-z0-9]", "", root.uid.lower())[:_UID_SHOWN]
    room = _NAME_LIMIT - len(kind) - len(tail) - 2
    return f"{kind}-{root.name[:room].strip('-.')}-{tail}"


def manifest_for(root: RootRef, resource: Resource | None = None) -> Mapping[str, object]:
    """Return a new GPUWorkload for a root: owned by it, so that it goes when the root goes.

    A JupyterHub server is no object, so that nothing can be owned by it: an owner that does not
    exist would have the garbage collector delete the GPUWorkload.

    Args:
        root: with its uid.
        resource: where the root's kind lives; None to look it up among those that we know.

    Raises:
        ClusterError: the root's uid or the API version of its kind is not known.
    """
    resource = resource or _resource_of(root)
    about = {
        "apiVersion": resource.api_version,
        "kind": root.kind,
        "name": root.name,
        "uid": root.uid,
    }
    owners = {} if resource is JUPYTERSERVERS else {"ownerReferences": [about]}
    return {
        "apiVersion": GPUWORKLOADS.api_version,
        "kind": GPUWORKLOADS.kind,
        "metadata": {"name": name_for(root), "namespace": root.namespace, **owners},
        "spec": {"rootRef": about},
    }


def status_patch(book: Book) -> Mapping[str, object]:
    """Return the merge patch for the ``status`` subresource that makes the status say `book`.

    Unset fields are null, which removes them. Where the book was read from an object, its
    resourceVersion is a precondition. Times are rounded as `whole_seconds` does.
    """
    body: dict[str, object] = {"status": msgspec.to_builtins(_to_wire(book))}
    if book.resource_version:
        body["metadata"] = {"resourceVersion": book.resource_version}
    return body


def whole_seconds(book: Book) -> Book:
    """Return the book as it comes back after it was written: times rounded to the second."""
    pause = book.pause and replace(book.pause, at=float(round(book.pause.at)))
    return replace(
        book,
        idle_since=_rounded(book.idle_since),
        nominated_at=_rounded(book.nominated_at),
        warned_at=_rounded(book.warned_at),
        pause_at=_rounded(book.pause_at),
        frozen_since=_rounded(book.frozen_since),
        paused_at=_rounded(book.paused_at),
        long_keep_until=_rounded(book.long_keep_until),
        long_keep_read_at=_rounded(book.long_keep_read_at),
        contested_until=_rounded(book.contested_until),
        pause=pause,
    )


def _resource_of(root: RootRef) -> Resource:
    resource = resource_for(root.group, root.kind)
    if resource is None:
        raise ClusterError(f"{root.ref}: no API version is known for {root.kind} {root.group}")
    return resource


def _to_wire(book: Book) -> GPUWorkloadStatus:
    return GPUWorkloadStatus(
        phase=book.phase,
        verdict=Verdict(book.verdict) if book.verdict else None,
        reason=book.reason or None,
        message=book.message or None,
        gpus=book.gpus,
        confirmations=book.confirmations,
        idle_since=_written(book.idle_since),
        nominated_at=_written(book.nominated_at),
        warned_at=_written(book.warned_at),
        warned_via=book.warned_via or None,
        warned_mode=book.warned_mode or None,
        pause_at=_written(book.pause_at),
        frozen_since=_written(book.frozen_since),
        paused_at=_written(book.paused_at),
        pause=_pause_to_wire(book.pause) if book.pause else None,
        long_keep_until=_written(book.long_keep_until),
        long_keep_read_at=_written(book.long_keep_read_at),
        alerts_in=book.alerts_in or None,
        reverted_by=book.reverted_by or None,
        contested_by=book.contested_by or None,
        contested_until=_written(book.contested_until),
        counted_wrong=book.counted_wrong or None,
    )


def _pause_to_wire(pause: PauseRecord) -> PauseStatus:
    return PauseStatus(
        lever=pause.lever,
        replicas=pause.replicas,
        uid=pause.uid,
        generation=pause.generation,
        at=rfc3339(round(pause.at)),
        decision=pause.decision,
        why=pause.why,
        by=pause.by,
        name=pause.name or None,
        former=dict(pause.former) or None,
    )


def _written(moment: Timestamp | None) -> Time | None:
    return None if moment is None else rfc3339(round(moment))


def _rounded(moment: Timestamp | None) -> Timestamp | None:
    return None if moment is None else float(round(moment))

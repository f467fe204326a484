"""What people say against a pause at this very moment, wherever they can say it.

Answers, as a sentence, which wish forbids a pause: on the root, its pod template, its namespace, or
any GPUWorkload about the root. Everything is read again right before the act, because a decision
rests on a view that may be a minute old. What the decision already weighed, such as a keep beyond
the cap, is not weighed again. Called by `act.actor`.
"""

from __future__ import annotations

from functools import reduce

from gpu_pruner.act.live import template_of
from gpu_pruner.act.ports import Cluster
from gpu_pruner.errors import ActionRefused, NotFound
from gpu_pruner.kube.bookkeeping import merged, to_bookkeeping
from gpu_pruner.kube.gpuworkloads import GPUWorkload
from gpu_pruner.kube.resources import GPUWORKLOADS, NAMESPACES
from gpu_pruner.kube.wire import Bare, Meta, Owner, PodTemplate
from gpu_pruner.model.annotations import ACK_UNTIL
from gpu_pruner.model.cluster import Bookkeeping
from gpu_pruner.model.snapshot import Workload
from gpu_pruner.model.units import Timestamp, rfc3339
from gpu_pruner.model.workload import Intent, RootRef, Veto
from gpu_pruner.resolve.annotations import Source, annotated_keep, exemptions, holds, shown


async def wish_against(
    client: Cluster,
    root: RootRef,
    live: Owner,
    *,
    known: Workload | None,
    now: Timestamp,
) -> str:
    """Return which wish forbids a pause now; empty where none does.

    Args:
        client: to read the namespace and its GPUWorkloads with.
        root: with the uid of the live object.
        live: the root object as it was read a moment ago.
        known: what the decision knew; None for a person's order, which knew nothing.
        now: Unix seconds.

    Raises:
        ActionRefused: the namespace does not exist any more.
        ClusterError: something could not be read, so that a wish may stand there.
    """
    try:
        space = await client.get(NAMESPACES, root.namespace, decode=Bare)
    except NotFound as error:
        raise ActionRefused(f"namespace {root.namespace} does not exist any more") from error
    return _written(root, live, space.metadata, known=known, now=now) or _wanted(
        await intent_of(client, root), known=known, now=now
    )


def _written(
    root: RootRef, live: Owner, space: Meta, *, known: Workload | None, now: Timestamp
) -> str:
    """Return what labels and annotations say against a pause."""
    own = _source(f"{root.kind} {root.name}", live.metadata)
    above = (own, _source(f"namespace {root.namespace}", space))
    template = (template_of(live) or PodTemplate()).metadata
    below = (_source(f"the pod template of {root.name}", template),) if template else ()
    vetoes = (*exemptions((*above, *below), now=now), *holds(above))
    if vetoes:
        return vetoes[0].detail
    owner = known.owner if known else None
    if owner and owner.annotations.get(ACK_UNTIL) == own.annotations.get(ACK_UNTIL):
        return ""
    keep = annotated_keep(own)
    if isinstance(keep, Veto):
        return keep.detail
    if keep is None or keep.until <= now:
        return ""
    return f"it is kept until {rfc3339(keep.until)} by {ACK_UNTIL}{_by(keep.by)}"


def _wanted(intent: Intent, *, known: Workload | None, now: Timestamp) -> str:
    """Return what GPUWorkloads say against a pause."""
    if known and known.intent.release is not None and intent.release is None:
        return "it was released, and that was taken back"
    if known and _against(intent) == _against(known.intent):
        return ""
    if intent.exempt and (intent.exempt_until is None or intent.exempt_until > now):
        return f"it was exempted{_by(intent.exempt_by)} (spec.exempt of its GPUWorkload)"
    if intent.keep_until is not None and intent.keep_until > now:
        return f"it is kept until {rfc3339(intent.keep_until)}{_by(intent.keep_by)}"
    return ""


def _against(intent: Intent) -> tuple[Timestamp | None, bool, Timestamp | None]:
    """Return what of an intent can stand against a pause."""
    return intent.keep_until, intent.exempt, intent.exempt_until


async def intent_of(client: Cluster, root: RootRef) -> Intent:
    """Return what all GPUWorkloads about a root want together; anybody may create a second one.

    Raises:
        ClusterError: they could not be read.
    """
    found: list[Bookkeeping] = []
    pages = client.list_pages(GPUWORKLOADS, decode=GPUWorkload, namespace=root.namespace)
    try:
        async for page in pages:
            kept = (to_bookkeeping(stored) for stored in page.items)
            found.extend(one for one in kept if one and one.root.uid == root.uid)
    except NotFound:  # the kind is not installed, so nobody can have said anything there
        return Intent()
    return reduce(merged, found).intent if found else Intent()


def _by(who: str) -> str:
    return f" by {shown(who)}" if who else ""


def _source(place: str, meta: Meta) -> Source:
    return Source(place, meta.labels or {}, meta.annotations or {})

"""What happens on the stage, as lines for the person who watches.

One write to the simulated API server is one line, or none where it is only book-keeping. Pure;
called by `stage`, which tells the minute before it.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpu_pruner.sim.journal import RequestRecord

_DONE = {"create": "creates", "update": "updates", "patch": "patches", "delete": "deletes"}
_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""API groups whose objects are questions: they are created to be answered, and nothing is kept."""


def line_of(record: RequestRecord, body: Mapping[str, object]) -> str:
    """Say what a write did; empty for book-keeping, and for questions about users and rights.

    Args:
        record: the write.
        body: what was sent with it, decoded.
    """
    if record.group in _REVIEWS or record.resource == "leases":
        return ""
    if record.resource == "events":
        about = leaf(body, "involvedObject")
        if about is None:
            return f"{record.user} tells it again: {record.namespace}/{record.name}"
        place = f"{leaf(about, 'namespace')}/{leaf(about, 'name')}"
        return f"{record.user} tells {place}: {leaf(body, 'reason')}"
    if record.resource == "gpuworkloads":
        if leaf(body, "spec", "keepUntil"):
            why = leaf(body, "spec", "keepReason")
            return f"{record.user} keeps {record.namespace}/{record.name}: {why}"
        phase = leaf(body, "status", "phase")
        return f"{record.namespace}/{record.name} is {phase}" if phase else ""
    where = "/".join(filter(None, (record.resource, record.namespace, record.name)))
    return f"{record.user} {_DONE.get(record.verb, record.verb)} {where}"


def leaf(tree: object, *path: str) -> object:
    """Return what stands at a path in a JSON tree, or None."""
    for key in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(key)
    return tree

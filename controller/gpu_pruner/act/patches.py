"""Merge-patches on a lever object, always with preconditions.

Answers: which body changes exactly this, and only if nobody changed the object since it was read.
Never patches blindly: a uid or resourceVersion that no longer matches makes the API server answer
409. Called by the levers.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpu_pruner.kube.wire import Owner

Annotations = Mapping[str, str | None]
"""Annotation key to new value; None removes it."""


def patch_of(
    live: Owner, *, annotations: Annotations, spec: Mapping[str, object] | None = None
) -> Mapping[str, object]:
    """Return the merge-patch that sets these annotations and, where given, fields of the spec.

    Args:
        live: the object as it was read a moment ago; its uid and resourceVersion become the
            preconditions.
        annotations: keys to set or, with None, to remove.
        spec: merged into the ``spec``; None leaves that alone.
    """
    body: dict[str, object] = {
        "metadata": {
            "uid": live.metadata.uid,
            "resourceVersion": live.metadata.resource_version,
            "annotations": dict(annotations),
        }
    }
    if spec is not None:
        body["spec"] = spec
    return body

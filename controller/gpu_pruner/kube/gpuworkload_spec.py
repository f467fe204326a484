"""The spec of a `GPUWorkload`: which root it is about, and what people want of that.

Part of the one definition of the CRD, beside the status in `kube.gpuworkloads`. Bounds stand in the
schema only: what an older schema let in must still be readable.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

_About = msgspec.Meta
TIME = {"format": "date-time"}
"""Schema of a `Time`."""
_IMMUTABLE = {
    "x-kubernetes-validations": [
        {"rule": "self == oldSelf", "message": "rootRef cannot be changed"}
    ]
}

LONGEST_NAME = 256
"""Characters of a person's name in a wish."""
LONGEST_REASON = 1024
"""Characters of the reason of a wish."""


def _name(longest: int) -> dict[str, int]:
    return {"minLength": 1, "maxLength": longest}


def _longest(characters: int) -> dict[str, int]:
    return {"maxLength": characters}


Time: TypeAlias = str
"""RFC 3339 text."""


class RootReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The object whose size is paused and restored. Another uid is another workload."""

    api_version: Annotated[
        str,
        _About(description="API group and version of the root.", extra_json_schema=_name(317)),
    ]
    kind: Annotated[str, _About(description="Kind of the root.", extra_json_schema=_name(63))]
    name: Annotated[
        str,
        _About(
            description="Name of the root, in the same namespace.", extra_json_schema=_name(253)
        ),
    ]
    uid: Annotated[str, _About(description="uid of the root.", extra_json_schema=_name(128))]


class GPUWorkloadSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What people want of the workload."""

    root_ref: Annotated[
        RootReference,
        _About(
            description="The workload's root; it cannot be changed.", extra_json_schema=_IMMUTABLE
        ),
    ]
    keep_until: Annotated[
        Time | None,
        _About(
            description="Keep the workload until this time; capped by policy when it is read.",
            extra_json_schema=TIME,
        ),
    ] = None
    keep_by: Annotated[
        str | None,
        _About(description="Who asked to keep it.", extra_json_schema=_longest(LONGEST_NAME)),
    ] = None
    keep_reason: Annotated[
        str | None,
        _About(description="Why it is to be kept.", extra_json_schema=_longest(LONGEST_REASON)),
    ] = None
    exempt: Annotated[
        bool | None, _About(description="Never pause the workload while this is true.")
    ] = None
    exempt_until: Annotated[
        Time | None,
        _About(
            description="The exemption ends then; absent: it is for good.", extra_json_schema=TIME
        ),
    ] = None
    exempt_by: Annotated[
        str | None, _About(description="Who exempted it.", extra_json_schema=_longest(LONGEST_NAME))
    ] = None
    exempt_reason: Annotated[
        str | None,
        _About(description="Why it is exempt.", extra_json_schema=_longest(LONGEST_REASON)),
    ] = None
    release: Annotated[
        bool | None,
        _About(
            description="The GPUs are needed no longer: pause it without waiting. Only with "
            "releaseAt, and for half an hour from then."
        ),
    ] = None
    release_at: Annotated[
        Time | None,
        _About(
            description="When they were given back; pods that were made later are not meant.",
            extra_json_schema=TIME,
        ),
    ] = None
    release_by: Annotated[
        str | None,
        _About(description="Who gave them back.", extra_json_schema=_longest(LONGEST_NAME)),
    ] = None
    release_reason: Annotated[
        str | None,
        _About(
            description="Why they are needed no longer.",
            extra_json_schema=_longest(LONGEST_REASON),
        ),
    ] = None
    wrong_pause: Annotated[
        str | None,
        _About(
            description="A pause of ours was wrong: its decision id. Only with wrongAt.",
            extra_json_schema=_name(LONGEST_NAME),
        ),
    ] = None
    wrong_paused_at: Annotated[
        Time | None, _About(description="When that pause was.", extra_json_schema=TIME)
    ] = None
    wrong_evidence: Annotated[
        str | None,
        _About(
            description="What that pause rested on, in a sentence, from its record.",
            extra_json_schema=_longest(LONGEST_REASON),
        ),
    ] = None
    wrong_at: Annotated[
        Time | None, _About(description="When it was called wrong.", extra_json_schema=TIME)
    ] = None
    wrong_by: Annotated[
        str | None,
        _About(description="Who called it wrong.", extra_json_schema=_longest(LONGEST_NAME)),
    ] = None
    wrong_reason: Annotated[
        str | None,
        _About(description="Why it was wrong.", extra_json_schema=_longest(LONGEST_REASON)),
    ] = None

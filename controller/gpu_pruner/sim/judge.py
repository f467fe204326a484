"""Did the story end as told? Judged from the API server's objects and request log alone.

What the controller says of itself is looked at last and only adds faults: a controller cannot
talk itself out of one. Pure; called by `stage` while the story runs and when it is over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gpu_pruner.model.annotations import KSERVE_STOP, NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.sim.story import NOTICE, WINDOW, Ending, Part

CONTROLLER = "gpu-pruner"
"""The user name under which the controller speaks to the API server."""

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_STOPS = frozenset({NOTEBOOK_STOPPED, KSERVE_STOP})
"""Annotations that stop what they stand on."""
_WITHOUT_SIZE = frozenset({"Notebook", "InferenceService"})
"""Kinds whose pause is an annotation: there is no size to remember."""
_SLACK: Seconds = 2 * MINUTE
"""A window and a notice are counted in whole steps and cycles; nobody is convicted for those."""
_PROOF: Seconds = 5 * MINUTE
"""So long after the earliest pause, a workload that nobody paused counts as kept."""
_LONG_ENOUGH: Seconds = 75 * MINUTE
"""An open part is over then, or when it is paused: window and notice, with room for the budget."""
_CHILD = re.compile(r"/(pods|replicasets|statefulsets|deployments)/(?P<name>[^/]+)(/[a-z]+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One answered request that could have changed something."""

    at: Timestamp
    user: str
    method: str
    path: str
    body: Mapping[str, object]
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the API server holds of one part at one moment."""

    size: int | None
    """``spec.replicas``; where an annotation stops it 0, and 1 where there is no such field."""
    annotations: Mapping[str, str]
    pods: frozenset[str]
    """uids of the pods that are not being deleted."""
    ready: int
    """How many of them are Ready."""
    phase: str = ""
    """``status.phase`` of its GPUWorkload; empty where there is none."""
    kept_by: str = ""
    """``spec.keepBy`` of its GPUWorkload: who asked to keep it; empty where nobody did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How one part stands."""

    part: Part
    over: bool
    """Whether it ended as told."""
    faults: tuple[str, ...] = ()
    """What can not be made good any more, one sentence each."""
    why: str = ""
    """What its pause says of the evidence, in the record that the patch left; empty before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a part is judged by."""

    begin: Timestamp
    """When the simulation began."""
    at: Timestamp
    """Now."""
    first: Scene
    """The part when it began."""
    now: Scene
    requests: Sequence[Request]
    """Writes to the API server so far, in order."""
    others: Collection[str] = frozenset()
    """`Part.place` of the other parts: writes to those are not about this one's children."""


def judge(part: Part, case: Case) -> Judgement:
    """Judge one part."""
    levers = [one for one in case.requests if _is_lever_write(one, part, case.others)]
    ours = [one for one in _first_episode(levers) if one.user == CONTROLLER]
    if part.ending is Ending.KEPT:
        faults = [f"was written to by the controller ({one.method})" for one in ours]
        if case.now.pods != case.first.pods and not part.pods_deleted:
            faults.append("its pods are not the same ones any more")
        over = not faults and _was_left(part, case)
        return Judgement(part=part, over=over, faults=tuple(faults))
    faults = _faults_of_pausing(part, case, ours)
    return Judgement(
        part=part,
        over=not faults and _has_ended(part, case, levers),
        faults=tuple(faults),
        why=next((_why(one) for one in ours if _is_pause(one)), ""),
    )


def _was_left(part: Part, case: Case) -> bool:
    """Tell whether a part would have been paused by now, if it was to be, and was not."""
    proof = case.begin + WINDOW + NOTICE + _PROOF
    if part.keep:
        warned = _warnings(part, case.requests)
        if not warned or not case.now.kept_by:
            return False
        proof = max(proof, warned[0] + NOTICE + _PROOF)
    return case.at >= proof


def _faults_of_pausing(part: Part, case: Case, ours: Sequence[Request]) -> list[str]:
    pauses = [one for one in ours if _is_pause(one)]
    faults = [f"got a write that is no pause: {one.path}" for one in ours if not _is_pause(one)]
    if len(pauses) > 1:
        faults.append(f"was paused {len(pauses)} times")
    for pause in pauses[:1]:
        minute = (pause.at - case.begin) / MINUTE
        warned = [one for one in _warnings(part, case.requests) if one <= pause.at]
        if not warned:
            faults.append(f"was paused at minute {minute:.0f} without a warning")
        elif pause.at - warned[0] < NOTICE - _SLACK:
            notice = (pause.at - warned[0]) / MINUTE
            faults.append(f"was paused {notice:.0f} minutes after its warning")
        if (pause.at - case.begin) < WINDOW - _SLACK:
            faults.append(f"was paused at minute {minute:.0f}: no whole window was seen")
        faults += _faults_of_renewal(part, minute)
        faults += _faults_of_record(part, case.first, pause)
    return faults


def _faults_of_renewal(part: Part, minute: float) -> list[str]:
    """Where its pods came anew, the evidence of those before is none: a new window, a new notice.

    Args:
        part: what must happen.
        minute: when it was paused, simulated minutes since the begin.
    """
    least = (WINDOW + NOTICE - _SLACK) / MINUTE
    anew = max((one for one in part.pods_deleted if one <= minute), default=None)
    if anew is None or minute - anew >= least:
        return []
    return [f"was paused at minute {minute:.0f}, and its pods came anew at minute {anew:.0f}"]


def _faults_of_record(part: Part, first: Scene, pause: Request) -> list[str]:
    record = _record(pause)
    if record is None:
        return ["its pause left no record in the same patch"]
    if part.kind not in _WITHOUT_SIZE and record.get("replicas") != first.size:
        return [f"its record says {record.get('replicas')} replicas, it had {first.size}"]
    return []


def _has_ended(part: Part, case: Case, levers: Sequence[Request]) -> bool:
    first, now = case.first, case.now
    is_paused = now.size == 0 and not now.pods and now.phase == "Paused"
    if part.ending is Ending.OPEN:
        return is_paused or case.at - case.begin >= _LONG_ENOUGH
    if not any(_is_pause(one) and one.user == CONTROLLER for one in levers):
        return False
    if part.ending is Ending.PAUSED:
        return is_paused
    resumed = any(one.user != CONTROLLER for one in levers)
    whole = now.size == first.size and now.ready == len(now.pods) == len(first.pods)
    return resumed and whole and PAUSED not in now.annotations and now.phase == "Watching"


def _first_episode(levers: Sequence[Request]) -> Sequence[Request]:
    """Return the writes before a person gave the workload back: what comes later is a new story."""
    given_back = [place for place, one in enumerate(levers) if one.user != CONTROLLER]
    return levers[: given_back[0]] if given_back else levers


def _is_lever_write(request: Request, part: Part, others: Collection[str]) -> bool:
    """Tell whether a write went to the part's own object, or to a pod or child of its name."""
    if request.method not in _WRITES or not 200 <= request.status < 300:  # noqa: PLR2004 - success
        return False
    path = request.path.removesuffix("/scale")
    if path.endswith(part.place):
        return True
    found = _CHILD.search(path)
    if found is None or f"/namespaces/{part.namespace}/" not in path:
        return False
    mine = f"{found['name']}-".startswith(f"{part.name}-")
    return mine and not any(path.endswith(one) for one in others)


def _is_pause(request: Request) -> bool:
    spec, metadata = request.body.get("spec"), request.body.get("metadata")
    if isinstance(spec, Mapping) and spec.get("replicas") == 0:
        return True
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return isinstance(annotations, Mapping) and any(annotations.get(one) for one in _STOPS)


def _warnings(part: Part, requests: Sequence[Request]) -> list[Timestamp]:
    """Return when the owner of a part was warned, by an Event of that type on its object."""
    return [one.at for one in requests if _is_warning(one, part)]


def _is_warning(request: Request, part: Part) -> bool:
    about = request.body.get("involvedObject")
    return (
        request.method == "POST"
        and request.path.endswith("/events")
        and request.body.get("type") == "Warning"
        and isinstance(about, Mapping)
        and about.get("name") == part.name
        and about.get("namespace") == part.namespace
        and about.get("kind") == part.kind
    )


def _why(pause: Request) -> str:
    return str((_record(pause) or {}).get("why", ""))


def _record(request: Request) -> Mapping[str, object] | None:
    metadata = request.body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    text = annotations.get(PAUSED) if isinstance(annotations, Mapping) else None
    if not isinstance(text, str):
        return None
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, Mapping) else None

"""Did the story end as told? Judged from the API server's objects and request log alone.

What the controller says of itself is looked at last and only adds faults: a controller cannot
talk itself out of one. Pure; called by `stage` while the story runs and when it is over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_pruner.model.annotations import NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.sim.story import NOTICE, WINDOW, Ending, Part

CONTROLLER = "gpu-pruner"
"""The user name under which the controller speaks to the API server."""

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_SLACK: Seconds = 2 * MINUTE
"""A window and a notice are counted in whole steps and cycles; nobody is convicted for those."""


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
    """``spec.replicas``; for a Notebook 0 while its stop annotation is set, else 1."""
    annotations: Mapping[str, str]
    pods: frozenset[str]
    """uids of the pods that are not being deleted."""
    ready: int
    """How many of them are Ready."""
    phase: str = ""
    """``status.phase`` of its GPUWorkload; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How one part stands."""

    part: Part
    over: bool
    """Whether it ended as told. A part that was kept is over whenever it is not at fault."""
    faults: tuple[str, ...] = ()
    """What can not be made good any more, one sentence each."""


def judge(
    part: Part, *, begin: Timestamp, first: Scene, now: Scene, requests: Sequence[Request]
) -> Judgement:
    """Judge one part.

    Args:
        part: what must happen.
        begin: when the simulation began.
        first: the part when it began.
        now: the part now.
        requests: writes to the API server so far, in order.
    """
    levers = [one for one in requests if _is_lever_write(one, part)]
    ours = [one for one in _first_episode(levers) if one.user == CONTROLLER]
    if part.ending is Ending.KEPT:
        faults = [f"was written to by the controller ({one.method})" for one in ours]
        if now.pods != first.pods:
            faults.append("its pods are not the same ones any more")
        return Judgement(part=part, over=not faults, faults=tuple(faults))
    faults = _faults_of_pausing(part, first, begin=begin, ours=ours, requests=requests)
    return Judgement(
        part=part,
        over=not faults and _has_ended(part, first, now=now, levers=levers),
        faults=tuple(faults),
    )


def _faults_of_pausing(
    part: Part,
    first: Scene,
    *,
    begin: Timestamp,
    ours: Sequence[Request],
    requests: Sequence[Request],
) -> list[str]:
    faults: list[str] = []
    pauses = [one for one in ours if _is_pause(one)]
    faults += [f"got a write that is no pause: {one.path}" for one in ours if not _is_pause(one)]
    if len(pauses) > 1:
        faults.append(f"was paused {len(pauses)} times")
    for pause in pauses[:1]:
        minute = (pause.at - begin) / MINUTE
        warned = [one.at for one in requests if _is_warning(one, part) and one.at <= pause.at]
        if not warned:
            faults.append(f"was paused at minute {minute:.0f} without a warning")
        elif pause.at - warned[0] < NOTICE - _SLACK:
            notice = (pause.at - warned[0]) / MINUTE
            faults.append(f"was paused {notice:.0f} minutes after its warning")
        if pause.at - begin < WINDOW - _SLACK:
            faults.append(f"was paused at minute {minute:.0f}: no whole window was seen")
        faults += _faults_of_record(part, first, pause)
    return faults


def _faults_of_record(part: Part, first: Scene, pause: Request) -> list[str]:
    record = _record(pause)
    if record is None:
        return ["its pause left no record in the same patch"]
    if part.workload.kind != "Notebook" and record.get("replicas") != first.size:
        return [f"its record says {record.get('replicas')} replicas, it had {first.size}"]
    return []


def _has_ended(part: Part, first: Scene, *, now: Scene, levers: Sequence[Request]) -> bool:
    if not any(_is_pause(one) and one.user == CONTROLLER for one in levers):
        return False
    if part.ending is Ending.PAUSED:
        return now.size == 0 and not now.pods and now.phase == "Paused"
    resumed = any(one.user != CONTROLLER for one in levers)
    whole = now.size == first.size and now.ready == len(now.pods) == len(first.pods)
    return resumed and whole and PAUSED not in now.annotations and now.phase == "Watching"


def _first_episode(levers: Sequence[Request]) -> Sequence[Request]:
    """Return the writes before a person gave the workload back: what comes later is a new story."""
    given_back = [place for place, one in enumerate(levers) if one.user != CONTROLLER]
    return levers[: given_back[0]] if given_back else levers


def _is_lever_write(request: Request, part: Part) -> bool:
    """Tell whether a write went to the part's own object, or to a pod or child of its name."""
    one = part.workload
    if request.method not in _WRITES or not 200 <= request.status < 300:  # noqa: PLR2004 - success
        return False
    plural = f"{one.kind.lower()}s"
    place = f"/namespaces/{one.namespace}/"
    own = request.path.endswith(f"{place}{plural}/{one.name}")
    child = f"{place}pods/{one.name}" in request.path or (
        f"{place}replicasets/{one.name}" in request.path
    )
    scale = request.path.endswith(f"{place}{plural}/{one.name}/scale")
    return own or child or scale


def _is_pause(request: Request) -> bool:
    spec, metadata = request.body.get("spec"), request.body.get("metadata")
    if isinstance(spec, Mapping) and spec.get("replicas") == 0:
        return True
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return isinstance(annotations, Mapping) and bool(annotations.get(NOTEBOOK_STOPPED))


def _is_warning(request: Request, part: Part) -> bool:
    about = request.body.get("involvedObject")
    return (
        request.method == "POST"
        and request.path.endswith("/events")
        and request.body.get("type") == "Warning"
        and isinstance(about, Mapping)
        and about.get("name") == part.workload.name
        and about.get("namespace") == part.workload.namespace
        and about.get("kind") == part.workload.kind
    )


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

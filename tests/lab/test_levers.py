"""Every lever on the real API server, with the real schemas of the kinds.

What a pause writes is not pruned, one patch does it, and a restore brings the object back to what
it was to the letter. The audit log is the witness.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from support.audit import Entry
from support.custom_kinds import install_kinds
from support.lab import Lab
from support.lever_objects import OBJECTS, Example
from support.product import OURS, install

from gpu_pruner.act.actor import Actor
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.halting import is_paused_by_us
from gpu_pruner.kube.resources import ALL
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.commands import resume_command
from gpu_pruner.model.orders import Outcome, PauseOrder, Result
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.workload import RootRef
from gpu_pruner.resolve.pauses import decode
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.settings.schema import KubernetesSettings
from gpu_pruner.sim.tree import JsonObject, child, mapping, text, texts, with_value

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

_CALM_SECONDS = 60.0

each_example = pytest.mark.parametrize("example", OBJECTS, ids=lambda one: one.name)


@pytest.fixture(scope="module")
def settings(lab: Lab) -> Iterator[KubernetesSettings]:
    """Every kind, what we ship, and the way in as our ServiceAccount."""
    install_kinds(lab)
    yield KubernetesSettings(kubeconfig=install(lab))
    lab.reset()


def made(lab: Lab, team: str, example: Example) -> RootRef:
    """Create an example's objects and return its root."""
    for body in example.bodies:
        meta = mapping(body, "metadata") | {"namespace": team}
        lab.kubectl("create", "-f", "-", stdin=json.dumps(body | {"metadata": meta}))
        if status := mapping(body, "status"):
            patch = ("-p", json.dumps({"status": status}), "--type=merge", "--subresource=status")
            lab.kubectl("patch", _word(body), text(meta, "name"), "-n", team, *patch)
    if example.adopted:
        _adopt(lab, team, example)
    _until_nobody_writes(lab, team, example)
    return RootRef(example.root.kind, team, example.root.name, example.root.group)


def _until_nobody_writes(lab: Lab, team: str, example: Example) -> None:
    """Wait until the real controllers have said what they have to say of new objects."""
    deadline = time.monotonic() + _CALM_SECONDS
    before: list[str] = []
    while True:
        now = [text(seen(lab, team, one), "metadata", "resourceVersion") for one in example.bodies]
        if now == before:
            return
        assert time.monotonic() < deadline, "somebody keeps writing"
        before = now
        time.sleep(0.5)


def _adopt(lab: Lab, team: str, example: Example) -> None:
    """Make the root the controller of what governs it, as Kueue does."""
    root = seen(lab, team, example.bodies[0])
    owner = {
        "apiVersion": text(root, "apiVersion"),
        "kind": text(root, "kind"),
        "name": text(root, "metadata", "name"),
        "uid": text(root, "metadata", "uid"),
        "controller": True,
    }
    patch = json.dumps({"metadata": {"ownerReferences": [owner]}})
    lever = example.bodies[-1]
    name = text(lever, "metadata", "name")
    lab.kubectl("patch", _word(lever), name, "-n", team, "--type=merge", "-p", patch)


def _word(body: JsonObject) -> str:
    group, _, _ = text(body, "apiVersion").rpartition("/")
    return ".".join(part for part in (text(body, "kind").lower(), group) if part)


def seen(lab: Lab, team: str, body: JsonObject) -> JsonObject:
    name = text(body, "metadata", "name")
    found: JsonObject = json.loads(lab.kubectl("get", _word(body), name, "-n", team, "-o", "json"))
    return found


def shape(lab: Lab, team: str, body: JsonObject) -> tuple[JsonObject, dict[str, str]]:
    """Return what anybody wants of an object: its spec and its annotations."""
    found = seen(lab, team, body)
    return mapping(found, "spec"), texts(found, "metadata", "annotations")


async def paused(settings: KubernetesSettings, root: RootRef) -> Outcome:
    async with acting(settings) as actor:
        order = PauseOrder(root=root, decision_id="d-1", why="No GPU work.", by="jo")
        return await actor.pause(order)


async def restored(settings: KubernetesSettings, root: RootRef) -> Outcome:
    async with acting(settings) as actor:
        return await actor.restore(root, by="jo", why="back")


@asynccontextmanager
async def acting(settings: KubernetesSettings) -> AsyncIterator[Actor]:
    clock = SystemClock()
    client = await ClusterClient.connect(settings, clock=clock)
    try:
        yield Actor(client, clock=clock, mode=Mode.SCALE_DOWN)
    finally:
        await client.close()


@each_example
async def test_a_pause_is_one_patch_that_a_restore_takes_back_to_the_letter(
    lab: Lab, team: str, settings: KubernetesSettings, example: Example
) -> None:
    root = made(lab, team, example)
    before = [shape(lab, team, one) for one in example.bodies]
    lab.audit.mark()

    outcome = await paused(settings, root)

    assert outcome.result is Result.DONE, outcome.detail
    lever = seen(lab, team, example.lever)
    assert stopper(lever, example) == example.stopped or example.stopped is ...
    record = decode(text(lever, "metadata", "annotations", PAUSED))
    assert record is not None, "the pause record was pruned"
    assert (record.uid, record.lever) == (text(lever, "metadata", "uid"), text(lever, "kind"))
    assert is_ours(lab, team, example), "nobody could tell that it is our pause"
    others = [shape(lab, team, one) for one in example.bodies[:-1]]
    assert others == before[:-1]
    [pause] = lever_writes(lab)
    assert (pause.verb, pause.object_ref.subresource) == ("patch", "")
    preconditions = mapping(pause.request_object, "metadata")
    assert preconditions["uid"] == record.uid
    assert preconditions["resourceVersion"]

    again = await paused(settings, root)
    assert (again.result, "paused already" in again.detail) == (Result.REFUSED, True)

    outcome = await restored(settings, root)

    assert outcome.result is Result.DONE, outcome.detail
    assert [shape(lab, team, one) for one in example.bodies] == before
    assert len(lever_writes(lab)) == 2
    refused = [one.told for one in lab.audited(OURS) if one.response_status.code == 403]
    assert refused == []


@each_example
async def test_a_stop_that_a_person_made_after_ours_is_left_to_them(
    lab: Lab, team: str, settings: KubernetesSettings, example: Example
) -> None:
    root = made(lab, team, example)
    assert (await paused(settings, root)).result is Result.DONE
    assert is_ours(lab, team, example)
    stopped = seen(lab, team, example.lever)
    person = undone(example), redone(stopped, example)
    for patch in person:
        merge(lab, team, example.lever, patch)
    mine = shape(lab, team, example.lever)
    assert not is_ours(lab, team, example)

    outcome = await restored(settings, root)

    assert outcome.result is Result.REFUSED, outcome.detail
    assert shape(lab, team, example.lever) == mine


@each_example
async def test_the_line_that_people_are_told_lets_it_run_again(
    lab: Lab, team: str, settings: KubernetesSettings, example: Example
) -> None:
    root = made(lab, team, example)
    before = shape(lab, team, example.lever)
    assert (await paused(settings, root)).result is Result.DONE
    record = decode(text(seen(lab, team, example.lever), "metadata", "annotations", PAUSED))
    kubectl, *arguments = shlex.split(resume_command(root, pause=record))

    assert kubectl == "kubectl"
    lab.kubectl(*arguments)

    spec, notes = shape(lab, team, example.lever)
    assert notes.pop(PAUSED)
    assert spec == before[0]
    outcome = await restored(settings, root)
    assert (outcome.result, "restarted it already" in outcome.detail) == (Result.DONE, True)
    assert shape(lab, team, example.lever) == (spec, notes)


@each_example
async def test_a_record_that_a_person_wrote_anew_is_theirs(
    lab: Lab, team: str, settings: KubernetesSettings, example: Example
) -> None:
    root = made(lab, team, example)
    assert (await paused(settings, root)).result is Result.DONE
    record = text(seen(lab, team, example.lever), "metadata", "annotations", PAUSED)
    for changed in (record.replace("No GPU work.", "Mine."), record):
        merge(lab, team, example.lever, {"metadata": {"annotations": {PAUSED: changed}}})

    assert not is_ours(lab, team, example)


def is_ours(lab: Lab, team: str, example: Example) -> bool:
    """Whether the API server names us as who stopped the lever object and wrote the record."""
    body = example.lever
    name, fields = text(body, "metadata", "name"), ("--show-managed-fields", "-o", "json")
    told = lab.kubectl("get", _word(body), name, "-n", team, *fields)
    [resource] = [one for one in ALL if one.kind == text(body, "kind")]
    return is_paused_by_us(msgspec.json.decode(told, type=Owner), resource)


def stopper(lever: JsonObject, example: Example) -> object:
    """Return what stops an object, as it is."""
    if len(example.field) == 1:
        return texts(lever, "metadata", "annotations").get(example.field[0])
    return child(lever, *example.field)


def undone(example: Example) -> JsonObject:
    """Return what a person patches to let an object run, in their own way."""
    if len(example.field) == 1:
        return {"metadata": {"annotations": {example.field[0]: None}}}
    running = (not example.stopped) if isinstance(example.stopped, bool) else 1
    return with_value({}, example.field, to=running)


def redone(stopped: JsonObject, example: Example) -> JsonObject:
    """Return what a person patches to stop it again."""
    if example.stopped is ...:  # a time, which is another one later
        return {"metadata": {"annotations": {example.field[0]: "2026-02-01T08:00:00Z"}}}
    if len(example.field) == 1:
        return {"metadata": {"annotations": {example.field[0]: stopper(stopped, example)}}}
    return with_value({}, example.field, to=example.stopped)


def merge(lab: Lab, team: str, body: JsonObject, patch: JsonObject) -> None:
    """Patch an object as a person does."""
    name = text(body, "metadata", "name")
    lab.kubectl("patch", _word(body), name, "-n", team, "--type=merge", "-p", json.dumps(patch))


def lever_writes(lab: Lab) -> list[Entry]:
    """Return what we wrote to anything but our own objects."""
    return [
        one
        for one in lab.audited(OURS)
        if one.is_write and one.object_ref.resource not in {"gpuworkloads", "events"}
    ]

"""A kind that only the settings know, on the real API server: its schema, and roles for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab import Lab
from support.own_kind import (
    GROUP,
    KNOWN,
    PAIR,
    SERVER,
    SIZE,
    a_server,
    allow,
    apply,
    install_own_kind,
    remove_own_kind,
)
from support.product import BASE, OURS, install

from gpu_pruner.act.actor import Actor
from gpu_pruner.act.levers import Levers
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.orders import Outcome, PauseOrder, Result
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.workload import RootRef
from gpu_pruner.observe.cluster import ClusterWatch
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.settings.levers import CustomLever
from gpu_pruner.settings.loading import load_settings
from gpu_pruner.settings.schema import KubernetesSettings
from gpu_pruner.sim.tree import JsonObject, mapping, text, texts

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _as_it_was(lab: Lab) -> Iterator[None]:
    yield
    remove_own_kind(lab)
    lab.kubectl("apply", "-k", BASE)


def lever(tmp_path: Path, words: str) -> CustomLever:
    """Return a lever as it is read from a file of settings."""
    file = tmp_path / "settings.yaml"
    file.write_text(KNOWN + words)
    [found] = load_settings({}, file=file).custom_levers
    return found


def served(lab: Lab, team: str) -> RootRef:
    """Install the kind, and create a server; return it."""
    install_own_kind(lab)
    apply(lab, a_server(team))
    return RootRef("Server", team, "llm", GROUP)


def seen(lab: Lab, team: str) -> JsonObject:
    found: JsonObject = json.loads(
        lab.kubectl("get", f"servers.{GROUP}", "llm", "-n", team, "-o", "json")
    )
    return found


async def ordered(kubeconfig: Path, custom: CustomLever, root: RootRef, *, pause: bool) -> Outcome:
    clock = SystemClock()
    client = await ClusterClient.connect(KubernetesSettings(kubeconfig=kubeconfig), clock=clock)
    levers = Levers.of_settings([custom])
    actor = Actor(client, clock=clock, mode=Mode.SCALE_DOWN, levers=levers)
    try:
        if pause:
            order = PauseOrder(root=root, decision_id="d-1", why="No GPU work.", by="jo")
            return await actor.pause(order)
        return await actor.restore(root, by="jo", why="back")
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("words", "stopped"),
    [(SIZE, {"mode": "serving", "workers": 0}), (PAIR, {"mode": "stopped", "workers": 3})],
)
async def test_a_kind_of_the_settings_is_paused_and_comes_back(
    lab: Lab, team: str, tmp_path: Path, words: str, stopped: JsonObject
) -> None:
    kubeconfig, root, custom = install(lab), served(lab, team), lever(tmp_path, words)
    allow(lab)

    async with asyncio.timeout(60):  # a server follows a changed policy within seconds
        while True:
            lab.audit.mark()
            paused = await ordered(kubeconfig, custom, root, pause=True)
            if "ValidatingAdmissionPolicy" not in paused.detail:
                break

    assert paused.result is Result.DONE, paused.detail
    server = seen(lab, team)
    assert mapping(server, "spec") == stopped
    assert text(server, "metadata", "annotations", PAUSED)
    writes = [one for one in lab.audited(OURS) if one.is_write]
    [write] = [one for one in writes if one.object_ref.resource == "servers"]
    assert (write.verb, write.object_ref.subresource) == ("patch", "")

    restored = await ordered(kubeconfig, custom, root, pause=False)

    assert restored.result is Result.DONE, restored.detail
    server = seen(lab, team)
    assert mapping(server, "spec") == mapping(SERVER, "spec")
    notes = texts(server, "metadata", "annotations")
    assert PAUSED not in notes
    assert notes["team"] == "vision"


async def test_the_watch_shows_a_kind_of_the_settings(lab: Lab, team: str, tmp_path: Path) -> None:
    root, custom = served(lab, team), lever(tmp_path, PAIR)
    clock = SystemClock()
    settings = KubernetesSettings(kubeconfig=lab.kubeconfig())
    client = await ClusterClient.connect(settings, clock=clock)
    watch = ClusterWatch(client, clock=clock, custom=[custom])
    try:
        await watch.start()
        owners = [one for one in watch.view().owners.values() if one.root.ref == root.ref]
    finally:
        await watch.close()
        await client.close()
    [owner] = owners
    assert (owner.halted, owner.is_ready) == (False, False)


async def test_without_a_role_for_it_nothing_is_done(lab: Lab, team: str, tmp_path: Path) -> None:
    kubeconfig, root, custom = install(lab), served(lab, team), lever(tmp_path, SIZE)
    outcome = await ordered(kubeconfig, custom, root, pause=True)
    assert outcome.result is Result.FAILED
    assert "forbidden" in outcome.detail.lower()
    assert mapping(seen(lab, team), "spec") == mapping(SERVER, "spec")

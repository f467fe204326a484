"""A kind that only the settings know, on the real API server: its schema, and roles for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab import Lab
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

ROLE_NAME = "servers-for-gpu-pruner"
GROUP = "ml.example.org"
POLICY = "gpu-pruner-nothing-else"
KIND: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"servers.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Server", "plural": "servers", "singular": "server"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "mode": {"type": "string", "enum": ["serving", "stopped"]},
                                    "workers": {"type": "integer", "minimum": 0},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"ready": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}
SERVER: JsonObject = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Server",
    "metadata": {"name": "llm", "annotations": {"team": "vision"}},
    "spec": {"mode": "serving", "workers": 3},
}
ROLE: JsonObject = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": ROLE_NAME},
    "rules": [
        {
            "apiGroups": [GROUP],
            "resources": ["servers"],
            "verbs": ["get", "list", "watch", "patch"],
        }
    ],
}
BINDING: JsonObject = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": ROLE_NAME},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": ROLE_NAME,
    },
    "subjects": [
        {"kind": "ServiceAccount", "name": "gpu-pruner", "namespace": "gpu-pruner-system"}
    ],
}
KNOWN = f"""
custom_levers:
- group: {GROUP}
  version: v1
  plural: servers
  kind: Server
"""
SIZE = """
  replicas: spec.workers
"""
PAIR = """
  pause: {spec: {mode: stopped}}
  restore: {spec: {mode: serving}}
  paused_when: spec.mode == "stopped"
  ready_when: status.ready >= spec.workers
"""


@pytest.fixture(autouse=True)
def _as_it_was(lab: Lab) -> Iterator[None]:
    yield
    lab.kubectl("delete", "clusterrole,clusterrolebinding", ROLE_NAME, "--ignore-not-found")
    lab.kubectl("delete", "crd", f"servers.{GROUP}", "--ignore-not-found")
    lab.kubectl("apply", "-k", BASE)


def lever(tmp_path: Path, words: str) -> CustomLever:
    """Return a lever as it is read from a file of settings."""
    file = tmp_path / "settings.yaml"
    file.write_text(KNOWN + words)
    [found] = load_settings({}, file=file).custom_levers
    return found


def apply(lab: Lab, *bodies: JsonObject) -> None:
    for body in bodies:
        lab.kubectl("apply", "-f", "-", stdin=json.dumps(body))


def allow(lab: Lab) -> None:
    """Let our account patch servers, as the documentation says: by a role, and in the policy."""
    apply(lab, ROLE, BINDING)
    policy = json.loads(lab.kubectl("get", "validatingadmissionpolicy", POLICY, "-o", "json"))
    [validation] = policy["spec"]["validations"]
    place = "'apps/deployments',"
    assert place in validation["expression"]
    wider = validation["expression"].replace(place, f"{place} '{GROUP}/servers',", 1)
    patch = json.dumps({"spec": {"validations": [validation | {"expression": wider}]}})
    lab.kubectl("patch", "validatingadmissionpolicy", POLICY, "--type=merge", "-p", patch)


def served(lab: Lab, team: str) -> RootRef:
    """Install the kind, and create a server; return it."""
    apply(lab, KIND)
    lab.kubectl("wait", "--for=condition=Established", f"crd/servers.{GROUP}", "--timeout=60s")
    meta = mapping(SERVER, "metadata") | {"namespace": team}
    apply(lab, SERVER | {"metadata": meta})
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

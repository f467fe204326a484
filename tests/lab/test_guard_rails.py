"""What we ship holds our own ServiceAccount to pausing and restoring, whatever role it is given.

For these tests it is made an administrator: what is refused then is refused by the policy alone.
Nothing is stored, every write is a dry run of the API server's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import requests
from support.lab import Lab
from support.overreach import (
    BATCH,
    BOOKS,
    NOTEBOOK,
    PAUSED_ONE,
    RUNNING,
    Write,
    every_write,
    record,
)
from support.product import OUR_NAMESPACE, install, until

from gpu_pruner.act.levers import lever_for
from gpu_pruner.act.live import LiveOwner
from gpu_pruner.model.annotations import NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.model.book import PauseRecord
from gpu_pruner.sim.tree import JsonObject, child, text

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

DENIED = "ValidatingAdmissionPolicy 'gpu-pruner-"
STRANGERS_BINDING = "lab-widened-by-mistake"
A_MOMENT = "2030-01-01T00:00:00Z"
KEEP: JsonObject = {"keepUntil": A_MOMENT, "keepBy": "jo", "keepReason": "a demonstration"}
OVERREACH = tuple(every_write())
GROUPS = {"Deployment": "apps", "StatefulSet": "apps", "Notebook": "kubeflow.org"}


@dataclass(frozen=True)
class Account:
    """Somebody who speaks to the API server."""

    lab: Lab
    session: requests.Session
    team: str

    def get(self, path: str) -> JsonObject:
        answer = self.session.get(self.url(path), timeout=60)
        found: JsonObject = answer.json()
        return found

    def ask(self, write: Write, *, uid: str = "") -> requests.Response:
        """Send a write as a dry run."""
        body = json.dumps(write.body) if write.body is not None else None
        if body is not None:
            body = body.replace("{uid}", uid).replace("{team}", self.team)
        return self.session.request(
            write.method,
            self.url(write.path),
            params={"dryRun": "All"} if "/exec" not in write.path else {},
            data=body,
            headers={"Content-Type": write.content},
            timeout=60,
        )

    def url(self, path: str) -> str:
        return self.lab.url + path.replace("{team}", self.team)


def a_session(lab: Lab, kubeconfig: Path | None = None) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.verify = str(lab.directory / "ca.crt")
    if kubeconfig is None:
        session.cert = (str(lab.directory / "admin.crt"), str(lab.directory / "admin.key"))
    else:
        user = child(json.loads(kubeconfig.read_text()), "users")
        assert isinstance(user, list)
        session.headers["Authorization"] = f"Bearer {text(user[0], 'user', 'token')}"
    return session


@pytest.fixture(scope="module")
def ours(lab: Lab) -> Iterator[Account]:
    """Return our ServiceAccount, with all rights, before a stage of objects."""
    kubeconfig = install(lab)
    team = lab.namespace()
    for one in stage(team):
        lab.kubectl("apply", "-f", "-", stdin=json.dumps(one))
    paused = ("get", "deployment/paused", "-n", team, "-o", "jsonpath={.metadata.uid}")
    note = f"{PAUSED}={record(2, uid=lab.kubectl(*paused))}"
    lab.kubectl("annotate", "deployment/paused", "-n", team, note)
    whom = f"--serviceaccount={OUR_NAMESPACE}:gpu-pruner"
    lab.kubectl(
        "create", "clusterrolebinding", STRANGERS_BINDING, "--clusterrole=cluster-admin", whom
    )
    account = Account(lab, a_session(lab, kubeconfig), team)
    probes = [
        Write("", "PATCH", RUNNING, {"spec": {"replicas": 1}}),
        Write("", "PATCH", "/api/v1/namespaces/{team}", {"metadata": {"labels": {"a": "b"}}}),
        Write("", "POST", OVERREACH[-1].path, OVERREACH[-1].body, "application/json"),
    ]
    # The API server reads policies and rights a moment later than they are written.
    until(lambda: all(DENIED in account.ask(one).text for one in probes))
    yield account
    lab.kubectl("delete", "clusterrolebinding", STRANGERS_BINDING)
    lab.reset(keep=[OUR_NAMESPACE])


def stage(team: str) -> Iterator[JsonObject]:
    """Yield what `support.overreach` is about."""
    yield a_kind("notebooks", "Notebook", "kubeflow.org")
    yield a_sized_one(team, "Deployment", "running", 3)
    yield a_sized_one(team, "Deployment", "paused", 0)
    yield a_sized_one(team, "Deployment", "stopped", 0)
    yield a_sized_one(team, "StatefulSet", "batch", 3)
    yield a_notebook(team, "notebook-1", {})
    yield a_notebook(team, "notebook-2", {NOTEBOOK_STOPPED: "2026-01-01T00:00:00Z"})
    about = {"kind": "Deployment", "name": "running", "namespace": team, "apiVersion": "apps/v1"}
    yield {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "theirs", "namespace": team},
        "involvedObject": about,
        "reportingComponent": "kubelet",
        "type": "Normal",
    }
    root = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "running", "uid": "u"}
    yield {
        "apiVersion": "gpu-pruner.io/v1alpha1",
        "kind": "GPUWorkload",
        "metadata": {"name": "book", "namespace": team},
        "spec": {"rootRef": root} | KEEP,
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bare", "namespace": team},
        "spec": {"containers": [{"name": "main", "image": "registry.example/server:1"}]},
    }


def a_kind(plural: str, kind: str, group: str) -> JsonObject:
    """Return a kind that others define, just enough to be accepted."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def a_sized_one(team: str, kind: str, name: str, size: int) -> JsonObject:
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "registry.example/server:1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": team,
            "labels": labels,
            "annotations": {"team-a/note": "ours"},
        },
        "spec": {
            "replicas": size,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def a_notebook(team: str, name: str, notes: dict[str, str]) -> JsonObject:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "Notebook",
        "metadata": {"name": name, "namespace": team, "annotations": notes},
        "spec": {"template": {"spec": {"containers": [{"name": name, "image": "a"}]}}},
    }


def test_there_are_many_of_them_and_no_two_alike() -> None:
    assert len(OVERREACH) >= 50
    assert len({(one.wrong, one.path) for one in OVERREACH}) == len(OVERREACH)


@pytest.mark.parametrize("write", OVERREACH, ids=lambda one: one.wrong.replace(" ", "-"))
def test_a_write_that_goes_too_far_is_refused(ours: Account, write: Write) -> None:
    uid = text(ours.get(write.path), "metadata", "uid") if write.method == "PATCH" else ""

    answer = ours.ask(write, uid=uid)

    assert DENIED in answer.text, f"{answer.status_code}: {answer.text}"


@pytest.mark.parametrize("path", [RUNNING, BATCH, NOTEBOOK])
def test_a_pause_is_accepted_and_so_is_the_restore(ours: Account, path: str) -> None:
    live = msgspec.convert(ours.get(path), LiveOwner, strict=False)
    body = ours.get(path)
    lever = lever_for(text(body, "kind"), GROUPS[text(body, "kind")])
    assert lever is not None
    taken = PauseRecord(
        lever=lever.kind,
        replicas=lever.size(live),
        uid=live.metadata.uid,
        generation=live.metadata.generation or 0,
        at=0.0,
        decision="abc",
        why='it says "idle", and more: {"replicas":7,',
    )
    pause = Write("", "PATCH", path, dict(lever.pause_patch(live, taken)))
    answer = ours.ask(pause)
    assert answer.status_code == 200, answer.text


def test_what_the_record_says_is_given_back(ours: Account) -> None:
    restore = {"spec": {"replicas": 2}, "metadata": {"annotations": {PAUSED: None}}}
    assert ours.ask(Write("", "PATCH", PAUSED_ONE, restore)).status_code == 200


def test_a_record_that_is_over_may_be_removed(ours: Account) -> None:
    assert (
        ours.ask(
            Write("", "PATCH", PAUSED_ONE, {"metadata": {"annotations": {PAUSED: None}}})
        ).status_code
        == 200
    )


@pytest.mark.parametrize(
    "wish",
    [
        KEEP | {"keepUntil": "2031-01-01T00:00:00Z", "keepBy": "ada"},
        dict.fromkeys(KEEP),
        {"exempt": True, "exemptBy": "ada", "exemptReason": "a course"},
        {"exempt": True, "exemptUntil": A_MOMENT, "exemptBy": "ada", "exemptReason": "a course"},
        {"release": True, "releaseAt": A_MOMENT, "releaseBy": "ada", "releaseReason": "done"}
        | dict.fromkeys(KEEP),
    ],
    ids=["keep", "withdrawal", "exemption", "exemption-until", "release-that-ends-a-keep"],
)
def test_a_wish_may_be_written_for_a_person(ours: Account, wish: JsonObject) -> None:
    answer = ours.ask(Write("", "PATCH", f"{BOOKS}/book", {"spec": wish}))
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("write", OVERREACH[:10], ids=lambda one: one.wrong.replace(" ", "-"))
def test_nobody_else_is_concerned(ours: Account, write: Write) -> None:
    administrator = Account(ours.lab, a_session(ours.lab), ours.team)

    answer = administrator.ask(write, uid="anything")

    assert answer.status_code == 200, answer.text


def test_the_policies_are_sound_for_every_kind_that_is_installed(ours: Account) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

    def checked() -> list[JsonObject]:
        found = ours.get(path)["items"]
        assert isinstance(found, list)
        mine = [one for one in found if text(one, "metadata", "name").startswith("gpu-pruner-")]
        return [one for one in mine if child(one, "status", "observedGeneration")]

    until(lambda: len(checked()) == 3)
    warnings = [child(one, "status", "typeChecking", "expressionWarnings") for one in checked()]
    assert warnings == [None, None, None]

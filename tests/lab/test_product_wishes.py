"""What people ask for in a real cluster, over HTTP and from the command line.

Each wish is written with who asks and why, is told in the words of the next decisions, can be
taken back, and is refused to whoever has no right to it. The witness is the audit log.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import pytest
import requests
from support.controller import WAIT_SECONDS, Controller
from support.lab import Lab
from support.product import Product, a_world, phases, record, told, until

from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.units import parse_rfc3339
from gpu_pruner.sim.tree import JsonObject, elements, mapping, number, text
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]

NOTICE_SECONDS = 600
"""So long that nothing here is paused because a notice was over."""
NOTICE = ("--ack-grace-period", str(NOTICE_SECONDS))
MAY = (
    ("gpuworkloads.gpu-pruner.io", "get,list,create,patch"),
    ("deployments.apps", "get,list,patch"),
    ("replicasets.apps", "get"),
    ("pods", "get"),
)
WHY = "a demonstration"
WARNING = "GpuIdleWarning"


@dataclass(frozen=True)
class Somebody:
    """A person with a ServiceAccount of their own, who asks by HTTP or by command."""

    product: Product
    controller: Controller
    name: str
    kubeconfig: Path
    token: str

    @property
    def user(self) -> str:
        """Return what the API server calls them."""
        return f"system:serviceaccount:{self.product.team}:{self.name}"

    def post(self, route: str, **body: object) -> tuple[int, JsonObject]:
        """Ask by HTTP and return the status and the answer."""
        answer = requests.post(
            f"http://127.0.0.1:{self.controller.port}/api/v1/workloads/{self.product.ref}/{route}",
            json={"reason": WHY} | body,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=30,
        )
        return answer.status_code, answer.json()

    def types(self, command: str, *arguments: str, ref: str = "") -> tuple[int, str, str]:
        """Ask by command and return the exit code and what it printed."""
        line = (command, ref or self.product.ref, "--reason", WHY, *arguments)
        done = subprocess.run(
            [sys.executable, "-m", "gpu_pruner.cli", *line],
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_SECONDS,
        )
        return done.returncode, done.stdout, done.stderr


@dataclass(frozen=True)
class Stage:
    """A warned workload, the controller, and three people of whom two may."""

    product: Product
    controller: Controller
    ada: Somebody
    carol: Somebody
    bob: Somebody

    def spec(self) -> JsonObject:
        """Return what the only GPUWorkload says besides its root."""
        path = GPUWORKLOADS.path(namespace=self.product.team)
        [found] = elements(self.product.get(path), "items")
        return {key: one for key, one in mapping(found, "spec").items() if key != "rootRef"}

    def status(self) -> JsonObject:
        path = GPUWORKLOADS.path(namespace=self.product.team)
        [found] = elements(self.product.get(path), "items")
        return mapping(found, "status")

    def cycle(self) -> int:
        """Return the number of the newest cycle that has ended."""
        return number(self.controller.get("/api/v1/workloads"), "cycle", "number")

    def until_told(self, reason: str, *words: str) -> None:
        """Wait for a reason, and assert that its sentence has these words."""
        self.controller.until_told(self.product.ref, reason=reason)
        message = text(self.controller.told(self.product.ref), "message")
        assert all(one in message for one in words), message

    def until_warned_anew(self, before: JsonObject) -> JsonObject:
        """Wait for another warning and assert that its notice is a whole one."""
        ref = self.product.ref
        self.controller.until_told(ref, state="Warned")
        until(lambda: text(self.status(), "warnedAt") > text(before, "warnedAt"))
        now = self.status()
        notice = parse_rfc3339(text(now, "pauseAt")) - parse_rfc3339(text(now, "warnedAt"))
        assert notice >= NOTICE_SECONDS
        return now


def somebody(lab: Lab, product: Product, controller: Controller, name: str) -> Somebody:
    lab.kubectl("create", "serviceaccount", name, "-n", product.team)
    token = lab.kubectl("create", "token", name, "-n", product.team).strip()
    return Somebody(product, controller, name, lab.service_account(product.team, name), token)


def entitle(lab: Lab, team: str, *names: str) -> None:
    for number_, (resource, verbs) in enumerate(MAY):
        role = f"people-{number_}"
        lab.kubectl("create", "role", role, "-n", team, f"--verb={verbs}", f"--resource={resource}")
        who = [f"--serviceaccount={team}:{one}" for one in names]
        lab.kubectl("create", "rolebinding", role, "-n", team, f"--role={role}", *who)


@pytest.fixture
def stage(lab: Lab, team: str, tmp_path: Path) -> Iterator[Stage]:
    world = a_world(Workload(kind="Deployment", namespace=team, name="server", replicas=2))
    with Product(lab, world, tmp_path) as product, product.controller(*NOTICE) as controller:
        people = [somebody(lab, product, controller, one) for one in ("ada", "carol", "bob")]
        entitle(lab, team, "ada", "carol")
        controller.until_told(product.ref, state="Warned")
        yield Stage(product, controller, *people)


def test_a_keep_and_an_exemption_hold_until_they_are_taken_back_and_then_all_begins_anew(
    lab: Lab, stage: Stage
) -> None:
    product, ada, bob = stage.product, stage.ada, stage.bob
    first = stage.status()

    assert bob.post("keep", **{"for": "4h"})[0] == HTTPStatus.FORBIDDEN
    assert bob.types("keep", "--for", "4h")[0] == 1
    code, out, err = ada.types("keep", "--for", "4h", "--output", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["by"] == ada.user
    stage.until_told("Kept", f"kept by {ada.user[:40]}", WHY)
    assert (stage.spec()["keepBy"], stage.spec()["keepReason"]) == (ada.user, WHY)

    status, answer = stage.carol.post("release")
    assert (status, "kept by" in text(answer, "error")) == (HTTPStatus.CONFLICT, True)
    assert stage.carol.types("release")[0] == 1

    assert ada.post("keep", withdraw=True)[0] == HTTPStatus.OK
    assert stage.spec() == {}
    second = stage.until_warned_anew(first)

    assert bob.post("exempt")[0] == HTTPStatus.FORBIDDEN
    assert bob.types("exempt")[0] == 1
    assert ada.post("exempt", **{"for": "30d"})[0] == HTTPStatus.OK
    stage.until_told("Exempt", f"exempted by {ada.user[:40]}", WHY)
    assert stage.spec()["exemptBy"] == ada.user
    assert ada.types("exempt", "--withdraw")[0] == 0
    assert stage.spec() == {}
    stage.until_warned_anew(second)

    assert product.workload_writes() == []
    assert told(product.writes()).count(WARNING) == 3
    ours = [one for one in product.writes() if is_wish(one)]
    theirs = [one for one in lab.audited(ada.user) if one.is_write and is_wish(one)]
    assert [one.response_status.code for one in (*ours, *theirs)] == [200] * 4
    assert [one for one in lab.audited(bob.user) if one.is_write and is_done(one)] == []


@pytest.mark.parametrize("way", ["http", "command"])
def test_a_release_is_paused_at_once_in_the_name_of_whoever_asks_and_hits_no_later_pod(
    lab: Lab, stage: Stage, way: str
) -> None:
    product, controller, ada, bob = stage.product, stage.controller, stage.ada, stage.bob
    assert bob.post("release")[0] == HTTPStatus.FORBIDDEN
    assert bob.types("release")[0] == 1

    if way == "http":
        status, answer = ada.post("release")
        assert (status, answer["by"]) == (HTTPStatus.OK, ada.user)
    else:
        code, out, err = ada.types("release")
        assert (code, err) == (0, "")
        assert f"released by {ada.user}" in out
    spec = stage.spec()
    assert (spec["release"], spec["releaseBy"], spec["releaseReason"]) == (True, ada.user, WHY)
    controller.until(lambda: product.size(product.ref) == 0)
    controller.until_told(product.ref, state="Paused")

    [pause] = product.workload_writes()
    assert (record(pause)["by"], record(pause)["replicas"]) == (ada.user, 2)
    assert f"Released by {ada.user[:40]}" in text(record(pause), "why")
    assert phases(product.writes())[-2:] == ["Pausing", "Paused"]
    assert told(product.writes()).count(WARNING) == 1

    product.by_hand("resume", product.ref)
    controller.until_told(product.ref, state="Watching", reason="TooYoung")
    last = stage.cycle() + 3
    controller.until(lambda: stage.cycle() >= last)
    assert controller.reason(product.ref) == "TooYoung"
    assert product.workload_writes() == [pause]
    assert product.size(product.ref) == 2
    assert PAUSED not in product.annotations(product.ref)


def test_a_name_that_is_not_there_is_bad_input_and_the_likest_one_is_told(stage: Stage) -> None:
    code, out, err = stage.ada.types("keep", "--for", "4h", ref=f"{stage.product.ref[:-1]}")
    assert (code, out) == (2, "")
    assert f"did you mean {stage.product.ref}?" in err


def test_a_pod_stands_for_its_workload(stage: Stage) -> None:
    product = stage.product
    pod = text(product.pods(product.team)[0], "metadata", "name")
    code, out, err = stage.ada.types("keep", "--for", "4h", ref=f"pod/{product.team}/{pod}")
    assert (code, err) == (0, "")
    assert out.startswith(f"{product.ref}: kept by {stage.ada.user} until ")
    stage.controller.until_told(product.ref, reason="Kept")


def is_wish(entry) -> bool:
    """Whether somebody wrote into the spec of a GPUWorkload."""
    at = entry.object_ref
    return at.resource == "gpuworkloads" and entry.verb == "patch" and not at.subresource


def is_done(entry) -> bool:
    """Whether a write of anything that is kept was carried out."""
    return entry.response_status.code < 300 and "reviews" not in entry.object_ref.resource

"""What a check says of a real API server, as our ServiceAccount and as an administrator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.lab import Lab
from support.product import OURS, install

from gpu_pruner.check.examination import Examination
from gpu_pruner.check.finding import Area, Finding, Level
from gpu_pruner.cli.wiring import telemetry_source
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.settings.schema import Settings

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

DEAD = "http://127.0.0.1:9"
BASE = Path(__file__).parents[2] / "deploy" / "kustomize" / "base"


@pytest.fixture(scope="module")
def ours(lab: Lab) -> Iterator[Path]:
    """Return a kubeconfig of our ServiceAccount, with everything installed as we ship it."""
    yield install(lab)
    lab.reset()


async def checked(kubeconfig: Path, **more: object) -> tuple[Finding, ...]:
    given = {"prometheus": {"url": DEAD}, "kubernetes": {"kubeconfig": str(kubeconfig)}}
    settings, clock = Settings.model_validate(given | more), SystemClock()
    source = telemetry_source(settings, clock, brief=True)
    try:
        return await Examination(settings, clock, source).findings()
    finally:
        await source.close()


def of(found: tuple[Finding, ...], area: Area) -> list[Finding]:
    return [one for one in found if one.area is area]


async def test_what_we_ship_is_enough(ours: Path) -> None:
    found = await checked(ours, mode="scale-down", warn_only_kinds=[])

    [rights] = of(found, Area.RIGHTS)
    assert rights.level is Level.OK
    assert rights.sentence.endswith(f"granted to {OURS}")
    cluster = of(found, Area.CLUSTER)
    assert {one.level for one in cluster} == {Level.OK}
    assert f"which knows us as {OURS}" in cluster[0].sentence
    assert "The kind GPUWorkload is installed" in [one.sentence for one in cluster]
    # The telemetry is dead, and everything else is told all the same.
    [telemetry] = [one for one in of(found, Area.TELEMETRY) if one.level is Level.FAIL]
    assert "cannot be reached" in telemetry.sentence
    assert {one.sentence.partition(":")[0] for one in of(found, Area.BREAKERS)} == {"ScreenFailed"}


def rules_without(role: str, resource: str) -> tuple[list[object], list[object]]:
    """Return the rules of a role as shipped, and those without the one about a resource."""
    documents = yaml.safe_load_all((BASE / "rbac.yaml").read_text())
    [rules] = [
        one["rules"]
        for one in documents
        if one["kind"] == "ClusterRole" and one["metadata"]["name"] == role
    ]
    return rules, [one for one in rules if resource not in one["resources"]]


@pytest.mark.parametrize(
    ("role", "resource", "told", "mode"),
    [
        ("gpu-pruner", "nodes", "may not list and watch nodes, so nothing", "dry-run"),
        ("gpu-pruner", "events", "may not create and patch events, so no owner", "dry-run"),
        (
            "gpu-pruner",
            "gpuworkloads/status",
            "may not patch gpuworkloads/status.gpu-pruner.io, so no warning",
            "dry-run",
        ),
        (
            "gpu-pruner-levers",
            "notebooks",
            "may not patch notebooks.kubeflow.org, so no Notebook can be paused",
            "scale-down",
        ),
    ],
)
async def test_a_rule_that_was_deleted_is_told_with_the_rule_to_add(
    lab: Lab, ours: Path, role: str, resource: str, told: str, mode: str
) -> None:
    shipped, rest = rules_without(role, resource)
    assert rest != shipped
    try:
        missing = await rights_with(lab, ours, role, rest, until=told, mode=mode)
    finally:
        await rights_with(lab, ours, role, shipped, until="that are needed are granted", mode=mode)

    [finding] = [one for sentence, one in missing.items() if told in sentence]
    assert finding.level is Level.FAIL
    assert OURS in finding.sentence
    place, _, rule = finding.fix.partition(":\n")
    assert place == f"add to ClusterRole {role}"
    [parsed] = yaml.safe_load(rule)
    assert parsed["resources"] == [resource]


async def rights_with(
    lab: Lab, kubeconfig: Path, role: str, rules: list[object], *, until: str, mode: str
) -> dict[str, Finding]:
    """Give a role these rules, and return what is found of rights once that has come about."""
    patch = json.dumps([{"op": "replace", "path": "/rules", "value": rules}])
    lab.kubectl("patch", "clusterrole", role, "--type=json", "-p", patch)
    async with asyncio.timeout(30):
        while True:
            found = of(await checked(kubeconfig, mode=mode), Area.RIGHTS)
            if any(until in one.sentence for one in found):
                return {one.sentence: one for one in found}


async def test_an_administrator_sees_the_guard_rails_and_that_one_is_gone(
    lab: Lab, ours: Path
) -> None:
    admin = lab.kubeconfig()
    there = [one for one in of(await checked(admin), Area.CLUSTER) if "admission" in one.sentence]
    lab.kubectl("delete", "validatingadmissionpolicybinding", "gpu-pruner-books")
    try:
        found = await checked(admin)
    finally:
        lab.kubectl("apply", "-k", BASE)
    gone = [one for one in of(found, Area.CLUSTER) if "admission" in one.sentence]
    assert [one.level for one in there] == [Level.OK]
    assert "installed and bound" in there[0].sentence
    assert [one.level for one in gone] == [Level.WARN]
    assert "1 admission policy is not installed or not bound: gpu-pruner-books" in gone[0].sentence
    assert "kubectl apply -k deploy/kustomize/base" in gone[0].fix


async def test_a_check_writes_nothing(lab: Lab, ours: Path) -> None:
    lab.audit.mark()
    await checked(ours)
    writes = [one for one in lab.audited(OURS) if one.is_write]
    asked = {one.object_ref.resource for one in writes}
    assert asked == {"selfsubjectaccessreviews", "selfsubjectreviews"}

"""A check asks for the rights that we ship, and tells a missing one with the rule to add."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import yaml

from gpu_pruner.check.finding import Level
from gpu_pruner.check.rights import Need, findings, needs
from gpu_pruner.kube.resources import CONFIGMAPS, LEASES, NODES, PODS
from gpu_pruner.model.rules import Mode
from gpu_pruner.settings.schema import Settings

RBAC = Path(__file__).parents[3] / "deploy" / "kustomize" / "base" / "rbac.yaml"
OURS = "gpu-pruner-system"
EVERYTHING_PAUSED = Settings(warn_only_kinds=frozenset())


def shipped() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (role, verb, group, resource, name) of everything that is granted."""
    for role in yaml.safe_load_all(RBAC.read_text()):
        where = f"{role['kind']} {role['metadata']['name']}"
        if role["kind"] == "Role":
            where += f" in namespace {role['metadata']['namespace']}"
        for rule in role.get("rules", ()):
            names = rule.get("resourceNames", [""])
            parts = product(rule["verbs"], rule["apiGroups"], rule["resources"], names)
            yield from ((where, *part) for part in parts)


def as_shipped(need: Need) -> tuple[str, str, str, str, str]:
    right = need.right
    return need.role, right.verb, right.resource.group, right.thing, right.name


def all_needs(settings: Settings = EVERYTHING_PAUSED) -> tuple[Need, ...]:
    return needs(settings, namespace=OURS)


def test_every_right_that_is_asked_for_is_shipped_and_no_other() -> None:
    # What Kueue and KEDA govern is looked at by the levers of their targets' kinds.
    assert {as_shipped(one) for one in all_needs()} == set(shipped())


def test_no_right_is_asked_for_twice() -> None:
    asked = [one.right for one in all_needs()]
    assert len(asked) == len(set(asked))


def test_a_kind_that_may_not_be_paused_needs_no_patch() -> None:
    only = Settings(enabled_kinds=frozenset({"Deployment"}))
    patched = {one.right.resource.kind for one in all_needs(only) if one.right.verb == "patch"}
    assert "Deployment" in patched
    assert not patched & {"StatefulSet", "Notebook", "Job"}


def granted_but(*missing: tuple[object, str]) -> dict[Need, bool]:
    return {one: (one.right.resource, one.right.verb) not in missing for one in all_needs()}


def test_a_missing_right_names_kind_and_verbs_with_the_rule_to_add() -> None:
    answers = granted_but((PODS, "list"), (PODS, "watch"))

    [found] = findings(answers, mode=Mode.DRY_RUN, who="system:serviceaccount:a:b")

    assert found.level is Level.FAIL
    assert found.sentence == (
        "system:serviceaccount:a:b may not list and watch pods, so nothing can be judged"
    )
    role, _, rule = found.fix.partition(":\n")
    assert role == "add to ClusterRole gpu-pruner"
    assert yaml.safe_load(rule) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
    ]


def test_a_right_to_one_object_is_told_with_its_name_and_place() -> None:
    answers = granted_but((LEASES, "patch"), (CONFIGMAPS, "get"))

    lease, hold = findings(answers, mode=Mode.DRY_RUN)

    assert "may not patch leases.coordination.k8s.io gpu-pruner in namespace" in lease.sentence
    assert yaml.safe_load(lease.fix.partition(":\n")[2])[0]["resourceNames"] == ["gpu-pruner"]
    assert "everything is held" in hold.sentence


@pytest.mark.parametrize(
    ("mode", "level"), [(Mode.DRY_RUN, Level.WARN), (Mode.SCALE_DOWN, Level.FAIL)]
)
def test_what_only_a_pause_needs_is_no_failure_of_a_dry_run(mode: Mode, level: Level) -> None:
    answers = {one: not one.scale_down_only for one in all_needs()}
    assert {one.level for one in findings(answers, mode=mode)} == {level}


def test_what_could_not_be_asked_is_told_and_nothing_is_said_to_be_granted() -> None:
    [found] = findings({}, mode=Mode.DRY_RUN, unasked=["the server is away"])
    assert found.level is Level.WARN
    assert "the server is away" in found.sentence


def test_a_server_that_grants_everything_is_told_in_one_line() -> None:
    [found] = findings(granted_but(), mode=Mode.SCALE_DOWN)
    assert (found.level, found.fix) == (Level.OK, "")
    assert NODES in {one.right.resource for one in all_needs()}

"""What we ship grants no more than it should, and its two locks speak of the same things."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

BASE = Path(__file__).parents[3] / "deploy" / "kustomize" / "base"
USER = "request.userInfo.username == 'system:serviceaccount:gpu-pruner-system:gpu-pruner'"


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((BASE / file).read_text()))


def rules() -> Iterator[tuple[str, str, str]]:
    """Yield what is granted anywhere, as (verb, group, resource)."""
    for role in documents("rbac.yaml"):
        for rule in role.get("rules", ()):
            yield from product(rule["verbs"], rule["apiGroups"], rule["resources"])


def policies() -> dict[str, dict[str, Any]]:
    return {
        one["metadata"]["name"]: one["spec"]
        for one in documents("guard-rails.yaml")
        if one["kind"] == "ValidatingAdmissionPolicy"
    }


def test_nothing_is_granted_by_a_wildcard() -> None:
    assert [one for one in rules() if "*" in "".join(one)] == []


@pytest.mark.parametrize("resource", ["secrets", "pods/exec", "pods/eviction"])
def test_what_a_pruner_needs_not_know_is_not_granted(resource: str) -> None:
    assert [one for one in rules() if one[2] == resource] == []


def test_a_config_map_is_read_by_its_name_only() -> None:
    named = [
        rule.get("resourceNames")
        for role in documents("rbac.yaml")
        for rule in role.get("rules", ())
        if "configmaps" in rule["resources"]
    ]
    assert named
    assert all(named)
    assert {one[0] for one in rules() if one[2] == "configmaps"} == {"get"}


@pytest.mark.parametrize(
    "verb", ["delete", "deletecollection", "escalate", "bind", "impersonate", "approve", "sign"]
)
def test_nobody_is_deleted_or_impersonated(verb: str) -> None:
    assert [one for one in rules() if one[0] == verb] == []


def test_every_write_that_is_granted_is_held_by_a_policy() -> None:
    writes = {(group, resource) for verb, group, resource in rules() if verb in {"patch", "update"}}
    held = {
        (group, resource)
        for name, spec in policies().items()
        if name != "gpu-pruner-nothing-else"
        for rule in spec["matchConstraints"]["resourceRules"]
        for group, resource in product(rule["apiGroups"], rule["resources"])
    }
    assert writes <= held


def test_the_last_policy_lets_pass_what_is_granted() -> None:
    [rule] = policies()["gpu-pruner-nothing-else"]["validations"]
    passed = rule["expression"]
    for verb, group, resource in rules():
        if verb in {"patch", "update", "create"} and not group.startswith("auth"):
            assert f"'{group}/{resource}'" in passed


def test_every_policy_is_about_our_account_alone_and_bound() -> None:
    for name, spec in policies().items():
        assert [one["expression"] for one in spec["matchConditions"]] == [USER], name
    bound = {
        one["spec"]["policyName"]: one["spec"]["validationActions"]
        for one in documents("guard-rails.yaml")
        if one["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    assert bound == {name: ["Deny"] for name in policies()}
    [account] = documents("serviceaccount.yaml")
    told = account["metadata"]
    assert USER.endswith(f":{told['namespace']}:{told['name']}'")


def test_the_policy_that_is_asked_about_everything_can_stop_nobody_else() -> None:
    assert policies()["gpu-pruner-nothing-else"]["failurePolicy"] == "Ignore"

from __future__ import annotations

import pytest

from gpu_pruner.sim.happenings import line_of
from gpu_pruner.sim.journal import RequestRecord


def write(verb: str, resource: str, *, group: str = "", name: str = "", namespace: str = ""):
    return RequestRecord(
        at=0.0,
        user="operator",
        method="",
        path="",
        query="",
        status=201,
        body=b"",
        verb=verb,
        group=group,
        resource=resource,
        namespace=namespace,
        name=name,
    )


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("create", "operator creates deployments/team-a/train"),
        ("update", "operator updates deployments/team-a/train"),
        ("patch", "operator patches deployments/team-a/train"),
        ("delete", "operator deletes deployments/team-a/train"),
    ],
)
def test_a_write_is_told_in_english(verb, told):
    record = write(verb, "deployments", group="apps", namespace="team-a", name="train")
    assert line_of(record, {}) == told


def test_what_lies_in_no_namespace_is_told_without_one():
    assert line_of(write("patch", "nodes", name="node-a"), {}) == "operator patches nodes/node-a"


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("coordination.k8s.io", "leases"),
    ],
)
def test_questions_and_book_keeping_are_not_part_of_the_story(group, resource):
    assert line_of(write("create", resource, group=group), {}) == ""

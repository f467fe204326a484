from __future__ import annotations

import pytest

from gpu_pruner.cli.references import parse_reference
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.workload import RootRef
from gpu_pruner.settings.levers import CustomLever


@pytest.mark.parametrize(
    ("text", "kind", "group"),
    [
        ("deployment/team-a/train", "Deployment", "apps"),
        ("deploy/team-a/train", "Deployment", "apps"),
        ("StatefulSet/team-a/train", "StatefulSet", "apps"),
        ("notebook/team-a/train", "Notebook", "kubeflow.org"),
        ("pod/team-a/train", "Pod", ""),
        ("isvc/team-a/train", "InferenceService", "serving.kserve.io"),
        ("lws/team-a/train", "LeaderWorkerSet", "leaderworkerset.x-k8s.io"),
        ("rollout/team-a/train", "Rollout", "argoproj.io"),
        ("pytorchjob/team-a/train", "PyTorchJob", "kubeflow.org"),
    ],
)
def test_a_reference_names_group_and_kind(text, kind, group):
    wanted = RootRef(kind=kind, namespace="team-a", name="train", group=group)
    assert parse_reference(text) == wanted


@pytest.mark.parametrize("text", ["", "train", "team-a/train", "a/b/c/d", "deployment//x", "x/y/z"])
def test_anything_else_says_what_a_reference_looks_like(text):
    with pytest.raises(ConfigurationError, match="kind"):
        parse_reference(text)


def test_a_kind_of_the_settings_can_be_named() -> None:
    server = CustomLever(
        group="ml.example.org",
        version="v1",
        plural="servers",
        kind="Server",
        replicas="spec.workers",
    )
    found = parse_reference("server/team-a/llm", custom=[server])
    assert found == RootRef("Server", "team-a", "llm", "ml.example.org")
    with pytest.raises(ConfigurationError, match="unknown kind 'server'"):
        parse_reference("server/team-a/llm")

from __future__ import annotations

import pytest

from gpu_pruner.cli.references import near, parse_question, parse_reference
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.loop.explaining import Question
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


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("node/node-a", Question(node="node-a")),
        ("Node/node-a.example.org", Question(node="node-a.example.org")),
        ("gpu/GPU-1234", Question(device="GPU-1234")),
        ("gpu/GPU-1234/3", Question(device="GPU-1234/3")),
        ("sts/team-a/train", Question(root=RootRef("StatefulSet", "team-a", "train", "apps"))),
        ("pod/team-a/train-0", Question(root=RootRef("Pod", "team-a", "train-0"))),
    ],
)
def test_a_question_can_be_about_a_workload_a_pod_a_node_or_a_gpu(text, question):
    assert parse_question(text) == question


@pytest.mark.parametrize("text", ["", "train", "node/", "gpu/", "node/a/b/c", "gpu/a/b/c", "a/b"])
def test_any_other_question_is_told_every_shape(text):
    with pytest.raises(ConfigurationError, match="kind/namespace/name, pod/.*, node/NAME or gpu/"):
        parse_question(text)


def test_a_question_can_be_about_a_kind_that_we_cannot_pause():
    assert str(parse_question("DaemonSet/team-a/agent")) == "daemonset/team-a/agent"


def test_near_names_are_the_likest_first_and_few():
    known = {f"deployment/team-a/train-{n}" for n in range(9)} | {"deployment/team-a/train"}
    found = near("deployment/team-a/trai", known)
    assert found[0] == "deployment/team-a/train"
    assert len(found) == 3
    assert near("notebook/other/thing", known) == ()


NO_NAMES = [
    "deployment/../train",
    "deployment/team-a/..",
    "deployment/team-a/.",
    "notebook/../team-c",
    "deployment/\udcff\udcfe/x",
    "deployment/team-a/\x1b[31mred",
    "deployment/team-a/a b",
    "deployment/team-a/" + "x" * 5000,
    "\x1b[31m/team-a/x",
]


@pytest.mark.parametrize("text", [*NO_NAMES, "node/..", "node/\x1b[2J", "gpu/GPU-1/\udcff"])
def test_a_part_that_is_no_name_is_told_short_and_printable(text: str) -> None:
    with pytest.raises(ConfigurationError, match="^REF .* is not a name") as caught:
        parse_question(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", NO_NAMES)
def test_no_order_names_a_part_that_is_no_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match="^REF .* is not a name"):
        parse_reference(text)


@pytest.mark.parametrize("text", ["\x1b[31m", "a/\x1b/c", "x" * 5000, "a/b/c/" + "\udcff" * 999])
def test_another_shape_is_shown_short_and_printable(text: str) -> None:
    for parse in (parse_reference, parse_question):
        with pytest.raises(ConfigurationError) as caught:
            parse(text)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 500

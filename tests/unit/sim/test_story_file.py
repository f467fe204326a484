from __future__ import annotations

from pathlib import Path

import pytest

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.sim.story import Ending
from gpu_pruner.sim.story_file import first_story, load_story

NODE = "nodes: [{name: node-1}]"


def loaded(tmp_path: Path, text: str):
    file = tmp_path / "world.yaml"
    file.write_text(text, encoding="utf-8")
    return load_story(file)


def part(more: str) -> str:
    return f"{NODE}\nworkloads:\n- {{kind: Deployment, namespace: a, name: b, {more}}}\n"


def test_what_is_not_said_has_a_default(tmp_path):
    (one,) = loaded(tmp_path, part("gpus: 2")).workloads
    assert (one.ref, one.ending, one.reasons, one.keep) == (
        "deployment/a/b",
        Ending.OPEN,
        (),
        False,
    )
    assert one.place == "/namespaces/a/deployments/b"


WRONG = [
    ("", "world.yaml: workloads: must hold at least one workload"),
    ("- a", "world.yaml: must hold names of settings with values"),
    ("nodes: [", "world.yaml:1:9: is not YAML"),
    ("a: &x 1\nb: *x\n", "world.yaml:2:4: b: is an alias"),
    ("clouds: []", "world.yaml:1:1: clouds: is not known"),
    ("node: []", "world.yaml:1:1: node: is not known; did you mean nodes?"),
    ("nodes: 3", "world.yaml:1:1: nodes: must be `array`, got `int`"),
    ("nodes: [{}]", "world.yaml:1:9: nodes.0: has no name"),
    ("nodes: [3]", "world.yaml:1:9: nodes.0: must be `object`, got `int`"),
    (part("gpus: -1"), "world.yaml:3:45: workloads.0.gpus: must be `int` >= 0"),
    (part("gpus: 0"), "world.yaml:3:45: workloads.0.gpus: must be at least 1"),
    (part("gpus: 9"), "gpus: no node has 9 of nvidia.com/gpu; the most is 8"),
    (part("gpu: 1"), "world.yaml:3:45: workloads.0.gpu: is not known; did you mean gpus?"),
    (part("ending: stopped"), "workloads.0.ending: invalid enum value 'stopped'"),
    (part("reasons: [Idleness]"), "workloads.0.reasons.0: invalid enum value 'Idleness'"),
    (part("node: node-2"), "workloads.0.node: there is no node 'node-2'"),
    (part("resource: nvidia.com/gpu.shared"), "is not on any node; there is nvidia.com/gpu"),
    (part("group_size: 2"), "workloads.0.group_size: only a LeaderWorkerSet has groups"),
    (part("pods_deleted: [0]"), "workloads.0.pods_deleted: must be minutes after the begin"),
    (part("started_minutes_ago: -1"), "started_minutes_ago: must be 0 or more"),
    (part("ending: paused, keep: true"), "keep: what is kept by a person is not paused"),
    (
        part("behaviour: {activities: [[0, 1]]}"),
        "workloads.0.behaviour.activities: is not known; did you mean activity?",
    ),
    (part("behaviour: {activity: [[0, 1.5]]}"), "activity.0: must be a minute and a value"),
    (part("behaviour: {activity: [[.nan, 1]]}"), "activity.0: must be a minute and a value"),
    (part("behaviour: {util: [[0, 101]]}"), "util.0: must be a minute and a value from 0 to"),
    (part("behaviour: {activity: [[5, 1], [2, 0]]}"), "must be in the order of their minutes"),
    (part("behaviour: {gaps: [[5, 2]]}"), "behaviour.gaps.0: must begin before it ends"),
    (
        part("overrides: [{gpu: 0, behaviour: {encoder: [[0, -1]]}}]"),
        "workloads.0.overrides.0.behaviour.encoder.0: must be a minute and a value",
    ),
    (part("replicas: 300"), "workloads: have 300 pods; at most 256 are played"),
    (part("gpus: 1") + "minutes: 0", "world.yaml:4:1: minutes: must be above 0 and at most"),
    (part("gpus: 1") + "minutes: .inf", "world.yaml:4:1: minutes: must be above 0"),
    (part("gpus: 1") + "absent_kinds: [Deployment]", "kind: is among the absent_kinds"),
    (part("gpus: 1") + "absent_kinds: [Car]", "absent_kinds: 'Car' is no kind"),
    ("nodes: [{name: a, gpus: 1000000000}]", "nodes: have 1000000000 GPUs and parts"),
    ("nodes: [{name: a, gpus: 0, shares: 1000000}]", "nodes: have 1000000 GPUs and parts"),
    (
        part("replicas: 1000000, group_size: 0").replace("Deployment", "LeaderWorkerSet"),
        "workloads: have 1000000 pods; at most 256 are played",
    ),
    (part(r'told: "\e[31mred"'), "workloads.0.told: must be one line, without control characters"),
    (part("started_minutes_ago: 1e300"), "must be 0 or more, and at most ten years"),
    (part("gpus: 1") + "namespaces: [{name: ../a}]", "namespaces.0.name: must be 1 to 40 of a-z"),
    ("nodes: [{name: a}, {name: a}]", "world.yaml:1:20: nodes.1: 'a' is there already"),
    ("nodes: [{name: A}]", "world.yaml:1:10: nodes.0.name: must be 1 to 40 of a-z"),
    ("nodes: [{name: a, shares: 0}]", "nodes.0.shares: must be `int` >= 1"),
    ("nodes: [{name: a, shares: 2, mig: [1g.10gb]}]", "nodes.0.shares: cannot be shared and"),
    ("nodes: [{name: a, mig: [big]}]", "nodes.0.mig.0: 'big' is no profile such as"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_no_story_is_refused_with_its_place(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    Path("world.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        load_story(Path("world.yaml"))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("Pod", "replicas: 2", "replicas: a Pod has one pod"),
        ("Pod", "ending: paused", "ending: a Pod is never paused"),
        ("DaemonSet", "ending: resumed", "ending: a DaemonSet is never paused"),
        ("Job", "gpus: 1", "kind: 'Job' is none of Deployment, ReplicaSet"),
    ],
)
def test_a_kind_has_its_own_rules(tmp_path, kind, more, message):
    with pytest.raises(ConfigurationError) as refused:
        loaded(tmp_path, part(more).replace("Deployment", kind))
    assert message in str(refused.value)


def test_every_wrong_item_is_told_at_once_in_the_order_of_the_file(tmp_path):
    text = "nodes:\n- {gpus: 1}\n- {name: b, gpus: x}\nworkloads:\n- {kind: Pod}\nseed: one\n"
    with pytest.raises(ConfigurationError) as refused:
        loaded(tmp_path, text)
    lines = [one.rpartition("world.yaml:")[2] for one in str(refused.value).splitlines()]
    assert [one.partition(":")[0] for one in lines] == ["2", "3", "5", "6"]


def test_the_first_story_is_the_same_one_each_time():
    assert first_story() is first_story()

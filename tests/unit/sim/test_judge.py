from __future__ import annotations

import json

import pytest

from gpu_pruner.model.units import MINUTE
from gpu_pruner.sim.judge import CONTROLLER, Request, Scene, judge
from gpu_pruner.sim.story import FIRST_STORY, Ending

BEGIN = 1_000_000.0
PARTS = {part.ref: part for part in FIRST_STORY.parts}
RESUMED = PARTS["deployment/team-b/serve"]
PAUSED = PARTS["notebook/team-c/notebook-1"]
KEPT = PARTS["deployment/team-a/finetune"]
FIRST = Scene(size=3, annotations={}, pods=frozenset({"a", "b", "c"}), ready=3)
AGAIN = Scene(size=3, annotations={}, pods=frozenset({"d", "e", "f"}), ready=3, phase="Watching")


def place(part):
    one = part.workload
    group = "/apis/kubeflow.org/v1" if one.kind == "Notebook" else "/apis/apps/v1"
    return f"{group}/namespaces/{one.namespace}/{one.kind.lower()}s/{one.name}"


def warning(part, minute):
    one = part.workload
    about = {"kind": one.kind, "namespace": one.namespace, "name": one.name}
    return Request(
        at=BEGIN + minute * MINUTE,
        user=CONTROLLER,
        method="POST",
        path=f"/api/v1/namespaces/{one.namespace}/events",
        body={"type": "Warning", "involvedObject": about, "reason": "GpuIdleWarning"},
        status=201,
    )


def pause(part, minute, *, replicas=3, record=True):
    annotations = {}
    if record:
        annotations["gpu-pruner.io/paused"] = json.dumps({"replicas": replicas})
    body = {"metadata": {"annotations": annotations}, "spec": {"replicas": 0}}
    if part.workload.kind == "Notebook":
        body = {"metadata": {"annotations": annotations}}
        annotations["kubeflow-resource-stopped"] = "2026-01-01T00:00:00Z"
    return Request(
        at=BEGIN + minute * MINUTE,
        user=CONTROLLER,
        method="PATCH",
        path=place(part),
        body=body,
        status=200,
    )


def resume(part, minute, *, replicas=3, user="operator"):
    return Request(
        at=BEGIN + minute * MINUTE,
        user=user,
        method="PATCH",
        path=place(part),
        body={"spec": {"replicas": replicas}},
        status=200,
    )


def judged(part, requests, now=AGAIN):
    return judge(part, begin=BEGIN, first=FIRST, now=now, requests=requests)


def test_the_whole_story_of_a_resumed_workload_is_over_without_fault():
    story = [warning(RESUMED, 38), pause(RESUMED, 54), resume(RESUMED, 56)]
    found = judged(RESUMED, story)
    assert (found.over, found.faults) == (True, ())


@pytest.mark.parametrize(
    ("story", "fault"),
    [
        ([pause(RESUMED, 54)], "without a warning"),
        ([warning(RESUMED, 50), pause(RESUMED, 54)], "4 minutes after its warning"),
        ([warning(RESUMED, 2), pause(RESUMED, 20)], "no whole window was seen"),
        ([warning(RESUMED, 38), pause(RESUMED, 54, record=False)], "no record"),
        ([warning(RESUMED, 38), pause(RESUMED, 54, replicas=1)], "says 1 replicas, it had 3"),
        ([warning(RESUMED, 38), pause(RESUMED, 54), pause(RESUMED, 55)], "paused 2 times"),
        ([resume(RESUMED, 5, replicas=2, user=CONTROLLER)], "no pause"),
    ],
)
def test_what_cannot_be_made_good_is_a_fault(story, fault):
    found = judged(RESUMED, story)
    assert not found.over
    assert any(fault in one for one in found.faults)


def test_a_size_that_did_not_come_back_is_not_the_end():
    story = [warning(RESUMED, 38), pause(RESUMED, 54), resume(RESUMED, 56, replicas=1)]
    now = Scene(size=1, annotations={}, pods=frozenset({"d"}), ready=1, phase="Watching")
    assert not judged(RESUMED, story, now).over


def test_nothing_paused_is_not_the_end():
    assert not judged(RESUMED, []).over
    assert not judged(PAUSED, []).over


def test_a_notebook_is_paused_by_its_annotation():
    now = Scene(size=0, annotations={}, pods=frozenset(), ready=0, phase="Paused")
    assert judged(PAUSED, [warning(PAUSED, 38), pause(PAUSED, 54)], now).over


def test_pods_that_are_still_there_are_not_the_end():
    now = Scene(size=0, annotations={}, pods=frozenset({"a"}), ready=0, phase="Pausing")
    assert not judged(PAUSED, [warning(PAUSED, 38), pause(PAUSED, 54)], now).over


def test_a_kept_workload_may_not_be_touched():
    same = Scene(size=3, annotations={}, pods=FIRST.pods, ready=3)
    assert judged(KEPT, [], same).over
    assert judged(KEPT, [pause(KEPT, 54)], same).faults
    assert judged(KEPT, [], AGAIN).faults


def test_the_story_has_all_three_kinds_and_endings():
    assert {part.workload.kind for part in FIRST_STORY.parts} == {
        "Deployment",
        "StatefulSet",
        "Notebook",
    }
    assert {part.ending for part in FIRST_STORY.parts} == set(Ending)
    assert len(FIRST_STORY.parts) >= 6

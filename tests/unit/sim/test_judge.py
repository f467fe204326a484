from __future__ import annotations

import json
from dataclasses import replace

import pytest
from msgspec import structs

from gpu_pruner.model.units import MINUTE
from gpu_pruner.sim.judge import CONTROLLER, Case, Request, Scene, judge
from gpu_pruner.sim.story import Ending, Part
from gpu_pruner.sim.story_file import first_story

BEGIN = 1_000_000.0
PARTS = {part.ref: part for part in first_story().workloads}
RESUMED = PARTS["deployment/team-b/serve"]
PAUSED = PARTS["notebook/team-c/notebook-1"]
STOPPED = PARTS["inferenceservice/team-d/chat"]
KEPT = PARTS["deployment/team-a/finetune"]
ASKED = PARTS["deployment/team-f/paper"]
RENEWED = PARTS["statefulset/team-e/sweep"]
OPEN = structs.replace(PAUSED, ending=Ending.OPEN)
FIRST = Scene(size=3, annotations={}, pods=frozenset({"a", "b", "c"}), ready=3)
AGAIN = Scene(size=3, annotations={}, pods=frozenset({"d", "e", "f"}), ready=3, phase="Watching")


STOPS = {
    "Notebook": {"kubeflow-resource-stopped": "2026-01-01T00:00:00Z"},
    "InferenceService": {"serving.kserve.io/stop": "true"},
}


def place(part):
    group = "/apis/kubeflow.org/v1" if part.kind == "Notebook" else "/apis/apps/v1"
    return f"{group}{part.place}"


def warning(part, minute):
    about = {"kind": part.kind, "namespace": part.namespace, "name": part.name}
    return Request(
        at=BEGIN + minute * MINUTE,
        user=CONTROLLER,
        method="POST",
        path=f"/api/v1/namespaces/{part.namespace}/events",
        body={"type": "Warning", "involvedObject": about, "reason": "GpuIdleWarning"},
        status=201,
    )


def pause(part, minute, *, replicas=3, record=True):
    annotations = {}
    if record:
        annotations["gpu-pruner.io/paused"] = json.dumps({"replicas": replicas, "why": "it idled"})
    body = {"metadata": {"annotations": annotations}, "spec": {"replicas": 0}}
    if part.kind in STOPS:
        body = {"metadata": {"annotations": annotations}}
        annotations |= STOPS[part.kind]
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


def judged(part, requests, now=AGAIN, *, minute=60.0, others=frozenset()):
    at = BEGIN + minute * MINUTE
    case = Case(begin=BEGIN, at=at, first=FIRST, now=now, requests=requests, others=others)
    return judge(part, case)


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


GONE = Scene(size=0, annotations={}, pods=frozenset(), ready=0, phase="Paused")
SAME = Scene(size=3, annotations={}, pods=FIRST.pods, ready=3)


@pytest.mark.parametrize("part", [PAUSED, STOPPED], ids=["notebook", "inferenceservice"])
def test_what_an_annotation_stops_is_paused_by_it(part):
    found = judged(part, [warning(part, 38), pause(part, 54)], GONE)
    assert (found.over, found.faults, found.why) == (True, (), "it idled")


def test_pods_that_are_still_there_are_not_the_end():
    now = Scene(size=0, annotations={}, pods=frozenset({"a"}), ready=0, phase="Pausing")
    assert not judged(PAUSED, [warning(PAUSED, 38), pause(PAUSED, 54)], now).over


def test_a_kept_workload_may_not_be_touched():
    assert judged(KEPT, [], SAME).over
    assert judged(KEPT, [pause(KEPT, 54)], SAME).faults
    assert judged(KEPT, [], AGAIN).faults


def test_a_workload_is_kept_when_it_would_have_been_paused_by_now():
    assert not judged(KEPT, [], SAME, minute=54).over
    assert judged(KEPT, [], SAME, minute=56).over


@pytest.mark.parametrize(
    "child",
    ["pods/finetune-x", "replicasets/finetune-abc", "deployments/finetune-predictor/scale"],
)
def test_a_child_of_a_kept_workload_may_not_be_touched_either(child):
    path = f"/apis/apps/v1/namespaces/team-a/{child}"
    touched = replace(pause(KEPT, 54), path=path)
    assert judged(KEPT, [touched], SAME).faults
    assert not judged(PAUSED, [touched], SAME).faults


def test_another_part_whose_name_begins_alike_is_no_child():
    other = structs.replace(KEPT, name="finetune-2")
    assert judged(KEPT, [pause(other, 54)], SAME).faults
    assert not judged(KEPT, [pause(other, 54)], SAME, others={other.place}).faults


def test_who_is_asked_for_is_kept_when_its_notice_is_long_over():
    kept = Scene(size=3, annotations={}, pods=FIRST.pods, ready=3, kept_by="operator")
    story = [warning(ASKED, 48)]
    assert judged(ASKED, story, kept, minute=70).over
    assert not judged(ASKED, story, kept, minute=65).over, "the notice was hardly over"
    assert not judged(ASKED, story, SAME, minute=70).over, "nobody asked"
    assert not judged(ASKED, [], kept, minute=70).over, "it was never warned"
    assert judged(ASKED, [*story, pause(ASKED, 64)], kept, minute=70).faults


def test_new_pods_want_a_new_window_and_a_new_notice():
    early = [warning(RENEWED, 38), pause(RENEWED, 53)]
    (fault,) = judged(RENEWED, early, GONE).faults
    assert fault == "was paused at minute 53, and its pods came anew at minute 8"
    assert judged(RENEWED, [warning(RENEWED, 44), pause(RENEWED, 59)], GONE).over


def test_of_an_open_part_only_the_rules_are_asked():
    assert not judged(OPEN, [], SAME, minute=74).over
    assert judged(OPEN, [], SAME, minute=76).over
    assert judged(OPEN, [warning(OPEN, 38), pause(OPEN, 54)], GONE, minute=55).over
    assert judged(OPEN, [pause(OPEN, 54)], GONE, minute=55).faults


def test_the_story_has_every_kind_and_ending():
    assert {part.kind for part in PARTS.values()} == {
        "Deployment",
        "InferenceService",
        "LeaderWorkerSet",
        "Notebook",
        "Pod",
        "ReplicaSet",
        "StatefulSet",
    }
    assert {part.ending for part in PARTS.values()} == set(Ending) - {Ending.OPEN}
    assert len(PARTS) >= 14
    assert all(isinstance(one, Part) and one.told and one.reasons for one in PARTS.values())

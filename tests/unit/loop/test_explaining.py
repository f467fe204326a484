"""What a question is about, and that the whole cluster is heard for the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.asked import asked
from support.story import Story, told_rules
from support.telling_time import START
from support.world import World

from gpu_pruner.cli.explain import nobody
from gpu_pruner.loop.explaining import Question, as_it_runs
from gpu_pruner.model.plan import Action
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.verdict import Reason, Verdict
from gpu_pruner.model.workload import RootRef

DUE = {
    "phase": "Warned",
    "warned_at": "-20m",
    "pause_at": "-1m",
    "warned_mode": "scale-down",
    "confirmations": 2,
}


def story() -> Story:
    return Story(
        World(
            {
                "train": {"pods": [{"gpus": 2, "node": "node-1"}, {"gpus": 1, "node": "node-2"}]},
                "notebook-1": {
                    "kind": "Notebook",
                    "namespace": "team-b",
                    "pods": [
                        {"gpus": [{"uuid": "GPU-m", "slice": "3"}], "node": "node-2.example.org"}
                    ],
                },
                "single": {"kind": "Pod", "gpus": 1},
            }
        )
    )


@pytest.mark.parametrize(
    ("question", "names"),
    [
        (Question(root=RootRef("Deployment", "team-a", "train", "apps")), ["train"]),
        (Question(root=RootRef("Pod", "team-a", "train-1")), ["train"]),
        (Question(root=RootRef("Pod", "team-a", "single-0")), ["single-0"]),
        (Question(root=RootRef("Pod", "team-b", "train-1")), []),
        (Question(root=RootRef("StatefulSet", "team-a", "train", "apps")), []),
        (Question(node="node-1"), ["single-0", "train"]),
        (Question(node="node-2"), ["notebook-1", "train"]),
        (Question(node="node-3"), []),
        (Question(device="GPU-train-0-1"), ["train"]),
        (Question(device="GPU-m"), ["notebook-1"]),
        (Question(device="GPU-m/3"), ["notebook-1"]),
        (Question(device="GPU-m/4"), []),
    ],
    ids=str,
)
async def test_a_question_means_the_workloads_that_it_names(
    question: Question, names: list[str]
) -> None:
    answer = await asked(story(), question)
    assert sorted(one.decision.workload.root.name for one in answer.examined) == names


async def test_what_could_have_been_asked_and_what_is_there_is_told() -> None:
    answer = await asked(story(), Question(node="node-3"))
    assert {
        "deployment/team-a/train",
        "pod/team-a/train-1",
        "node/node-2",
        "gpu/GPU-m",
        "notebook/team-b/notebook-1",
    } <= answer.names()
    assert not answer.is_there(Question(node="node-3"))
    assert answer.is_there(Question(node="node-1"))
    # The ReplicaSet stands between, so it exists, and is the root of nothing.
    assert answer.is_there(Question(root=RootRef("ReplicaSet", "team-a", "train-part", "apps")))


async def test_a_node_or_a_gpu_that_nobody_holds_is_there_all_the_same() -> None:
    told = story()
    told.world.loose.append({"uuid": "GPU-free"})
    told.world.nodes["node-3.example.org"] = {}
    for question in (Question(device="GPU-free"), Question(node="node-3")):
        answer = await asked(told, question)
        assert answer.examined == ()
        assert answer.is_there(question)
        assert nobody(question, answer).startswith(f"nobody holds a GPU of {question}; ")
    assert "gpu/GPU-free" in (await asked(told, Question(node="none"))).names()


async def test_a_measurement_is_made_in_every_phase_and_tells_peaks() -> None:
    told = Story(World({"train": {"gpus": [{"engine": "0.412 at -20m"}]}}))
    (one,) = (await asked(told, Question(root=told.world.root("train")))).examined
    assert one.screened.verified_at is None
    assert one.decision.verified_at == START + 2
    assert "engine peak 0.412 at 11:40 UTC" in one.decision.message
    assert {track.metric for track in one.tracks} >= {"DCGM_FI_PROF_GR_ENGINE_ACTIVE"}


async def test_a_gpu_of_another_workload_can_accuse_the_nodes_telemetry() -> None:
    """Who asks about one workload is told what the controller, which sees all, would say."""
    wedged = {"gpus": [{"util": 100}], "namespace": "team-b"}
    told = Story(World({"train": {"gpus": 1}, "wedged": wedged}))
    (one,) = (await asked(told, Question(root=told.world.root("train")))).examined
    assert (one.decision.verdict, one.decision.reason) == (Verdict.UNKNOWN, Reason.CONTRADICTION)


async def test_work_since_the_look_is_heard() -> None:
    told = Story(World({"train": {"gpus": [{"engine": "0.5 from 20s"}]}}))
    (one,) = (await asked(told, Question(root=told.world.root("train")), later=45.0)).examined
    assert one.screened.verdict is Verdict.IDLE
    assert one.decision.verdict is Verdict.ACTIVE


async def test_a_failed_measurement_says_that_nothing_is_known() -> None:
    told = Story(World({"train": {"gpus": 1}}))
    question = Question(root=told.world.root("train"))
    (one,) = (await asked(told, question, failure="no answer")).examined
    assert (one.decision.verdict, one.decision.reason) == (Verdict.UNKNOWN, Reason.VERIFY_FAILED)
    assert "no answer" in one.decision.message
    assert one.verification is not None
    assert one.verification.failure == "no answer"


async def test_a_workload_without_devices_is_told_by_what_is_missing() -> None:
    told = Story(World({"train": {"gpus": [{"labels": "none"}]}}))
    (one,) = (await asked(told, Question(root=told.world.root("train")))).examined
    assert one.verification is None
    assert one.decision.reason is Reason.NO_SERIES


async def test_a_device_with_only_utilisation_is_measured_over_twice_the_window() -> None:
    told = Story(World({"train": {"gpus": [{"engine": "absent"}]}}))
    (one,) = (await asked(told, Question(root=told.world.root("train")))).examined
    (finding,) = one.decision.findings
    assert finding.evidence.period.steps == 70
    assert one.decision.verdict is Verdict.IDLE


async def test_what_is_due_is_told_as_the_controller_would_act() -> None:
    told = Story(World({"train": {"gpus": 1, "book": DUE}}))
    (one,) = (await asked(told, Question(root=told.world.root("train")))).examined
    assert one.decision.action is Action.PAUSE


def test_an_onlooker_takes_the_mode_from_the_warning() -> None:
    told = Story(World({"train": {"gpus": 1, "book": DUE}}), rules=told_rules({"mode": "dry-run"}))
    snapshot, view = told.snapshot(START), told.world.view()
    seen = [
        replace(one, book=replace(one.book, warned_mode="dry-run")) for one in snapshot.workloads
    ]
    question = Question(root=told.world.root("train"))
    snapshot, rules = as_it_runs(
        question, replace(snapshot, workloads=tuple(seen)), view, rules=told.rules
    )
    assert rules.mode is Mode.SCALE_DOWN
    assert [one.book.warned_mode for one in snapshot.workloads] == ["scale-down"]


def test_without_a_warning_the_onlookers_own_mode_holds() -> None:
    told = Story(World({"train": {"gpus": 1}}), rules=told_rules({"mode": "dry-run"}))
    question = Question(root=told.world.root("train"))
    snapshot = told.snapshot(START)
    same, rules = as_it_runs(question, snapshot, told.world.view(), rules=told.rules)
    assert (same, rules) == (snapshot, told.rules)

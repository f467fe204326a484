"""What comes next, and what would change it: told from the decision, never promised too early."""

from __future__ import annotations

from typing import Any

import pytest
from support.asked import asked
from support.story import Story, told_rules
from support.telling_time import START, moment
from support.world import World

from gpu_pruner.decide.outlook import Outlook, changes, outlook
from gpu_pruner.decide.remedies import REMEDIES
from gpu_pruner.loop.explaining import Question
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.verdict import Reason

WARNED = {
    "phase": "Warned",
    "warned_at": "-5m",
    "pause_at": "10m",
    "warned_mode": "scale-down",
    "confirmations": 2,
}


async def decided(spec: dict[str, Any], **more: Any) -> tuple[Decision, Story]:
    story = Story(World({"train": spec}), **more)
    answer = await asked(story, Question(root=story.world.root("train")))
    (one,) = answer.examined
    return one.decision, story


async def after(spec: dict[str, Any], **more: Any) -> Outlook:
    decision, story = await decided(spec, **more)
    return outlook(decision, now=START, rules=story.rules)


@pytest.mark.parametrize(
    ("spec", "at", "words"),
    [
        ({"gpus": [{"engine": "0.4 at -20m"}]}, "15m", "counts as idle from 12:15 UTC on"),
        ({"gpus": ["idle", {"engine": "0.4 at -20m"}, {"engine": "0.4 at -9m"}]}, "26m", "12:26"),
        ({"gpus": [{"engine": "absent", "util": "50 at -20m"}]}, "50m", "12:50 UTC"),
        ({"pods": [{"gpus": 1, "ready": "-10m"}]}, "30m", "judged from 12:30 UTC on"),
        ({"gpus": 1}, "1m", "warned after one more cycle that agrees, and it is paused 15 minutes"),
        ({"gpus": 1, "book": WARNED}, "10m", "paused if that agrees"),
        ({"gpus": 1, "intent": {"keep_until": "2h"}}, "2h", "ends at 14:00 UTC; then it is judged"),
    ],
)
async def test_the_next_moment_is_told_with_what_happens_then(
    spec: dict[str, Any], at: str, words: str
) -> None:
    found = await after(spec)
    assert found.at == moment(at)
    assert words in found.sentence


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"gpus": [{"gap": "-25m to -5m"}]}, "no clock runs"),
        ({"gpus": 1, "owner": {"annotations": {"gpu-pruner.io/exempt": "true"}}}, "taken back"),
        ({"kind": "Pod", "gpus": 1}, "never paused"),
        ({"gpus": [{"gap": "-25m to -5m"}], "book": WARNED}, "stands still since 12:00 UTC"),
        ({"pods": [], "owner": {"halted": True, "desired": 0},
          "book": {"phase": "Paused", "paused_at": "-3h"}}, "until somebody gives it back"),
        ({"gpus": 1, "book": WARNED | {"phase": "WouldPause", "warned_mode": "dry-run"},
          "mode": "dry-run"}, "A rehearsal ends here"),
    ],
)  # fmt: skip
async def test_where_no_time_can_be_told_none_is(spec: dict[str, Any], words: str) -> None:
    rules = told_rules({"mode": spec.pop("mode", "scale-down")})
    found = await after(spec, rules=rules)
    assert found.at is None
    assert words in found.sentence


async def test_with_a_breaker_open_nothing_comes_next() -> None:
    found = await after({"gpus": 1}, breakers=("ForTheTest",))
    assert (found.at, "breaker is open" in found.sentence) == (None, True)


async def test_a_rehearsal_promises_no_pause() -> None:
    found = await after({"gpus": 1}, rules=told_rules({"mode": "dry-run"}))
    assert "it would be paused" in found.sentence


async def test_a_kind_that_is_only_warned_is_told_as_that() -> None:
    rules = told_rules({"warn_only_kinds": frozenset({"Deployment"})})
    found = await after({"gpus": 1}, rules=rules)
    assert "its kind is not paused" in found.sentence


async def test_the_devices_that_work_are_named_with_what_would_have_to_be_quiet() -> None:
    decision, story = await decided(
        {"gpus": ["idle", {"engine": "0.4 at -20m", "encoder": "60 at -3m"}]}
    )
    told = changes(decision, story.rules)
    assert told == (
        REMEDIES[Reason.GPU_ACTIVE],
        "GPU-train-0-1 would have to be quiet for 35 minutes, in: engine, encoder.",
    )


async def test_whoever_asks_what_would_have_counted_is_told_once_for_like_devices() -> None:
    decision, story = await decided({"gpus": 4})
    told = changes(decision, story.rules)
    assert [one.startswith("Any of these would have counted") for one in told] == [False, True]


async def test_a_wish_hides_nothing_that_stands_behind_it() -> None:
    decision, story = await decided(
        {
            "gpus": [{"gap": "-25m to -5m"}],
            "owner": {"annotations": {"gpu-pruner.io/exempt": "true"}},
            "intent": {"keep_until": "2h"},
        }
    )
    told = changes(decision, story.rules)
    assert told == tuple(REMEDIES[one] for one in (Reason.EXEMPT, Reason.KEPT, Reason.LOW_COVERAGE))


@pytest.mark.parametrize("reason", Reason, ids=str)
def test_every_reason_has_a_sentence_on_what_changes_it(reason: Reason) -> None:
    assert REMEDIES[reason].endswith(".")
    assert reason.rule != REMEDIES[reason]

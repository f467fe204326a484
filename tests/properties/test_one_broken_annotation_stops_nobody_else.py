"""S14: whatever one workload or namespace carries, everybody else is decided as if it were not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from strategies import DUE, hostile_annotations
from support.story import Story
from support.telling_time import START
from support.world import World

from gpu_pruner.model.plan import Action, Decision


def decided(workloads: dict[str, Any], namespaces: dict[str, Any]) -> list[Decision]:
    story = Story(World(workloads, namespaces=namespaces))
    return list(story.cycle(START).decisions)


@given(hostile_annotations(3), st.sampled_from([{}, DUE]))
def test_a_hostile_neighbour_changes_nothing(
    written: list[dict[str, str]], book: dict[str, Any]
) -> None:
    on_root, on_pod, on_namespace = written
    quiet = {"namespace": "team-b", "gpus": 2, "book": DUE}
    broken: dict[str, Any] = {
        "pods": [{"gpus": ["busy"], "annotations": on_pod, "labels": on_root}],
        "owner": {"annotations": on_root, "labels": on_namespace},
    }
    if book:
        broken["book"] = book
    space = {"team-a": {"annotations": on_namespace, "labels": on_pod}}
    (alone,) = decided({"quiet": dict(quiet)}, {})
    together = decided({"broken": broken, "quiet": dict(quiet)}, space)
    assert len(together) == 2
    assert alone.action is Action.PAUSE
    assert alone in together
    (other,) = [one for one in together if one != alone]
    assert other.action in {Action.NONE, Action.CANCEL}
    assert other.message.isprintable()

"""Whatever stands in a pause record that is found, nothing is done to its workload for it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from strategies import DUE, hostile_annotations, wishes
from support.story import Story, told_rules
from support.world import World

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import Phase
from gpu_pruner.model.plan import Action

UID = "uid-train-deployment"

MOSTLY = st.sampled_from([True, True, True, False])
RECORDS = st.fixed_dictionaries(
    {
        "lever": st.sampled_from(["Deployment", "Notebook"]),
        "uid": st.sampled_from([UID, UID, "uid-of-another", ""]),
        "at": st.sampled_from(["2026-01-01T11:30:00Z", "2036-01-01T00:00:00Z", "soon"]),
        "replicas": st.sampled_from([None, 2, 3, 0, 2**40]),
    }
)
"""Most of them can be read."""


@given(
    RECORDS,
    st.fixed_dictionaries({"halted": MOSTLY, "paused_by_us": MOSTLY}),
    hostile_annotations(1),
    wishes(),
    st.sampled_from([{}, {"book": {"phase": "Watching"}}, {"book": DUE}]),
    st.sampled_from(["scale-down", "dry-run"]),
)
def test_a_record_that_is_found_is_remembered_and_no_more(
    record: dict[str, Any],
    owner: dict[str, Any],
    written: list[dict[str, str]],
    wish: dict[str, Any],
    kept: dict[str, Any],
    mode: str,
) -> None:
    wished = wish["workload"]
    notes = (
        wished.get("owner", {}).get("annotations", {}) | written[0] | {PAUSED: json.dumps(record)}
    )
    owner = wished.get("owner", {}) | owner | {"desired": 0, "annotations": notes}
    told = wished | kept | {"pods": [], "owner": owner}
    spaces = {told.get("namespace", "team-a"): wish["namespace"]}
    world = World({"train": told}, namespaces=spaces)
    story = Story(world, rules=told_rules({"mode": mode}))
    both = [decision for _ in range(2) for decision in story.cycle(story.now + 60).decisions]

    assert not {one.action for one in both} & {Action.PAUSE, Action.RESTORE, Action.WARN}
    if any(one.book.phase is Phase.PAUSED for one in both):
        assert owner["halted"]
        assert owner["paused_by_us"]
        assert record["uid"] == UID
        assert all((one.book.paused_at or 0) <= story.now for one in both)

"""Who is told about a workload never changes what becomes of it, nor what is said of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from strategies import HOSTILE_TEXT, idle_worlds
from support.story import Story, told_rules
from support.telling_time import START
from support.world import World

from gpu_pruner.model.audience import Address, AddressKind, Contact, Directory
from gpu_pruner.model.plan import Decision
from gpu_pruner.record.rows import audience_rows, workload_row

NOBODY = Directory()
SOMEBODY = Directory(
    namespaces={"team-": Contact((Address(AddressKind.NAME, "alice"),), "#team")}, channel="#gpu"
)
KEYS = (
    "gpu-pruner.io/owner",
    "gpu-pruner.io/slack-mentions",
    "opendatahub.io/username",
    "notebooks.kubeflow.org/creator",
)
NOTES = st.dictionaries(
    st.sampled_from(KEYS), HOSTILE_TEXT | st.just("bob@example.com"), min_size=1, max_size=4
)


def decided(workloads: dict[str, Any], directory: Directory) -> tuple[Decision, ...]:
    return Story(World(workloads), told_rules({"directory": directory})).cycle(START).decisions


def said(decisions: tuple[Decision, ...]) -> list[object]:
    """Return everything of the decisions but whom to tell."""
    return [
        (one.workload.root, one.verdict, one.reason, one.message, one.action, one.book,
         one.decision_id, one.idle_since, one.verified_at)
        for one in decisions
    ]  # fmt: skip


@given(idle_worlds(most=4), NOTES)
def test_a_workload_of_somebody_is_judged_like_one_of_nobody(
    workloads: dict[str, Any], notes: dict[str, str]
) -> None:
    noted = deepcopy(workloads)
    for spec in noted.values():
        owner = spec.setdefault("owner", {})
        owner["annotations"] = notes | owner.get("annotations", {})
    plain, named = decided(workloads, NOBODY), decided(noted, SOMEBODY)
    assert said(plain) == said(named)
    for one in named:
        rows = audience_rows(one.workload.audience)
        assert workload_row(one).audience == rows
        assert rows[-1].kind == "channel"
        assert len(rows) > 1

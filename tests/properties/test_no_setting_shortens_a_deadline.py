"""A deadline that people were told stays, or moves later, however the settings change meanwhile.

Every field that a reload can change is changed at random before every cycle of a story that begins
with idle workloads. What a warning told holds: no pause comes before the latest deadline that was
told, and the deadline of a warning never comes nearer.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from support.story import CYCLE, Story
from support.telling_time import START
from support.world import World

from gpu_pruner.model.book import Phase
from gpu_pruner.model.plan import Action, Plan
from gpu_pruner.model.rules import Rules
from gpu_pruner.settings.reloading import AT_ONCE

CHANGES = {
    "window_seconds": st.sampled_from([240.0, 600.0, 2100.0, 7200.0]),
    "settle_seconds": st.sampled_from([0.0, 300.0, 3600.0]),
    "notice_seconds": st.sampled_from([0.0, 60.0, 900.0, 3600.0]),
    "confirmations": st.integers(1, 3),
    "coverage_ratio": st.sampled_from([0.6, 0.945, 1.0]),
    "freshness_seconds": st.sampled_from([30.0, 90.0, 600.0]),
    "idle_threshold": st.sampled_from([0.001, 0.01, 0.5]),
    "liveness_required": st.booleans(),
    "liveness_changes": st.integers(1, 20),
    "shield_seconds": st.sampled_from([0.0, 7200.0]),
    "never_ready_seconds": st.sampled_from([0.0, 21600.0]),
    "verify_max_age_seconds": st.sampled_from([1.0, 15.0]),
    "budget_workloads_per_cycle": st.integers(1, 5),
    "budget_gpu_ratio_per_cycle": st.sampled_from([0.1, 1.0]),
    "budget_per_namespace_per_cycle": st.integers(1, 3),
    "budget_per_hour": st.integers(1, 20),
    "budget_ratio_per_hour": st.sampled_from([0.0, 0.5]),
    "namespaces": st.sampled_from([None, "team-a", "other"]),
    "models": st.sampled_from([None, ".*H100.*", "other"]),
    "power_threshold_watts": st.sampled_from([None, 1.0, 500.0]),
    "measurable_models": st.sampled_from([(), ("*",)]),
    "enabled_kinds": st.sampled_from([frozenset({"Deployment"}), frozenset({"Notebook"})]),
    "warn_only_kinds": st.sampled_from([frozenset(), frozenset({"Deployment"})]),
}
"""Field of the rules to what it may become."""

NO_RULES = {"audience"}
"""Settings that are no rules: `test_whom_to_tell_decides_nothing` holds that they move nothing."""

some_changes = st.dictionaries(st.sampled_from(sorted(CHANGES)), st.none(), max_size=2).flatmap(
    lambda names: st.fixed_dictionaries({name: CHANGES[name] for name in names})
)


def test_every_setting_that_changes_at_once_is_tried() -> None:
    fields = {name.removesuffix("_required") for name in CHANGES}
    tried = fields | {"budget" for name in CHANGES if name.startswith("budget_")}
    assert tried >= AT_ONCE - NO_RULES
    assert set(CHANGES) <= set(Rules.__slots__)


class Promises:
    """Listens to the plans of a story, and holds them to what they told."""

    def __init__(self) -> None:
        self.told: dict[str, float] = {}

    def hear(self, plan: Plan) -> None:
        for decision in plan.decisions:
            name, due = decision.workload.root.name, decision.book.pause_at
            if decision.action is Action.PAUSE:
                assert plan.at >= self.told.pop(name), name
            elif due is None or decision.book.phase is not Phase.WARNED:
                self.told.pop(name, None)  # the warning was taken back, or is void
            elif decision.action is Action.WARN:
                self.told[name] = due
            else:
                assert due >= self.told[name], name
                self.told[name] = due


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(some_changes, st.integers(1, 6)), min_size=1, max_size=5))
def test_a_deadline_that_was_told_never_comes_nearer(
    story_of_changes: list[tuple[dict[str, object], int]],
) -> None:
    story = Story(World({"a": {}, "b": {"namespace": "team-b"}}))
    promises = Promises()
    promises.hear(story.cycle(START))
    promises.hear(story.cycle(START + CYCLE))
    assert set(promises.told) == {"a", "b"}
    for changes, cycles in story_of_changes:
        story.rules = replace(story.rules, **changes)  # type: ignore[arg-type]
        for _ in range(cycles):
            promises.hear(story.cycle(story.now + CYCLE))

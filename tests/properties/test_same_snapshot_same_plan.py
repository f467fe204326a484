"""S13: the same snapshot, rules and clock give the same plan, whatever the order of the input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from hypothesis import given
from hypothesis import strategies as st
from strategies import idle_worlds, worlds
from support.story import Story
from support.telling_time import START
from support.world import World

from gpu_pruner.decide.plan import plan
from gpu_pruner.model.plan import Action, Plan
from gpu_pruner.model.signals import Period
from gpu_pruner.model.snapshot import Breaker
from gpu_pruner.resolve.assemble import Reading, assemble

Key = TypeVar("Key")
Value = TypeVar("Value")
SEEDS = st.integers(min_value=0, max_value=2**32 - 1)
"""Of a shuffle: drawing every swap would cost more than both plans."""


def shuffled(given_map: Mapping[Key, Value], order: Random) -> dict[Key, Value]:
    items = list(given_map.items())
    order.shuffle(items)
    return dict(items)


def planned(story: Story, order: Random | None, *, breakers: tuple[str, ...]) -> Plan:
    """Plan twice, as a cycle does, with every collection of the input in another order."""
    view = story.world.view()
    period = Period.ending(START, length=story.rules.window_seconds, step_seconds=60)
    evidence = dict(story.table.evidence(period))
    open_breakers = [Breaker(name=name, message="open") for name in breakers]
    if order is not None:
        pods = list(view.pods)
        order.shuffle(pods)
        order.shuffle(open_breakers)
        view = replace(
            view,
            pods=tuple(pods),
            nodes=shuffled(view.nodes, order),
            namespaces=shuffled(view.namespaces, order),
            owners=shuffled(view.owners, order),
            books=shuffled(view.books, order),
        )
        evidence = shuffled(evidence, order)
    reading = Reading(period=period, scrape_interval_seconds=30.0, evidence=evidence)
    snapshot = assemble(view, reading, now=START, rules=story.rules, breakers=open_breakers)
    if order is not None:
        mixed, found = list(snapshot.workloads), list(snapshot.breakers)
        order.shuffle(mixed)
        order.shuffle(found)
        snapshot = replace(snapshot, workloads=tuple(mixed), breakers=tuple(found))
    story.now = START
    wanted = list(plan(snapshot, story.rules).with_action(Action.VERIFY))
    if order is not None:
        order.shuffle(wanted)
    verified = {one.workload.root.uid: story.verification(one) for one in wanted}
    return plan(snapshot, story.rules, verifications=verified)


@given(
    worlds() | idle_worlds(),
    SEEDS,
    st.sampled_from([(), (), ("ClockSkew", "ApiStale")]),
)
def test_the_order_of_the_input_changes_nothing(
    workloads: dict[str, Any], seed: int, breakers: tuple[str, ...]
) -> None:
    story = Story(World(workloads))
    story.absorb(Period.ending(START, length=4500, step_seconds=60))
    once = planned(story, None, breakers=breakers)
    again = planned(story, Random(seed), breakers=breakers)  # noqa: S311 - a shuffle, no secret
    assert repr(again).encode() == repr(once).encode()
    assert again == once

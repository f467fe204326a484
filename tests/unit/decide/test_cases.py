"""Decisions as data: every case in `tests/cases` goes through the real resolve and decide.

A case has a name, the source that it comes from, and a world (see `support.world`). It is judged
in one cycle, or told as a story of cycles, one a minute: each `at` runs all cycles up to then.
Before the last of them, `set` changes workloads, and `breakers`, `verify_fails`, `rules`, `blind`
and `obeys` change what cycles meet. What is expected is a reason, or a mapping of what is looked
at; with several workloads, one for each name.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.devices import STEP_SECONDS
from support.story import CYCLE, Story, told_rules
from support.telling_time import length, moment
from support.world import World

from gpu_pruner.model.plan import Decision, Plan
from gpu_pruner.model.verdict import Reason

FOLDER = Path(__file__).parents[2] / "cases"
Case = dict[str, Any]
KEYS = {
    "name", "source", "workloads", "namespaces", "nodes", "devices", "rules", "expect", "story",
    "honor_labels", "scrape", "breakers", "missing_kinds", "channels",
}  # fmt: skip
STEP_KEYS = {"at", "set", "breakers", "verify_fails", "rules", "expect", "obeys", "blind", "deaf"}


def cases() -> list[Case]:
    found: list[Case] = []
    for file in sorted(FOLDER.glob("*.yaml")):
        found += yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


CASES = cases()


def told_story(case: Case) -> Story:
    scrape = length(case.get("scrape", "30s"))
    world = World(
        workloads=copy.deepcopy(case["workloads"]),
        namespaces=case.get("namespaces", {}),
        nodes=case.get("nodes", {}),
        loose=case.get("devices", []),
        missing_kinds=frozenset(case.get("missing_kinds", ())),
        step_seconds=max(STEP_SECONDS, scrape),
    )
    return Story(
        world,
        told_rules(case.get("rules")),
        honor_labels=case.get("honor_labels"),
        scrape_seconds=scrape,
        breakers=tuple(case.get("breakers", ())),
        channels=tuple(case.get("channels", ["event"])),
    )


def shown(decision: Decision, wanted: Case) -> Case:
    """Return what a decision has to say about the wanted keys, as a case would write it."""
    book = decision.book
    found: Case = {
        "verdict": decision.verdict.value,
        "reason": decision.reason.value,
        "action": decision.action.value,
        "phase": book.phase.value,
        "confirmations": book.confirmations,
        "gpus": book.gpus,
        "root": decision.workload.root.ref,
        "written": book != decision.workload.book,
        "devices": [one.reason.value for one in decision.findings],
    }
    for name in ("pause_at", "warned_at", "frozen_since", "paused_at", "idle_since"):
        found[name] = getattr(book, name)
    told = {key: found[key] for key in wanted if key in found}
    for key in ("message", "not_message"):
        if key in wanted:
            fits = (wanted[key] in decision.message) is (key == "message")
            told[key] = wanted[key] if fits else decision.message
    return told


def check(plan: Plan, story: Story, expected: object) -> None:
    by_root = {one.workload.root: one for one in plan.decisions}
    names = list(story.world.workloads)
    if isinstance(expected, str) or not set(expected) <= set(names):
        expected = {names[0]: expected}
    for name, told in expected.items():
        decision = by_root.get(story.world.root(name))
        if told == "absent":
            assert decision is None, decision
            continue
        wanted = {"reason": told} if isinstance(told, str) else dict(told)
        for key in wanted:
            if key.endswith(("_at", "_since")) and wanted[key] is not None:
                wanted[key] = moment(wanted[key])
        assert decision is not None, f"no decision about {name}"
        assert shown(decision, wanted) == wanted, (name, decision.message)


def tell(story: Story, step: Case) -> Plan:
    at = moment(step["at"])
    if at - CYCLE > story.now:
        story.run(until=at - CYCLE)
    for name, changes in step.get("set", {}).items():
        spec = story.world.workloads[name]
        for key, value in changes.items():
            merged = isinstance(value, dict) and isinstance(spec.get(key), dict)
            spec[key] = spec[key] | value if merged else value
    if "breakers" in step:
        story.breakers = tuple(step["breakers"])
    if "rules" in step:
        story.rules = told_rules(step["rules"])
    story.failure = step.get("verify_fails", "")
    story.obeys = step.get("obeys", story.obeys)
    story.blind = step.get("blind", story.blind)
    story.deaf = frozenset(step.get("deaf", story.deaf))
    return story.run(until=at)


@pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])
def test_case(case: Case) -> None:
    story = told_story(case)
    for step in case.get("story", [{"at": 0, "expect": case.get("expect")}]):
        check(tell(story, step), story, step["expect"])


def test_every_case_is_complete_and_named_once() -> None:
    names = [one["name"] for one in CASES]
    assert len(set(names)) == len(names) >= 40
    for case in CASES:
        assert set(case) <= KEYS, case["name"]
        assert case["source"]
        assert ("expect" in case) is not ("story" in case), case["name"]
        for step in case.get("story", []):
            assert set(step) <= STEP_KEYS, case["name"]


def reasons_of(expected: object) -> set[str]:
    if isinstance(expected, str):
        return {expected}
    if isinstance(expected, list):
        return {word for value in expected for word in reasons_of(value)}
    if isinstance(expected, dict):
        told = (value for key, value in expected.items() if not key.endswith("message"))
        return {word for value in told for word in reasons_of(value)}
    return set()


def test_every_reason_has_a_case() -> None:
    told = {
        word
        for case in CASES
        for step in case.get("story", [case])
        for word in reasons_of(step["expect"])
    }
    made_elsewhere = {
        Reason.NOT_DELIVERED,  # by the loop, when a warning reaches nobody
    }
    assert {one.value for one in set(Reason) - made_elsewhere} - told == set()

"""Cycles over a told world: the real table, resolve, fold and plan, and a world that obeys.

It stands where `loop` stands, without its input and output: warnings arrive, orders succeed at
once, and what a plan remembers is there in the next cycle.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from support.screens import screen_of
from support.telling_time import START, length
from support.world import World

from gpu_pruner.decide.breaker import find_breakers
from gpu_pruner.decide.evidence import measured
from gpu_pruner.decide.plan import plan
from gpu_pruner.decide.pulse import Pulse, applied, feel
from gpu_pruner.decide.screen import ScreenTable
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import Phase
from gpu_pruner.model.plan import Action, Decision, Plan, Verification
from gpu_pruner.model.rules import Mode, Rules
from gpu_pruner.model.signals import DeviceEvidence, Period
from gpu_pruner.model.snapshot import Breaker, Snapshot
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.resolve.assemble import Reading, assemble
from gpu_pruner.settings.schema import Settings

CYCLE = 60.0


def told_rules(told: Mapping[str, Any] | None = None) -> Rules:
    """Return the default rules in scale-down mode, with what a case says differs.

    Keys are those of `Rules`; lengths may be written as ``70m``.
    """
    changes = {
        key: abs(length(value)) if isinstance(value, str) and key.endswith("_seconds") else value
        for key, value in (told or {}).items()
    }
    for key in ("enabled_kinds", "protected_namespaces", "delivering_channels"):
        if key in changes:
            changes[key] = frozenset(changes[key])
    if "mode" in changes:
        changes["mode"] = Mode(changes["mode"])
    return replace(_default_rules(), **changes)


@cache
def _default_rules() -> Rules:
    return Settings(mode=Mode.SCALE_DOWN).rules()


@dataclass
class Story:
    """A world, the rules, and everything a controller keeps between two cycles."""

    world: World
    rules: Rules = field(default_factory=told_rules)
    honor_labels: bool | None = None
    scrape_seconds: float = 30.0
    breakers: tuple[str, ...] = ()
    failure: str = ""
    """Why verifications fail, while this is set."""
    obeys: bool = True
    """Whether the world does what a plan orders."""
    blind: bool = False
    """Whether screens fail, so that the table gets nothing new."""
    channels: tuple[str, ...] = ("event",)
    """Which confirm every message, but for those in `deaf`."""
    deaf: frozenset[str] = frozenset()
    table: ScreenTable = field(default_factory=ScreenTable)
    pulse: Pulse | None = None
    now: float = START - CYCLE
    snapshots: list[Snapshot] = field(default_factory=list)

    def cycle(self, now: float) -> Plan:
        """Run one cycle at a moment and let the world follow."""
        self.now = now
        snapshot = self.snapshot(now)
        self.snapshots.append(snapshot)
        first = plan(snapshot, self.rules)
        wanted = first.with_action(Action.VERIFY)
        done = first
        if wanted:
            found = {one.workload.root.uid: self.verification(one) for one in wanted}
            done = plan(snapshot, self.rules, verifications=found)
        for decision in done.decisions:
            self._follow(decision)
        return done

    def run(self, *, until: float) -> Plan:
        """Run a cycle every minute up to a moment and return the last plan."""
        done = self.cycle(self.now + CYCLE)
        while self.now < until:
            done = self.cycle(self.now + CYCLE)
        return done

    def snapshot(self, now: float) -> Snapshot:
        """Absorb the newest slice and put a snapshot together."""
        width = self.world.step_seconds
        back = 3 * max(60.0, self.scrape_seconds)
        if self.table.newest_step is None:
            back = 2 * self.rules.window_seconds + 2 * width
        screen = None
        if not self.blind:
            screen = self.absorb(Period.ending(now, length=back, step_seconds=width))
        period = Period.ending(now, length=self.rules.window_seconds, step_seconds=width)
        view = self.world.view()
        found = [Breaker(name=name, message="for the test") for name in self.breakers]
        if screen is not None:
            found += find_breakers(view, self.rules, screen=screen)
        snapshot = assemble(
            view,
            Reading(
                period=period,
                scrape_interval_seconds=self.scrape_seconds,
                evidence=self.table.evidence(period),
                honor_labels=self.honor_labels,
            ),
            now=now,
            rules=self.rules,
            breakers=found,
        )
        if screen is not None:
            self.pulse = feel(snapshot, view, before=self.pulse, rules=self.rules)
        return applied(snapshot, self.pulse)

    def absorb(self, period: Period) -> Screen:
        """Let the table see a slice of telemetry, and return it."""
        tracks = [
            track
            for device in self.world.devices()
            for track in device.tracks(period.first - 6, period.last)
        ]
        screen = screen_of(tracks, period, scrape_seconds=self.scrape_seconds)
        self.table.absorb(screen, self.rules)
        return screen

    def verification(self, decision: Decision) -> Verification:
        """Measure what a decision asks for."""
        if self.failure or decision.verify is None:
            return Verification(at=self.now, failure=self.failure or "nothing was asked for")
        period, wanted = decision.verify, set()
        for pod in decision.workload.pods:
            wanted |= {one.device for one in pod.devices}
        uuids = {one.uuid for one in wanted}
        tracks = [
            track
            for device in self.world.devices()
            if device.id.uuid in uuids
            for track in device.tracks(period.first - 1, period.reaching(self.now).last)
        ]

        def over(stretch: Period) -> tuple[DeviceEvidence, ...]:
            return tuple(
                measured(one, tracks, period=stretch, at=self.now, rules=self.rules)
                for one in sorted(wanted)
            )

        recent = () if decision.window is None else over(decision.window)
        return Verification(at=self.now, evidence=over(period), recent=recent)

    def _follow(self, decision: Decision) -> None:
        book, root = decision.book, decision.workload.root
        if decision.action is Action.WARN:
            via = tuple(one for one in self.channels if one not in self.deaf)
            if self.rules.delivering_channels.isdisjoint(via):
                book = decision.workload.book
            else:
                book = replace(book, warned_via=via)
        if book != decision.workload.book:
            self.world.books[root.uid] = replace(book, resource_version="1")
        if not self.obeys or decision.action not in {Action.PAUSE, Action.RESTORE}:
            return
        name = next(one for one in self.world.workloads if self.world.root(one) == root)
        spec = self.world.workloads[name]
        owner = dict(spec.get("owner", {}))
        if decision.action is Action.PAUSE:
            kept = copy.deepcopy(spec)
            spec["before"] = kept
            record = json.dumps({"uid": root.uid, "decision": decision.decision_id})
            owner |= {"halted": True, "annotations": {PAUSED: record}}
            spec |= {"owner": owner, "pods": []}
        else:
            spec.update(spec.pop("before", {}))
            spec["owner"] = spec.get("owner", {}) | {"halted": False, "annotations": {}}

    def paused(self) -> set[str]:
        """Return the names of the workloads that were paused and settled."""
        return {
            name
            for name in self.world.workloads
            if (book := self.world.books.get(self.world.root(name).uid)) is not None
            and book.phase is Phase.PAUSED
        }

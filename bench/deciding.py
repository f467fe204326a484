"""How long deciding takes: 10,000 workloads in one plan, and how that grows from 1,000.

The garbage collector is set as the controller sets it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import TypeVar

from support.story import Story
from support.telling_time import START
from support.world import World

from bench.figures import Figure, middle
from gpu_pruner.cli.collecting import settle
from gpu_pruner.decide.plan import plan
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import Period
from gpu_pruner.model.snapshot import Snapshot
from gpu_pruner.resolve.assemble import Reading, assemble

FEW, MANY = 1_000, 10_000
REPEATS = 7
PODS_PER_NODE = 8
NAMESPACES = 200
_KINDS = ("Deployment", "StatefulSet", "Notebook")
_DUE: dict[str, object] = {
    "phase": "Warned",
    "warned_at": "-20m",
    "pause_at": "-1m",
    "warned_mode": "scale-down",
}
_DEVICES: tuple[object, ...] = (
    *("busy", "busy", "busy", "busy", "busy", "idle", "idle", "idle"),
    {"gap": "-20m to -10m"},
    {"energy": "frozen"},
)
"""Half of the GPUs work, three in ten are idle, two in ten cannot be judged."""
_BOOKS: tuple[dict[str, object], ...] = (
    {},
    {"phase": "Nominated", "confirmations": 1, "nominated_at": "-2m"},
    {"phase": "Nominated", "confirmations": 2, "nominated_at": "-3m"},
    _DUE | {"pause_at": "10m"},
    _DUE,
)

T = TypeVar("T")


def measure() -> list[Figure]:
    """Plan small and large worlds by turns; CPU seconds, medians."""
    few, many = _Told.of(FEW), _Told.of(MANY)
    small, large = few.snapshot(), many.snapshot()
    settle()
    times: dict[str, list[float]] = {"few": [], "many": [], "resolve": []}
    for _ in range(REPEATS):
        times["few"].append(cpu_seconds(lambda: plan(small, few.rules)))
        times["many"].append(cpu_seconds(lambda: plan(large, many.rules)))
        times["resolve"].append(cpu_seconds(many.snapshot))
    few_seconds, many_seconds = middle(times["few"]), middle(times["many"])
    return [
        Figure(
            what=f"deciding {MANY:,} workloads",
            measured=many_seconds,
            unit="s",
            at_most=0.5,
            note="one plan, CPU; half of the GPUs busy, 30 % idle, 20 % unknown",
        ),
        Figure(
            what=f"deciding {MANY:,} workloads against {FEW:,}",
            measured=many_seconds / few_seconds,
            unit="x",
            at_most=13,
        ),
        Figure(what=f"resolving {MANY:,} workloads", measured=middle(times["resolve"]), unit="s"),
    ]


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of this process that some work takes."""
    begin = process_time()
    work()
    return process_time() - begin


@dataclass(frozen=True, slots=True)
class _Told:
    """A world of so many workloads, as the stages before `decide` hand it over."""

    view: ClusterView
    reading: Reading
    rules: Rules

    @classmethod
    def of(cls, count: int) -> _Told:
        """Tell a world with everyday variety; let the table see its whole window."""
        story = Story(World({f"w-{number:05}": _spec(number) for number in range(count)}))
        width, window = story.world.step_seconds, story.rules.window_seconds
        story.absorb(Period.ending(START, length=2 * window + 2 * width, step_seconds=width))
        period = Period.ending(START, length=window, step_seconds=width)
        reading = Reading(
            period=period,
            scrape_interval_seconds=story.scrape_seconds,
            evidence=story.table.evidence(period),
        )
        return cls(story.world.view(), reading, story.rules)

    def snapshot(self) -> Snapshot:
        """Put the snapshot together."""
        return assemble(self.view, self.reading, now=START, rules=self.rules)


def _spec(number: int) -> dict[str, object]:
    node = f"node-{number // PODS_PER_NODE}"
    pod = {"gpus": [_DEVICES[number % len(_DEVICES)]], "node": node}
    return {
        "kind": _KINDS[number % len(_KINDS)],
        "namespace": f"team-{number % NAMESPACES}",
        "pods": [pod],
        "book": _BOOKS[number % 7 % len(_BOOKS)],
    }

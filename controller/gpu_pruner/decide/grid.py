"""A grid of settings over one history: what each would have returned and disturbed, and the best.

It answers, for every combination of windows, thresholds and notices, with tallies in all and by
namespace, and with the setting to recommend. It asks nobody: `cli.backtest` brings the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gpu_pruner.decide.pauses import (
    PastWorkload,
    Pause,
    Worked,
    pauses,
    verdicts,
    worked,
)
from gpu_pruner.decide.recording import PastDevice
from gpu_pruner.decide.replay import DeviceReplay, Measure, judged_over, replayed
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceId, Meter, Period
from gpu_pruner.model.units import HOUR, Seconds
from gpu_pruner.model.verdict import Reason

REGRET_SHARE = 0.01
"""Share of pauses that may be regretted in a setting that is recommended: one of a hundred, so that
whoever is paused once a working day is disturbed two or three times a year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What one setting would have done, in all or in one namespace."""

    gpu_hours: float = 0.0
    """Returned."""
    pauses: int = 0
    workloads: int = 0
    """Paused at least once."""
    regrets: int = 0
    still_open: int = 0
    """Pauses within the last hour of the history, of which nobody can say yet."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One setting with what it would have done."""

    rules: Rules
    total: Tally
    namespaces: Mapping[str, Tally]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The settings that are asked about."""

    base: Rules
    """All else about them."""
    windows: tuple[Seconds, ...]
    thresholds: tuple[float, ...]
    """Ascending."""
    notices: tuple[Seconds, ...]

    def readings(self) -> tuple[Rules, ...]:
        """Return rules for each threshold, as a recording wants them."""
        return tuple(replace(self.base, idle_threshold=one) for one in self.thresholds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A history, ready to be judged."""

    period: Period
    devices: tuple[PastDevice, ...]
    workloads: tuple[PastWorkload, ...]
    scrape_interval_seconds: Seconds
    proven: frozenset[Meter] = frozenset()


def outcomes(past: Past, grid: Grid) -> Iterator[Outcome]:
    """Yield what each setting would have done: windows outermost, notices innermost.

    Args:
        past: recorded with the grid's `readings`.
        grid: the settings.
    """
    facts = {one.device: worked(one, 0) for one in past.devices}
    known = {one.device: one for one in past.devices}
    for window in grid.windows:
        for number, threshold in enumerate(grid.thresholds):
            rules = replace(grid.base, window_seconds=window, idle_threshold=threshold)
            measure = Measure(
                rules=rules,
                threshold=number,
                period=past.period,
                scrape_interval_seconds=past.scrape_interval_seconds,
                proven=past.proven,
            )
            bench = _Bench(past, measure, facts, known, replayed(past.devices, measure))
            judged = [
                (one, verdicts(one, bench.replays, rules, past.period)) for one in past.workloads
            ]
            for notice in grid.notices:
                setting = replace(rules, notice_seconds=notice)
                found = [
                    (
                        one,
                        pauses(
                            one,
                            told,
                            facts,
                            rules=setting,
                            period=past.period,
                            confirm=partial(bench.confirms, one),
                        ),
                    )
                    for one, told in judged
                ]
                yield _outcome(setting, found, past.period.step_seconds)


@dataclass(frozen=True, slots=True)
class _Bench:
    """A history under one window and threshold."""

    past: Past
    measure: Measure
    facts: Mapping[DeviceId, Worked]
    known: Mapping[DeviceId, PastDevice]
    replays: Mapping[DeviceId, DeviceReplay]

    def confirms(self, workload: PastWorkload, last: int, steps: int) -> bool:
        """Whether all devices that a workload holds are idle over a longer time than the window.

        As in `standing`, that time may have a hole: in it, the clock stood still.
        """
        for one in workload.holdings:
            if not one.first <= last < one.end:
                continue
            replay, past = self.replays[one.device], self.known[one.device]
            least = max(steps, 2 * replay.steps if replay.long >> last & 1 else 0)
            board = self.known.get(one.device.board) if one.device.mig_instance else None
            found = judged_over(past, board, self.measure, last=last, steps=least)
            if found.reason not in {Reason.IDLE, Reason.LOW_COVERAGE}:
                return False
        return True


def _outcome(
    rules: Rules, found: Sequence[tuple[PastWorkload, tuple[Pause, ...]]], step: Seconds
) -> Outcome:
    groups: dict[str, list[tuple[Pause, ...]]] = {}
    for workload, several in found:
        groups.setdefault(workload.namespace, []).append(several)
    return Outcome(
        rules,
        _tally((several for _, several in found), step),
        {name: _tally(group, step) for name, group in sorted(groups.items())},
    )


def _tally(found: Iterable[tuple[Pause, ...]], step: Seconds) -> Tally:
    """Sum up pauses, given by workload."""
    groups = [several for several in found if several]
    every = [one for several in groups for one in several]
    return Tally(
        gpu_hours=sum(one.returned for one in every) * step / HOUR,
        pauses=len(every),
        workloads=len(groups),
        regrets=sum(one.regretted for one in every),
        still_open=sum(one.is_open for one in every),
    )


def recommended(tallies: Iterable[Tally]) -> int | None:
    """Return the number of the setting that gives most hours back without being in the way.

    Of those with at most `REGRET_SHARE` of their pauses regretted, the one with most hours; where
    there is none, the one with the smallest share of regrets. None where nothing is ever paused.
    """
    known = [(number, one) for number, one in enumerate(tallies) if one.pauses]
    calm = [told for told in known if told[1].regrets <= REGRET_SHARE * told[1].pauses]
    if calm:
        return max(calm, key=lambda told: (told[1].gpu_hours, -told[1].regrets))[0]
    known.sort(key=lambda told: (told[1].regrets / told[1].pauses, -told[1].gpu_hours))
    return known[0][0] if known else None

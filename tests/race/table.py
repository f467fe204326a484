"""The race's table: every contestant over every world, in one line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from race.contest import Result, arena, ours, plain

STRICT, LOOSE = 0.001, 0.01
"""Recommended threshold, and the one that both tools have by default."""
PLAIN = "plain rule"
OURS = "gpu-pruner"

Results = Mapping[tuple[str, float], Sequence[Result]]
"""By contestant and by the threshold of the truth."""


async def contest(directory: Path, seeds: Iterable[int]) -> Results:
    """Let every contestant decide every world, at both thresholds."""
    found: dict[tuple[str, float], list[Result]] = {
        (OURS, STRICT): [],
        (PLAIN, STRICT): [],
        (f"{PLAIN} at its {LOOSE:g}", STRICT): [],
        (OURS, LOOSE): [],
        (PLAIN, LOOSE): [],
    }
    with arena(directory, tuple(seeds)) as (url, worlds):
        for world in worlds:
            for (who, threshold), results in found.items():
                if who == OURS:
                    results.append(await ours(world, url, threshold=threshold))
                else:
                    rule = threshold if who == PLAIN else LOOSE
                    results.append(plain(world, url, threshold=threshold, rule=rule))
    return found


def lines(results: Results) -> Iterator[str]:
    """Return the table in Markdown."""
    titles = ["work is from", "worlds", "contestant", "workloads", "idle"]
    titles += ["wrong pauses", "missed", "unknown"]
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"
    for healthy in (True, False):
        for (who, threshold), each in results.items():
            some = [one for one in each if one.world.healthy is healthy]
            count = sum(len(one.world.workloads) for one in some)
            idle = sum(one.idle for one in some)
            missed = sum(len(one.missed) for one in some)
            unknown = sum(len(one.unknown) for one in some)
            wrong = sum(len(one.wrong) for one in some)
            kind = f"{len(some)} {'healthy' if healthy else 'lying'}"
            told = f"{unknown} ({share(unknown, count)})" if who == OURS else "-"
            yield (
                f"| {threshold:g} | {kind} | {who} | {count} | {idle} | {wrong} | "
                f"{missed} ({share(missed, idle)}) | {told} |"
            )


def share(part: int, whole: int) -> str:
    """Return a share in percent."""
    return f"{100 * part / whole:.1f} %" if whole else "0 %"

"""Reasons to do nothing at all in a cycle.

It answers which breakers are open, from what the cycle read. It never looks at single workloads,
and never closes a breaker by hand: they are found anew in every cycle. `loop.cycle` calls it and
hands the answer to `assemble`.
"""

from __future__ import annotations

from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.rules import Mode, Rules
from gpu_pruner.model.snapshot import Breaker
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.units import MINUTE, Seconds

GREATEST_SKEW_SECONDS: Seconds = 30.0
"""Clocks that differ by more make ages and deadlines wrong."""

_STALE_CYCLES = 3
_LEAST_STALE_SECONDS: Seconds = 3 * MINUTE
"""Watches are quiet for up to a minute between bookmarks."""


def find_breakers(
    view: ClusterView, rules: Rules, *, screen: Screen | None, failure: str = ""
) -> tuple[Breaker, ...]:
    """Return the open breakers, sorted by name.

    Args:
        view: the cluster as the reflectors hold it.
        rules: for the mode and the length of a cycle.
        screen: the answer of the telemetry source; None where there was none.
        failure: why there was none.
    """
    found: list[Breaker] = []
    if screen is None:
        found.append(_breaker("ScreenFailed", f"No complete telemetry: {failure or 'no answer'}"))
    skews = (
        ("The telemetry source", 0.0 if screen is None else screen.clock_skew_seconds),
        ("The API server", view.clock_skew_seconds),
    )
    found.extend(
        _breaker(
            "ClockSkew",
            f"{who}'s clock differs from ours by {skew:+.0f} s; synchronise the clocks "
            f"(at most {GREATEST_SKEW_SECONDS:.0f} s)",
        )
        for who, skew in skews
        if not abs(skew) <= GREATEST_SKEW_SECONDS
    )
    limit = max(_LEAST_STALE_SECONDS, _STALE_CYCLES * rules.cycle_seconds)
    if not view.stale_seconds <= limit:
        found.append(
            _breaker(
                "ApiStale",
                f"Nothing was heard from the API server for {view.stale_seconds:.0f} s",
            )
        )
    if not view.books_available and rules.mode is Mode.SCALE_DOWN:
        found.append(
            _breaker(
                "BooksUnavailable",
                "The GPUWorkload CRD is not installed, so warnings cannot be remembered; "
                "apply deploy/crds",
            )
        )
    return tuple(sorted(found, key=lambda one: (one.name, one.message)))


def _breaker(name: str, message: str) -> Breaker:
    return Breaker(name=name, message=message)

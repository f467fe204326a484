"""Reasons to do nothing at all in a cycle.

It answers which breakers are open, from what the cycle read. It never looks at single workloads,
and never closes a breaker by hand: they are found anew in every cycle. `loop.cycle` calls it and
hands the answer to `assemble`; `pulse` calls it with what changed since the cycle before.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.rules import LEAST_STEPS, Mode, Rules
from gpu_pruner.model.snapshot import ALL_HELD, SCREEN_FAILED, Breaker
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.units import MINUTE, Seconds

GREATEST_SKEW_SECONDS: Seconds = 30.0
"""Clocks that differ by more make ages and deadlines wrong."""

NEEDED_KINDS = frozenset({"Pod", "Node", "Namespace"})
"""Kinds that nothing can be judged without."""

_STALE_CYCLES = 3
_LEAST_STALE_SECONDS: Seconds = 3 * MINUTE
"""Watches are quiet for up to a minute between bookmarks."""

_LOST_RATIO = 0.20
_LEAST_LOST = 2
_NOT_READY_RATIO = 0.45
_MOST_NOT_READY = 3
"""So many nodes of a small cluster may be down for maintenance."""


def find_breakers(
    view: ClusterView,
    rules: Rules,
    *,
    screen: Screen | None,
    failure: str = "",
    hold: str = "",
) -> tuple[Breaker, ...]:
    """Return the open breakers, sorted by name.

    Args:
        view: the cluster as the reflectors hold it.
        rules: for the mode and the length of a cycle.
        screen: the answer of the telemetry source; None where there was none.
        failure: why there was none.
        hold: why somebody holds everything, or why that cannot be known; empty where nobody does.
    """
    found: list[Breaker] = []
    if hold:
        found.append(_breaker(ALL_HELD, hold))
    if screen is None:
        found.append(_breaker(SCREEN_FAILED, f"No complete telemetry: {failure or 'no answer'}"))
    found.extend(_clock_skews(view, screen))
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
    found.extend(_nodes_not_ready(view))
    found.extend(_kind_missing(view))
    if screen is not None:
        found.extend(_window_too_short(screen, rules))
    return tuple(sorted(found, key=lambda one: (one.name, one.message)))


def _clock_skews(view: ClusterView, screen: Screen | None) -> Iterator[Breaker]:
    """Yield a breaker for each clock that differs from ours."""
    skews = (
        ("The telemetry source", 0.0 if screen is None else screen.clock_skew_seconds),
        ("The API server", view.clock_skew_seconds),
    )
    for who, skew in skews:
        if not abs(skew) <= GREATEST_SKEW_SECONDS:
            yield _breaker(
                "ClockSkew",
                f"{who}'s clock differs from ours by {skew:+.0f} s; synchronise the clocks "
                f"(at most {GREATEST_SKEW_SECONDS:.0f} s)",
            )


def data_lost(lost: int, *, of: int) -> tuple[Breaker, ...]:
    """Return the breaker for devices that newly lost their data, if it is open.

    Args:
        lost: devices whose pods run on, on Ready nodes, but whose data ended within a window.
        of: devices that have data, those included.
    """
    if lost < max(_LEAST_LOST, _LOST_RATIO * of):
        return ()
    told = f"{lost} of {of} devices lost their data although their pods run on; look at the "
    return (_breaker("DataLost", f"{told}exporters and at what collects from them"),)


def _nodes_not_ready(view: ClusterView) -> tuple[Breaker, ...]:
    """Return the breaker for a cluster in trouble: what is down looks idle from afar."""
    used = {pod.node for pod in view.pods}
    nodes = [one for one in view.nodes.values() if one.gpus or one.name in used]
    down = sum(not one.ready for one in nodes)
    if down <= _MOST_NOT_READY or down <= _NOT_READY_RATIO * len(nodes):
        return ()
    return (_breaker("NodesNotReady", f"{down} of {len(nodes)} GPU nodes are not Ready"),)


def _kind_missing(view: ClusterView) -> tuple[Breaker, ...]:
    """Return the breaker for a kind that no cluster lacks: exemptions stand on namespaces."""
    missing = sorted(view.missing_kinds & NEEDED_KINDS)
    if not missing:
        return ()
    told = f"The API server does not show us any {' or '.join(missing)}, which every cluster has"
    return (_breaker("KindMissing", f"{told}; check our ClusterRole and the API server"),)


def _window_too_short(screen: Screen, rules: Rules) -> tuple[Breaker, ...]:
    """Return the breaker for scrapes so rare that a window holds too few of them."""
    step = screen.period.step_seconds
    least = LEAST_STEPS * step
    if rules.window_seconds >= least:
        return ()
    told = (
        f"The window ({rules.window_seconds / MINUTE:g} min) is shorter than {LEAST_STEPS} scrape "
        f"intervals of {step / MINUTE:g} min ({least / MINUTE:g} min)"
    )
    return (_breaker("WindowTooShort", f"{told}; scrape more often or lengthen the window (-t)"),)


def _breaker(name: str, message: str) -> Breaker:
    return Breaker(name=name, message=message)

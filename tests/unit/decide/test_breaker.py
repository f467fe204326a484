from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.story import told_rules

from gpu_pruner.decide.breaker import find_breakers
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.signals import Period
from gpu_pruner.model.telemetry import Screen

RULES = told_rules()
SCREEN = Screen(period=Period(0, 2, 60.0), columns=(), scrape_interval_seconds=30.0)


def names(
    view: ClusterView, screen: Screen | None = SCREEN, *, mode: str = "scale-down"
) -> list[str]:
    return [one.name for one in find_breakers(view, told_rules({"mode": mode}), screen=screen)]


def test_a_healthy_cycle_opens_none() -> None:
    assert names(ClusterView(stale_seconds=100, clock_skew_seconds=-30)) == []


def test_a_failed_screen_says_why() -> None:
    (found,) = find_breakers(ClusterView(), RULES, screen=None, failure="401 Unauthorized")
    assert (found.name, "401 Unauthorized" in found.message) == ("ScreenFailed", True)


@pytest.mark.parametrize("skew", [30.5, -31.0, math.nan, math.inf])
def test_clocks_that_differ_open_one_for_each(skew: float) -> None:
    assert names(ClusterView(clock_skew_seconds=skew)) == ["ClockSkew"]
    assert names(ClusterView(), replace(SCREEN, clock_skew_seconds=skew)) == ["ClockSkew"]


@pytest.mark.parametrize("stale", [181.0, math.inf, math.nan])
def test_a_silent_api_server_opens_one(stale: float) -> None:
    assert names(ClusterView(stale_seconds=stale)) == ["ApiStale"]
    assert names(ClusterView(stale_seconds=180.0)) == []


def test_a_missing_crd_matters_in_earnest_only() -> None:
    view = ClusterView(books_available=False)
    assert names(view) == ["BooksUnavailable"]
    assert names(view, mode="dry-run") == []


@pytest.mark.parametrize("kind", ["Pod", "Node", "Namespace"])
def test_a_kind_that_every_cluster_has_opens_one_when_it_is_missing(kind: str) -> None:
    view = ClusterView(missing_kinds=frozenset({kind, "Notebook"}))
    (found,) = find_breakers(view, RULES, screen=SCREEN)
    assert (found.name, f"any {kind}," in found.message) == ("KindMissing", True)
    assert names(ClusterView(missing_kinds=frozenset({"Notebook"}))) == []


def test_scrapes_too_rare_for_the_window_open_one_with_the_arithmetic() -> None:
    rare = replace(SCREEN, period=Period(0, 2, 600.0), scrape_interval_seconds=600.0)
    (found,) = find_breakers(ClusterView(), RULES, screen=rare)
    assert found.name == "WindowTooShort"
    assert "(35 min) is shorter than 4 scrape intervals of 10 min (40 min)" in found.message
    enough = told_rules({"window_seconds": "40m"})
    assert find_breakers(ClusterView(), enough, screen=rare) == ()


def test_a_hold_of_everything_is_one_with_its_words() -> None:
    (found,) = find_breakers(ClusterView(), RULES, screen=SCREEN, hold="maintenance")
    assert (found.name, found.message) == ("AllHeld", "maintenance")

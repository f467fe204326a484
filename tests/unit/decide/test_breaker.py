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
SCREEN = Screen(period=Period(0, 2, 60.0), tracks=(), scrape_interval_seconds=30.0)


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

from __future__ import annotations

from support.telling_time import START

from gpu_pruner.decide.wording import clock_time, minutes, seen
from gpu_pruner.model.signals import Period


def test_a_moment_of_today_is_told_by_its_time_of_day() -> None:
    assert clock_time(START - 3600, now=START) == "11:00 UTC"
    assert clock_time(START + 13 * 3600 + 59, now=START) == "01:00 UTC"


def test_a_moment_that_would_be_taken_for_today_is_told_with_its_date() -> None:
    assert clock_time(START - 86_400, now=START) == "2025-12-31 12:00 UTC"


def test_coverage_is_told_in_minutes_whatever_the_step() -> None:
    assert seen(33, Period(0, 34, 60.0)) == "33 of 35 minutes seen"
    assert seen(10, Period(0, 17, 120.0)) == "20 of 36 minutes seen"
    assert minutes(89.0) == 1

from __future__ import annotations

import time

import pytest

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.clock import (
    ENVIRONMENT,
    ScaledClock,
    SystemClock,
    clock_from_environment,
)


def test_a_scaled_clock_is_the_same_in_a_process_that_is_given_it(monkeypatch):
    clock = ScaledClock(real_origin=time.time() - 10.125, simulated_origin=1e9 + 0.3, speed=30.0)
    for name, value in clock.environment().items():
        monkeypatch.setenv(name, value)
    assert clock_from_environment() == clock


def test_a_scaled_clock_runs_as_many_times_faster_as_it_says():
    clock = ScaledClock(real_origin=time.time() - 100, simulated_origin=0.0, speed=30.0)
    assert clock.now() >= 3000.0


def test_without_the_variable_the_clock_is_the_systems(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert clock_from_environment() == SystemClock()


@pytest.mark.parametrize("text", ["fast", "1:2", "1:2:x", "1:2:0", "1:2:-3", "1:2:nan"])
def test_a_wrong_variable_is_named(monkeypatch, text):
    monkeypatch.setenv(ENVIRONMENT, text)
    with pytest.raises(ConfigurationError, match=ENVIRONMENT):
        clock_from_environment()

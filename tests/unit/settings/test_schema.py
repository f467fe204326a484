from __future__ import annotations

import pytest

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.rules import Mode
from gpu_pruner.settings.loading import load_settings
from gpu_pruner.settings.schema import Settings, kinds_from_letters


def test_the_default_is_a_dry_run_with_the_documented_numbers():
    rules = Settings().rules()
    assert rules.mode is Mode.DRY_RUN
    assert (rules.window_seconds, rules.settle_seconds, rules.notice_seconds) == (2100, 300, 900)
    assert (rules.idle_threshold, rules.cycle_seconds, rules.confirmations) == (0.01, 60, 2)


def test_all_errors_are_told_at_once_each_with_its_place():
    with pytest.raises(ConfigurationError) as caught:
        load_settings(
            {"idle_threshold": 7, "colour": "red", "prometheus": {"url": "prom:9090", "tokn": "x"}}
        )
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "idle_threshold",
        "prometheus.url",
        "prometheus.tokn",
        "colour",
    ]


def test_an_unknown_letter_is_an_error_and_enables_nothing():
    with pytest.raises(ConfigurationError, match="unknown resource letter 'D'"):
        kinds_from_letters("D")


def test_a_window_shorter_than_four_scrapes_is_refused_with_the_arithmetic():
    with pytest.raises(ConfigurationError, match=r"window \(1m\) is shorter than 4 scrape.*\(2m\)"):
        load_settings(
            {
                "window_seconds": 60,
                "scrape": {"exporters": ("http://127.0.0.1:9400/metrics",), "interval_seconds": 30},
            }
        )


def test_a_secret_never_shows_itself():
    settings = load_settings(
        {"prometheus": {"url": "http://p", "token": "canary-1", "headers": {"X-A": "canary-2"}}}
    )
    assert "canary" not in repr(settings)
    assert "canary" not in settings.model_dump_json()


def test_a_secret_in_a_wrong_value_is_not_repeated():
    with pytest.raises(ConfigurationError) as caught:
        load_settings({"prometheus": {"url": "http://p", "token": ["canary"]}})
    assert "canary" not in str(caught.value)

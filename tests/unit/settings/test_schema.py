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
    scrape = {"exporters": ("http://127.0.0.1:9400/metrics",), "interval_seconds": 600}
    said = r"window \(35m\) is shorter than 4 steps of 10m \(40m\)"
    with pytest.raises(ConfigurationError, match=said):
        load_settings({"scrape": scrape})
    assert load_settings({"scrape": scrape, "window_seconds": "40m"}).window_seconds == 2400


@pytest.mark.parametrize("source", [{}, {"prometheus": {"url": "http://p"}}])
def test_a_window_shorter_than_four_minutes_is_refused_for_every_source(source):
    with pytest.raises(ConfigurationError, match=r"window \(1m\) is shorter than 4 steps of 1m"):
        load_settings({"window_seconds": 60, **source})
    assert load_settings({"window_seconds": 240, **source}).window_seconds == 240


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


BAD_URLS = {
    "admin:canary@prom:9090": "must begin with http://",
    "ftp://admin:canary@prom": "must begin with http://",
    "http://admin:can/ary@prom:9090": "@",
    "http://admin:1/canary@prom:9090": "%40",
    "http://admin:1?canary@prom:9090": "%40",
    "http://[bad": "host and port",
    "http://[::1/m": "host and port",
    "http://127.0.0.1:99999": "1 to 65535",
    "http://127.0.0.1:abc": "host and port",
    ":abc": "must begin with http://",
    "http://": "names no host",
    "http://:9090": "names no host",
    "http://::1": "host and port",
    "http://h:0/m": "port 0",
    "http://h\n/m": "unprintable",
    "http://h /m": "blank",
    "http://a..b/m": "host and port",
}


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_wrong_url_is_told_with_its_place_and_without_its_password(url):
    for section, place in (
        ({"prometheus": {"url": url}}, "prometheus.url: "),
        ({"scrape": {"exporters": (url,)}}, "scrape.exporters.0: "),
    ):
        with pytest.raises(ConfigurationError) as caught:
            load_settings(section)
        (line,) = str(caught.value).splitlines()
        assert line.startswith(place)
        assert BAD_URLS[url] in line
        assert "canary" not in line
        assert "can/ary" not in line


def test_a_password_in_a_url_is_a_secret():
    told = load_settings({"prometheus": {"url": "https://admin:canary@prom:9090/a/"}})
    assert told.prometheus.url == "https://prom:9090/a"
    assert told.prometheus.login.get_secret_value() == "admin:canary"
    assert "canary" not in repr(told)
    assert "canary" not in told.model_dump_json()
    exporters = ["dns+http://admin:canary@gpu:9400/m", "http://h:9400/m?a=b"]
    told = load_settings({"scrape": {"exporters": exporters}})
    assert told.scrape.exporters == ("dns+http://gpu:9400/m", "http://h:9400/m?a=b")
    assert told.scrape.logins["dns+http://gpu:9400/m"].get_secret_value() == "admin:canary"
    assert "canary" not in repr(told)
    assert "canary" not in told.model_dump_json()


def test_a_query_that_would_not_be_sent_is_refused():
    with pytest.raises(ConfigurationError, match=r"'http://p/' must end before the \?") as caught:
        load_settings({"prometheus": {"url": "http://p/?api_key=canary"}})
    assert "canary" not in str(caught.value)


def test_the_query_of_a_wrong_exporter_is_not_repeated():
    with pytest.raises(ConfigurationError, match="scrape.exporters") as caught:
        load_settings({"scrape": {"exporters": ["http://h:0/m?api_key=canary"]}})
    assert "canary" not in str(caught.value)


def test_blanks_around_a_secret_are_no_part_of_it():
    told = load_settings(
        {"prometheus": {"url": "http://p", "token": "abc\n", "headers": {"X-A": " team-a\r\n"}}}
    )
    assert told.prometheus.token.get_secret_value() == "abc"
    assert told.prometheus.headers["X-A"].get_secret_value() == "team-a"


@pytest.mark.parametrize("value", ["can\nary", "can\x00ary", "canary\u20ac", "can\u2028ary"])
def test_a_secret_that_no_header_can_carry_is_refused_without_repeating_it(value):
    for field, place in (
        ({"token": value}, "prometheus.token: "),
        ({"headers": {"X-A": value}}, "prometheus.headers: X-A "),
    ):
        with pytest.raises(ConfigurationError) as caught:
            load_settings({"prometheus": {"url": "http://p", **field}})
        line = str(caught.value)
        assert line.startswith(place)
        assert "can" not in line.replace("can carry", "")


@pytest.mark.parametrize("name", ["Authorization: Bearer canary", "X A", "", "X\n"])
def test_a_header_name_that_is_none_is_refused_without_repeating_it(name):
    with pytest.raises(ConfigurationError, match="prometheus.headers: a name") as caught:
        load_settings({"prometheus": {"url": "http://p", "headers": {name: "canary"}}})
    assert "canary" not in str(caught.value)


def test_an_empty_token_is_refused():
    with pytest.raises(ConfigurationError, match="prometheus.token: is empty"):
        load_settings({"prometheus": {"url": "http://p", "token": " \n"}})

"""What a preset sets, what wins over it, and whom its token is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_pruner.cli.given import loaded_from_flags
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.document import parse_document
from gpu_pruner.settings.fields import all_settings
from gpu_pruner.settings.loading import Loaded, load
from gpu_pruner.settings.platforms import Platform
from gpu_pruner.settings.presets import PRESETS
from gpu_pruner.settings.schema import ProfileName, PrometheusSettings, Settings

URL = "prometheus: {url: 'http://prometheus:9090'}\n"


def given(text: str) -> Loaded:
    return load([], document=parse_document(text, name="settings.yaml"))


def prometheus(text: str) -> PrometheusSettings:
    found = given(text).settings.prometheus
    assert found is not None
    return found


def test_every_make_of_cluster_has_a_preset_of_settings_that_there_are() -> None:
    assert set(PRESETS) == set(Platform)
    for values in PRESETS.values():
        assert set(values) <= set(all_settings(Settings))


@pytest.mark.parametrize("platform", Platform)
def test_a_preset_with_a_url_is_valid_and_says_where_its_values_are_from(
    platform: Platform,
) -> None:
    found = given(f"preset: {platform}\n{URL}")
    assert found.settings.preset is platform
    assert found.place(("prometheus", "profiles")).text == f"preset {platform}"
    assert found.place(("prometheus", "url")).text == "settings.yaml:2:14"


def test_openshift_knows_its_querier_with_token_and_authority() -> None:
    found = prometheus("preset: openshift\n")
    assert found.url == "https://thanos-querier.openshift-monitoring.svc:9091"
    assert found.token_file == Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
    assert found.ca_file is not None
    assert found.ca_file.name == "service-ca.crt"


def test_the_token_of_a_preset_is_sent_to_its_own_server_only() -> None:
    found = prometheus(f"preset: openshift\n{URL}")
    assert (found.url, found.token_file, found.ca_file) == ("http://prometheus:9090", None, None)
    text = "preset: openshift\nprometheus: {url: 'http://p', token_file: /mine}\n"
    assert prometheus(text).token_file == Path("/mine")


@pytest.mark.parametrize(
    ("platform", "profiles"),
    [
        ("openshift", {ProfileName.DCGM}),
        ("gke", {ProfileName.DCGM, ProfileName.GOOGLE}),
        ("eks", {ProfileName.DCGM}),
        ("aks", {ProfileName.DCGM, ProfileName.AZURE}),
    ],
)
def test_a_preset_reads_the_exporters_of_its_platform(
    platform: str, profiles: set[ProfileName]
) -> None:
    assert set(prometheus(f"preset: {platform}\n{URL}").profiles) == profiles
    text = f"preset: {platform}\nprometheus: {{url: 'http://p', profiles: [amd]}}\n"
    assert prometheus(text).profiles == (ProfileName.AMD,)


@pytest.mark.parametrize("platform", ["gke", "eks", "aks"])
def test_a_preset_without_an_address_names_no_source(platform: str) -> None:
    assert given(f"preset: {platform}\n").settings.prometheus is None


def test_exporters_win_over_the_prometheus_of_a_preset() -> None:
    text = "preset: openshift\nscrape: {exporters: ['http://h:9400/metrics']}\n"
    assert given(text).settings.prometheus is None


def test_outside_the_cluster_the_files_of_a_preset_are_missed_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"preset openshift: prometheus\.token_file: "):
        loaded_from_flags({"preset": "openshift"})

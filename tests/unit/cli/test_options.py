from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from gpu_pruner.cli.options import controller_options, settings_from_flags
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.rules import Mode


def settings_of(*arguments: str):
    seen = {}

    @click.command()
    @controller_options
    def command(**flags):
        seen.update(flags)

    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    if result.exception:
        raise result.exception
    return settings_from_flags(seen)


def test_the_rust_tools_letters_and_units_mean_what_they_meant():
    settings = settings_of(
        *[
            "-t",
            "30",
            "-g",
            "300",
            "-c",
            "180",
            "-e",
            "ds",
            "-r",
            "scale-down",
            "--prometheus-url",
            "http://p:9090",
        ],
        *["--ack-grace-period", "600", "--idle-threshold", "0.02", "--honor-labels"],
    )
    rules = settings.rules()
    assert (rules.window_seconds, rules.settle_seconds, rules.cycle_seconds) == (1800, 300, 180)
    assert rules.notice_seconds == 600
    assert rules.idle_threshold == 0.02
    assert rules.enabled_kinds == {"Deployment", "StatefulSet"}
    assert rules.mode is Mode.SCALE_DOWN
    assert settings.prometheus.honor_labels is True


def test_units_may_be_written_everywhere():
    rules = settings_of("-t", "2h", "-g", "10m", "-c", "1m").rules()
    assert (rules.window_seconds, rules.settle_seconds, rules.cycle_seconds) == (7200, 600, 60)


def test_without_the_flag_the_label_scheme_is_found_out():
    assert settings_of("--prometheus-url", "http://p").prometheus.honor_labels is None


def test_an_unknown_letter_names_itself_and_the_known_ones():
    with pytest.raises(click.BadParameter, match="'x'.*d = Deployment"):
        settings_of("-e", "dx")


def test_a_missing_file_is_named_with_its_flag():
    with pytest.raises(ConfigurationError, match="--prometheus-token-file.*nowhere"):
        settings_of("--prometheus-url", "http://p", "--prometheus-token-file", "/nowhere/token")


def test_a_header_value_may_come_from_a_file_and_is_a_secret(tmp_path):
    (tmp_path / "tenant").write_text("team-a\n")
    settings = settings_of(
        "--prometheus-url", "http://p", "--prometheus-header", f"X-Scope-OrgID=@{tmp_path}/tenant"
    )
    assert settings.prometheus.headers["X-Scope-OrgID"].get_secret_value() == "team-a"
    assert "team-a" not in repr(settings)


def test_a_header_without_a_value_is_refused():
    with pytest.raises(ConfigurationError, match="--prometheus-header"):
        settings_of("--prometheus-url", "http://p", "--prometheus-header", "X-Scope-OrgID")


def test_the_token_comes_from_its_variable(monkeypatch):
    monkeypatch.setenv("PROMETHEUS_TOKEN", "canary")
    settings = settings_of("--prometheus-url", "http://p")
    assert settings.prometheus.token.get_secret_value() == "canary"


def test_what_an_error_advises_can_be_said_on_the_command_line():
    told = settings_of(
        *("--prometheus-url", "http://p", "--prometheus-cluster", "east"),
        *("--prometheus-cluster-label", "site", "--profile", "dcgm", "--profile", "amd"),
        *("--node-label", "machine"),
    ).prometheus
    assert (told.cluster, told.cluster_label, told.node_label) == ("east", "site", "machine")
    assert told.profiles == ("dcgm", "amd")


def test_exporters_have_profiles_too():
    told = settings_of("--exporter", "http://h:9400/m", "--profile", "amd", "--node-label", "n")
    assert (told.scrape.profiles, told.scrape.node_label) == (("amd",), "n")


def test_a_header_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / "tenant").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="--prometheus-header.*not UTF-8"):
        settings_of("--prometheus-url", "http://p", "--prometheus-header", f"A=@{tmp_path}/tenant")


def test_the_lease_is_told_by_flags_and_a_wrong_time_names_its_flag() -> None:
    flags: dict[str, object] = {
        "lease_namespace": "team-ops",
        "lease_duration": 30.0,
        "lease_renew_deadline": 20.0,
    }
    lease = settings_from_flags(flags).lease
    assert (lease.namespace, lease.duration_seconds, lease.name) == ("team-ops", 30.0, "gpu-pruner")
    with pytest.raises(ConfigurationError, match=r"--lease-namespace: lease\.namespace: "):
        settings_from_flags(flags | {"lease_namespace": "Team Ops"})
    with pytest.raises(ConfigurationError, match="duration > renew deadline"):
        settings_from_flags(flags | {"lease_renew_deadline": 30.0})

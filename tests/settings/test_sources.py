"""Flag over variable over file over preset over default, value by value, each with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gpu_pruner.cli.commands import command_line
from gpu_pruner.cli.given import FLAGS, loaded_from_flags
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.environment import layer_of_environment, variable_of
from gpu_pruner.settings.fields import all_settings, is_secret
from gpu_pruner.settings.loading import Loaded, load
from gpu_pruner.settings.schema import Settings
from gpu_pruner.settings.telling import told


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PROMETHEUS_TOKEN", "POD_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def given(text: str = "", flags: Mapping[str, object] | None = None, **variables: str) -> Loaded:
    file = Path("settings.yaml")
    file.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return loaded_from_flags({"config": file, **(flags or {})})


def test_each_value_comes_from_the_strongest_source_that_says_it() -> None:
    found = given(
        "preset: openshift\nwindow_seconds: 1h\nsettle_seconds: 2m\nconfirmations: 3\n"
        "prometheus: {ca_file: settings.yaml, token_file: settings.yaml}\n",
        {"duration": 1800.0},
        GPU_PRUNER_WINDOW_SECONDS="50m",
        GPU_PRUNER_SETTLE_SECONDS="60",
    )
    settings = found.settings
    assert (settings.window_seconds, settings.settle_seconds, settings.confirmations) == (
        1800,
        60,
        3,
    )
    assert settings.prometheus is not None
    assert settings.prometheus.url.endswith(":9091")
    places = {one.name: one.origin for one in told(found)}
    assert places["window_seconds"] == "-t/--duration"
    assert places["settle_seconds"] == "GPU_PRUNER_SETTLE_SECONDS"
    assert places["confirmations"] == "settings.yaml:4:1"
    assert places["prometheus.ca_file"] == "settings.yaml:5:14"
    assert places["prometheus.url"] == "preset openshift"
    assert places["notice_seconds"] == "default"


def test_a_section_is_not_replaced_as_a_whole() -> None:
    found = given(
        "prometheus:\n  url: http://file\n  headers: {A: file, B: file}\n",
        {"prometheus_token": "t"},
        GPU_PRUNER_PROMETHEUS_HEADERS="{B: variable}",
    ).settings.prometheus
    assert found is not None
    assert found.token is not None
    assert {key: one.get_secret_value() for key, one in found.headers.items()} == {
        "A": "file",
        "B": "variable",
    }


RICH = """
mode: scale-down
window_seconds: 40m
settle_seconds: 1m
idle_threshold: 0.002
coverage_ratio: 0.9
liveness: false
measurable_models: [H999*, L1]
confirmations: 4
budget: {workloads_per_cycle: 1, gpu_ratio_per_cycle: 0.2, per_hour: 3, ratio_per_hour: 0.5}
enabled_kinds: [Deployment, Job]
warn_only_kinds: []
protected_namespaces: [kube-system, team-a]
namespaces: team-.*
models: NVIDIA A100.*
power_threshold_watts: 150
custom_levers:
- {group: ml.example.org, version: v1, plural: servers, kind: Server, replicas: spec.workers}
prometheus: {url: 'http://p:9090', cluster: east, honor_labels: true, profiles: [dcgm, amd]}
kubernetes: {context: lab, timeout_seconds: 4}
lease: {identity: one, duration_seconds: 30}
listen_port: 9000
"""


def not_secret(loaded: Loaded) -> dict[str, object]:
    secrets = {".".join(keys) for keys, one in all_settings(Settings).items() if is_secret(one)}
    return {one.name: one.value for one in told(loaded) if one.name not in secrets}


def test_what_is_printed_can_be_given_by_variables_again() -> None:
    """Every setting, whatever its type: the variable of each is its path."""
    rich = given(RICH)
    variables = {
        variable_of(tuple(name.split("."))): value if isinstance(value, str) else json.dumps(value)
        for name, value in not_secret(rich).items()
        if value is not None
    }
    layer, problems = layer_of_environment(variables)
    assert problems == []
    assert load([layer]).settings == rich.settings


def test_what_is_printed_can_be_given_by_a_file_again() -> None:
    rich = given(RICH)
    tree: dict[str, dict[str, object]] = {}
    for name, value in not_secret(rich).items():
        section, _, key = name.rpartition(".")
        tree.setdefault(section, {})[key] = value
    top = tree.pop("")
    assert given(yaml.safe_dump({**top, **tree})).settings == rich.settings


def test_no_two_settings_have_one_variable() -> None:
    names = [variable_of(keys) for keys in all_settings(Settings)]
    assert len(names) == len(set(names))


def test_every_flag_is_of_a_setting_that_there_is() -> None:
    assert {keys for _, keys in FLAGS.values()} <= set(all_settings(Settings))
    params = {one.name for one in command_line.params}
    assert set(FLAGS) <= params


SERVICE_LINKS = {
    "GPU_PRUNER_SERVICE_HOST": "10.96.0.7",
    "GPU_PRUNER_SERVICE_PORT": "8080",
    "GPU_PRUNER_SERVICE_PORT_HTTP": "8080",
    "GPU_PRUNER_PORT": "tcp://10.96.0.7:8080",
    "GPU_PRUNER_PORT_8080_TCP": "tcp://10.96.0.7:8080",
    "GPU_PRUNER_PORT_8080_TCP_PROTO": "tcp",
    "GPU_PRUNER_PORT_8080_TCP_PORT": "8080",
    "GPU_PRUNER_PORT_8080_TCP_ADDR": "10.96.0.7",
    "GPU_PRUNER_DASHBOARD_SERVICE_HOST": "10.96.0.8",
    "GPU_PRUNER_DASHBOARD_PORT": "tcp://10.96.0.8:80",
    "GPU_PRUNER_LISTEN_PORT": "tcp://10.96.0.9:80",
    "GPU_PRUNER_LISTEN_SERVICE_PORT": "80",
}
"""What Kubernetes makes of Services named gpu-pruner, and that with -dashboard and -listen."""


def test_kubernetes_own_variables_are_no_settings() -> None:
    found = given("", None, **SERVICE_LINKS)
    assert found.settings == given().settings
    assert given("", None, GPU_PRUNER_LISTEN_PORT="9000").settings.listen_port == 9000


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("GPU_PRUNER_WIDOW_SECONDS", "1", "did you mean GPU_PRUNER_WINDOW_SECONDS?"),
        ("GPU_PRUNER_BUDGET_PER_OUR", "1", "did you mean GPU_PRUNER_BUDGET_PER_HOUR?"),
        ("GPU_PRUNER_LISTENING_PORT", "80", "did you mean GPU_PRUNER_LISTEN_PORT?"),
        ("GPU_PRUNER_WINDOW_SECONDS", "soon", "'soon' is not a length of time"),
        ("GPU_PRUNER_CONFIRMATIONS", "two", "must be a whole number; found 'two'"),
        ("GPU_PRUNER_LIVENESS", "perhaps", "must be true or false"),
        ("GPU_PRUNER_PROMETHEUS_HEADERS", "s3cret", "must be names with values"),
        ("GPU_PRUNER_PROMETHEUS_HEADERS", "{A: s3cret", "is not YAML"),
        ("GPU_PRUNER_CUSTOM_LEVERS", "[{kind: Server}]", "group: is required"),
        ("GPU_PRUNER_ENABLED_KINDS", "Deployment,Pod", "unknown kind 'Pod'"),
        ("GPU_PRUNER_KUBERNETES_KUBECONFIG", "/nowhere", "/nowhere is not a readable file"),
        ("GPU_PRUNER_PROMETHEUS_CLUSTER", "east", "prometheus.url: is required"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        given("", None, **{name: value})
    assert str(refused.value).startswith(f"{name}: ")
    assert says in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_errors_of_all_sources_are_told_at_once() -> None:
    flags = {"idle_threshold": 7.0, "prometheus_header": ("x",), "kubeconfig": Path("/nowhere")}
    with pytest.raises(ConfigurationError) as refused:
        given("confirmations: 0\n", flags, GPU_PRUNER_X="1", GPU_PRUNER_LIVENESS="x")
    places = [line.split(": ")[0] for line in str(refused.value).splitlines()]
    assert sorted(places) == [
        "--idle-threshold",
        "--prometheus-header",
        "GPU_PRUNER_LIVENESS",
        "GPU_PRUNER_X",
        "settings.yaml:1:1",
    ]


def test_an_empty_variable_says_nothing() -> None:
    assert given("", None, GPU_PRUNER_WINDOW_SECONDS="", PROMETHEUS_TOKEN=" ").settings == (
        given().settings
    )


def test_the_rust_tools_variables_are_read_and_ours_win() -> None:
    file = "prometheus: {url: 'http://p', token: file}\n"
    found = given(file, None, PROMETHEUS_TOKEN="rust", POD_NAME="gpu-pruner-0")
    assert found.settings.prometheus is not None
    assert found.settings.prometheus.token is not None
    assert found.settings.prometheus.token.get_secret_value() == "rust"
    assert found.settings.lease.identity == "gpu-pruner-0"
    found = given(file, None, PROMETHEUS_TOKEN="rust", GPU_PRUNER_PROMETHEUS_TOKEN="ours")
    assert found.settings.prometheus is not None
    assert found.settings.prometheus.token is not None
    assert found.settings.prometheus.token.get_secret_value() == "ours"


def test_a_token_in_the_environment_is_not_about_a_prometheus_that_nobody_named() -> None:
    assert given("", None, PROMETHEUS_TOKEN="canary").settings.prometheus is None


def test_the_stronger_of_two_telemetry_sources_holds() -> None:
    file = "prometheus: {url: 'http://p', token: t}\n"
    found = given(file, {"exporter": ("http://h:9400/metrics",)}).settings
    assert (found.prometheus, found.scrape.exporters) == (None, ("http://h:9400/metrics",))
    file = "scrape: {exporters: ['http://h:9400/metrics']}\n"
    found = given(file, {"prometheus_url": "http://p"}).settings
    assert found.prometheus is not None
    assert found.scrape.exporters == ()
    with pytest.raises(ConfigurationError, match="--exporter: .*not both.*--prometheus-url"):
        given("", {"prometheus_url": "http://p", "exporter": ("http://h:9400/metrics",)})


def printed(*arguments: str, **variables: str) -> str:
    result = CliRunner(env=variables).invoke(command_line, [*arguments, "--print-settings"])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("command", [("run",), ("once",), ("-d",), ()])
def test_settings_are_printed_with_where_they_come_from(command: tuple[str, ...]) -> None:
    Path("settings.yaml").write_text("confirmations: 3\nprometheus: {url: 'http://a:b@p'}\n")
    text = printed(
        *command, "--config", "settings.yaml", "-t", "45", "--output", "json",
        GPU_PRUNER_BUDGET_PER_HOUR="9", PROMETHEUS_TOKEN="canary",
    )  # fmt: skip
    rows = {one["name"]: (one["value"], one["origin"]) for one in json.loads(text)}
    assert rows["window_seconds"] == ("45m", "-t/--duration")
    assert rows["budget.per_hour"] == (9, "GPU_PRUNER_BUDGET_PER_HOUR")
    assert rows["confirmations"] == (3, "settings.yaml:1:1")
    assert rows["prometheus.url"] == ("http://p", "settings.yaml:2:14")
    assert rows["prometheus.login"] == ("***", "settings.yaml:2:14")
    assert rows["prometheus.token"] == ("***", "PROMETHEUS_TOKEN")
    assert rows["mode"] == ("dry-run", "default")
    assert set(rows) == {".".join(keys) for keys in all_settings(Settings)}


def test_the_table_hides_secrets_too() -> None:
    text = printed(
        "once", "--prometheus-url", "http://admin:canary@p", "--prometheus-token", "canary",
        "--prometheus-header", "X-A=canary",
    )  # fmt: skip
    assert "canary" not in text
    assert text.count("***") == 3


def test_the_file_may_be_named_by_a_variable() -> None:
    Path("settings.yaml").write_text("confirmations: 3\n")
    assert "settings.yaml:1:1" in printed("once", GPU_PRUNER_CONFIG="settings.yaml")

"""The Rust tool's manifests and command lines become settings that mean the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from gpu_pruner.cli.commands import command_line
from gpu_pruner.cli.differences import DIFFERENCES, differences
from gpu_pruner.cli.given import loaded_from_flags
from gpu_pruner.cli.rust_manifests import read_invocation
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.telling import told

PUBLISHED = yaml.safe_load(
    (Path(__file__).parents[2] / "settings" / "rust_tool" / "published.yaml").read_text("utf-8")
)
LINE = "gpu-pruner -d -r scale-down -t 45 -g 120 -c 90 -e dn -n 'team-.*' -m 'NVIDIA A100.*' "
LINE += "--power-threshold 120 --prometheus-url http://p:9090 --prometheus-tls-mode skip "
LINE += "--idle-threshold 0.02 --ack-grace-period 600 --honor-labels"


def migrated(text: str) -> Result:
    return CliRunner().invoke(command_line, ["migrate", "-"], input=text)


def manifest(kind: str, container: dict[str, object]) -> str:
    pod: object = {"spec": {"containers": [{"name": "other", "image": "proxy"}, container]}}
    match kind:
        case "CronJob":
            body = {"spec": {"jobTemplate": {"spec": {"template": pod}}}}
        case "Pod":
            body = pod
        case "List":
            body = {"items": [{"kind": "Deployment", "spec": {"template": pod}}]}
        case _:
            body = {"spec": {"template": pod}}
    service = yaml.safe_dump({"kind": "Service", "spec": {"ports": []}})
    return f"{service}---\n{yaml.safe_dump({'kind': kind, **body})}"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "CronJob", "Pod", "List"])
@pytest.mark.parametrize(
    "container",
    [
        {"image": "r.example/gpu-pruner:1", "args": ["-t", "45"]},
        {"image": "r.example/gpu-pruner:1", "args": ["gpu-pruner", "-t", "45"]},
        {"image": "x", "command": ["/usr/bin/gpu-pruner"], "args": ["-t", "45"]},
        {"image": "x", "command": ["gpu-pruner"], "args": ["gpu-pruner", "-t=45"]},
        {"image": "x", "command": ["/bin/sh", "-c"], "args": ["exec gpu-pruner -t \\\n 45"]},
    ],
)
def test_the_arguments_are_found_in_every_kind(kind: str, container: dict[str, object]) -> None:
    found = read_invocation(manifest(kind, container)).arguments
    assert found in {("-t", "45"), ("-t=45",)}


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda one: one["name"])
def test_a_published_manifest_becomes_settings_that_mean_the_same(
    published: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = published["env"]
    assert isinstance(environ, dict)
    container = {
        "image": "x",
        "args": published["args"],
        "env": [{"name": name, "value": value} for name, value in environ.items()],
    }
    result = migrated(manifest("Deployment", container))
    assert result.exit_code == 0, result.output
    assert "canary" not in result.output
    for name in published["without_effect"]:
        assert f"{name} has no effect" in result.stderr
    file = tmp_path / "settings.yaml"
    file.write_text(result.stdout)
    monkeypatch.delenv("PROMETHEUS_TOKEN", raising=False)
    rows = {one.name: one.value for one in told(loaded_from_flags({"config": file}))}
    assert {name: rows[name] for name in published["means"]} == published["means"]


def test_settings_say_what_the_flags_said(tmp_path: Path) -> None:
    result = migrated(LINE)
    assert result.exit_code == 0, result.output
    assert yaml.safe_load(result.stdout) == {
        "mode": "scale-down",
        "window_seconds": "45m",
        "settle_seconds": "2m",
        "cycle_seconds": "1m30s",
        "notice_seconds": "10m",
        "enabled_kinds": ["Deployment", "Notebook"],
        "idle_threshold": 0.02,
        "namespaces": "team-.*",
        "models": "NVIDIA A100.*",
        "power_threshold_watts": 120,
        "prometheus": {"url": "http://p:9090", "honor_labels": True, "tls_verify": False},
    }
    (tmp_path / "settings.yaml").write_text(result.stdout)
    direct = CliRunner().invoke(
        command_line, [*read_invocation(LINE).arguments, "--print-settings", "--output", "json"]
    )
    through = CliRunner().invoke(
        command_line,
        ["run", "--config", f"{tmp_path}/settings.yaml", "--print-settings", "--output", "json"],
    )
    values = [
        {one["name"]: one["value"] for one in json.loads(each.stdout)} for each in (direct, through)
    ]
    assert values[0] == values[1]


def test_secrets_are_not_written() -> None:
    result = migrated(
        "PROMETHEUS_TOKEN=canary gpu-pruner --prometheus-url http://a:canary@p "
        "--prometheus-token canary --slack-webhook-url https://hooks.example/canary"
    )
    assert result.exit_code == 0
    assert "canary" not in result.output
    for name in ("--prometheus-token", "PROMETHEUS_TOKEN", "login in --prometheus-url"):
        assert f"\n{name}: " in result.stderr


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda one: one.about)
def test_every_difference_is_told_to_somebody(difference: object) -> None:
    lines = {*differences({}), *differences({
        "daemon_mode": True, "enabled_resources": frozenset({"Notebook"}), "metrics_addr": ":1",
        "prometheus_token": "t", "PROMETHEUS_TOKEN": "t",
        "prometheus_url": "http://a:b@thanos-querier.openshift-monitoring.svc",
    })}  # fmt: skip
    assert difference.line in lines  # type: ignore[attr-defined]


def test_a_default_that_was_not_relied_on_is_not_told() -> None:
    told_lines = migrated(LINE).stderr
    for about in ("window:", "cycle:", "notice:", "labels:"):
        assert about not in told_lines.replace("missing data: samples must cover the window", "")


POD = manifest("Pod", {"image": "gpu-pruner"})
MISSPELT = ["--durration: is no flag; did you mean --duration?", "--colour: is no flag"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpu-pruner --durration 5 --colour=red", MISSPELT),
        ("gpu-pruner -e D", ["unknown resource letter 'D'"]),
        ("gpu-pruner -r sometimes", ["'sometimes' is not one of"]),
        ("gpu-pruner --idle-threshold 7", ["idle_threshold: must be less than 1"]),
        ("gpu-pruner -t", ["-t"]),
        ("", ["neither a manifest nor a command line"]),
        ("gpu-pruner 'open", ["neither a manifest nor a command line"]),
        ("[" * 5_000, ["unexpected extra argument"]),
        ("kind: Service\nspec: {}\n", ["no container runs gpu-pruner"]),
        (f"{POD}---\n{POD}", ["2 containers run gpu-pruner"]),
    ],
)  # fmt: skip
def test_what_cannot_be_migrated_is_named(text: str, says: list[str]) -> None:
    result = migrated(text)
    if isinstance(result.exception, ConfigurationError):  # what ends with 2 in the program
        words = str(result.exception)
    else:
        assert result.exit_code == 2
        words = result.output
    assert result.stdout == ""
    for one in says:
        assert one in words

"""Every flag of the Rust tool with its documented meaning, and its manifests as they are."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gpu_pruner.cli.commands import command_line
from gpu_pruner.cli.rust_flags import log_level, without_effect

PUBLISHED = yaml.safe_load(
    (Path(__file__).parent / "rust_tool" / "published.yaml").read_text(encoding="utf-8")
)
URL = ("--prometheus-url", "http://prometheus:9090")

FLAGS: list[tuple[tuple[str, ...], str, object]] = [
    (("-t", "30"), "window_seconds", "30m"),
    (("--duration", "45"), "window_seconds", "45m"),
    (("-g", "300"), "settle_seconds", "5m"),
    (("--grace-period", "90"), "settle_seconds", "1m30s"),
    (("-c", "180"), "cycle_seconds", "3m"),
    (("--check-interval", "60"), "cycle_seconds", "1m"),
    (
        ("-e", "drsinl"),
        "enabled_kinds",
        [
            "Deployment",
            "InferenceService",
            "LeaderWorkerSet",
            "Notebook",
            "ReplicaSet",
            "StatefulSet",
        ],
    ),
    (("--enabled-resources", "n"), "enabled_kinds", ["Notebook"]),
    (("-n", "team-(a|b)"), "namespaces", "team-(a|b)"),
    (("--namespace", "ml-.*"), "namespaces", "ml-.*"),
    (("-m", "NVIDIA A10G"), "models", "NVIDIA A10G"),
    (("--model-name", "NVIDIA A100.*"), "models", "NVIDIA A100.*"),
    (("--power-threshold", "120"), "power_threshold_watts", 120),
    (("--honor-labels",), "prometheus.honor_labels", True),
    (("-r", "scale-down"), "mode", "scale-down"),
    (("--run-mode", "dry-run"), "mode", "dry-run"),
    (("--prometheus-token", "canary"), "prometheus.token", "***"),
    (("--prometheus-tls-mode", "skip"), "prometheus.tls_verify", False),
    (("--prometheus-tls-mode", "verify"), "prometheus.tls_verify", True),
    (("--prometheus-tls-cert", __file__), "prometheus.ca_file", __file__),
    (("--idle-threshold", "0.05"), "idle_threshold", 0.05),
    (("--ack-grace-period", "300"), "notice_seconds", "5m"),
    (("--metrics-addr", "127.0.0.1:9000"), "listen_port", 9000),
    (
        ("--slack-namespace-mentions", '{"team-a": "@alice", "bob-": "<@UBOB>"}'),
        "audience.namespaces",
        {"team-a": "@alice", "bob-": "<@UBOB>"},
    ),
]
"""Flag with a value, the setting, and how the setting is printed."""

SWITCHED_OFF: list[tuple[str, ...]] = [
    ("--slack-webhook-url", "https://hooks.example/canary"),
    ("--slack-channel", "#pruner"),
    ("--slack-interaction-port", "3002"),
    ("--cluster", "one=http://prometheus:9090"),
    ("--honor-labels-clusters", "one"),
]

EVERY_FLAG = """
-t --duration -g --grace-period -d --daemon-mode -c --check-interval -e --enabled-resources
-n --namespace -m --model-name --power-threshold --honor-labels -r --run-mode --prometheus-url
--prometheus-token --prometheus-tls-mode --prometheus-tls-cert -l --log-format --idle-threshold
--slack-webhook-url --slack-channel --slack-interaction-port --ack-grace-period
--slack-namespace-mentions --cluster --honor-labels-clusters --metrics-addr
"""
"""Of both repositories, from their argument parsers."""


def printed(*arguments: str, **variables: str) -> dict[str, tuple[object, str]]:
    environ = {"PROMETHEUS_TOKEN": None, "POD_NAME": None, **variables}
    result = CliRunner(env=environ).invoke(
        command_line, [*arguments, "--print-settings", "--output", "json"]
    )
    assert result.exit_code == 0, result.output
    return {one["name"]: (one["value"], one["origin"]) for one in json.loads(result.stdout)}


def test_every_flag_of_it_is_there_without_a_command() -> None:
    ours = {name for one in command_line.params for name in one.opts}
    assert ours >= set(EVERY_FLAG.split())


@pytest.mark.parametrize(("flag", "setting", "value"), FLAGS, ids=lambda one: str(one)[:40])
@pytest.mark.parametrize("mode", [("-d",), ()], ids=["daemon", "once"])
def test_a_flag_means_what_it_meant(
    flag: tuple[str, ...], setting: str, value: object, mode: tuple[str, ...]
) -> None:
    rows = printed(*mode, *URL, *flag)
    assert rows[setting][0] == value
    assert flag[0] in rows[setting][1].split("/")


@pytest.mark.parametrize("form", ["default", "json", "pretty"])
def test_its_log_formats_are_there(form: str) -> None:
    printed(*URL, "-l", form)


@pytest.mark.parametrize("flag", SWITCHED_OFF, ids=lambda one: one[0])
def test_what_has_no_effect_is_taken_and_told(flag: tuple[str, ...]) -> None:
    ended = command(*URL, *flag)
    assert f"{flag[0]} has no effect" in ended.stderr
    assert "canary" not in ended.stderr


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one pass that cannot reach anything."""
    nowhere = {"KUBECONFIG": "/nowhere/kubeconfig", "PATH": "", **variables}
    return subprocess.run(
        [sys.executable, "-m", "gpu_pruner.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=nowhere,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("manifest", PUBLISHED, ids=lambda one: one["name"])
def test_a_published_manifest_starts_unchanged(manifest: dict[str, object]) -> None:
    """With the program's name as first argument, as its images want it."""
    arguments, environ = manifest["args"], manifest["env"]
    assert isinstance(arguments, list)
    assert isinstance(environ, dict)
    ended = command(*arguments, "--print-settings", "--output", "json", **environ)
    assert ended.returncode == 0, ended.stderr
    rows = {one["name"]: one["value"] for one in json.loads(ended.stdout)}
    assert {name: rows[name] for name in manifest["means"]} == manifest["means"]
    assert "canary" not in ended.stdout + ended.stderr


@pytest.mark.parametrize("manifest", PUBLISHED, ids=lambda one: one["name"])
def test_what_a_published_manifest_asks_for_in_vain_is_told(manifest: dict[str, object]) -> None:
    arguments = manifest["args"]
    assert isinstance(arguments, list)
    context = command_line.make_context("gpu-pruner", list(arguments[1:]), resilient_parsing=True)
    environ = manifest["env"]
    assert isinstance(environ, dict)
    told = list(without_effect(context.params, environ))
    assert {one.split(" has no effect")[0] for one in told} == set(manifest["without_effect"])


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("info", logging.INFO),
        ("debug", logging.DEBUG),
        ("hyper=error,warn", logging.WARNING),
        ("gpu_pruner=trace", logging.INFO),
        ("", logging.INFO),
        ("loud", logging.INFO),
    ],
)
def test_its_log_level_is_read(text: str, level: int) -> None:
    assert log_level({"RUST_LOG": text}, logging.INFO) == level


def test_an_unknown_letter_enables_nothing() -> None:
    result = CliRunner().invoke(command_line, [*URL, "-e", "D", "--print-settings"])
    assert result.exit_code == 2
    assert "unknown resource letter 'D'" in result.output

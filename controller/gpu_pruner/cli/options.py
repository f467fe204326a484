"""The flags that several commands share, and how they become settings.

Names, letters and units are the Rust tool's where it has the flag: `-t` counts minutes, `-c`, `-g`
and `--ack-grace-period` count seconds; a unit may be written everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.durations import parse_duration
from gpu_pruner.settings.loading import load_settings
from gpu_pruner.settings.schema import ProfileName, Settings, kinds_from_letters

F = TypeVar("F", bound=Callable[..., object])


def _minutes(text: str) -> float:
    return _duration(text, "m")


def _seconds(text: str) -> float:
    return _duration(text, "s")


def _duration(text: str, bare_unit: str) -> float:
    try:
        return parse_duration(text, bare_unit=bare_unit)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from error


def _letters(text: str) -> frozenset[str]:
    try:
        return kinds_from_letters(text)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from error


_KUBERNETES = (
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="YAML file with settings, by their names in the reference. Flags win over it.",
    ),
    click.option("--kubeconfig", type=click.Path(path_type=Path), help="Path of a kubeconfig."),
    click.option("--context", "kube_context", help="Context of the kubeconfig."),
)

_TELEMETRY = (
    click.option("--prometheus-url", help="Base URL of Prometheus."),
    click.option(
        "--prometheus-token",
        envvar="PROMETHEUS_TOKEN",
        show_envvar=True,
        help="Bearer token; better given by its variable or a file than on the command line.",
    ),
    click.option(
        "--prometheus-token-file",
        type=click.Path(path_type=Path),
        help="File with the bearer token; read again when it changes.",
    ),
    click.option(
        "--prometheus-tls-cert",
        type=click.Path(path_type=Path),
        help="CA bundle (PEM) that signed Prometheus' certificate.",
    ),
    click.option(
        "--prometheus-tls-mode",
        type=click.Choice(["verify", "skip"]),
        help="Whether to check Prometheus' certificate.",
    ),
    click.option(
        "--prometheus-header",
        multiple=True,
        metavar="NAME=VALUE",
        help="Extra header, for example X-Scope-OrgID=team-a. VALUE @FILE reads it from a file.",
    ),
    click.option(
        "--honor-labels/--no-honor-labels",
        default=None,
        help="Whether the workload is in pod/namespace; found out by asking where not given.",
    ),
    click.option(
        "--prometheus-cluster",
        metavar="NAME",
        help="This cluster's value of the cluster label, where Prometheus holds several clusters.",
    ),
    click.option(
        "--prometheus-cluster-label",
        metavar="LABEL",
        help="Label that tells clusters apart; `cluster` where not given.",
    ),
    click.option(
        "--profile",
        "profiles",
        multiple=True,
        type=click.Choice([one.value for one in ProfileName]),
        help="Family of exporters to read, dcgm where not given; repeatable.",
    ),
    click.option(
        "--node-label",
        metavar="LABEL",
        help="Label with the node's name, where relabelling renamed Hostname.",
    ),
    click.option(
        "--exporter",
        multiple=True,
        metavar="URL",
        help="DCGM exporter to scrape directly, for clusters without Prometheus; repeatable.",
    ),
    click.option(
        "--scrape-interval",
        type=_seconds,
        metavar="SECONDS",
        help="Time between two direct scrapes, seconds; 30 by default.",
    ),
)

_DECIDING = (
    click.option(
        "-r",
        "--run-mode",
        type=click.Choice(["dry-run", "scale-down"]),
        help="dry-run (default) only says what it would do.",
    ),
    click.option(
        "-t",
        "--duration",
        type=_minutes,
        metavar="MINUTES",
        help="Judged window, minutes; 35 by default.",
    ),
    click.option(
        "-g",
        "--grace-period",
        type=_seconds,
        metavar="SECONDS",
        help="Added to the window for a pod's age, seconds; 300 by default.",
    ),
    click.option(
        "-c",
        "--check-interval",
        type=_seconds,
        metavar="SECONDS",
        help="Time between two cycles, seconds; 60 by default.",
    ),
    click.option(
        "--ack-grace-period",
        type=_seconds,
        metavar="SECONDS",
        help="Warning to pause, seconds; 900 by default.",
    ),
    click.option(
        "-e",
        "--enabled-resources",
        type=_letters,
        metavar="LETTERS",
        help="Kinds that may be paused: d Deployment, r ReplicaSet, s StatefulSet, "
        "i InferenceService, n Notebook, l LeaderWorkerSet. All by default.",
    ),
    click.option(
        "--idle-threshold",
        type=float,
        help="Engine activity ratio at which work begins; 0.01 by default.",
    ),
)

_LEASE = (
    click.option(
        "--lease-name", help="Name of the Lease that replicas compete for; gpu-pruner by default."
    ),
    click.option(
        "--lease-namespace",
        help="Its namespace: by default our own, and gpu-pruner-system outside a cluster.",
    ),
    click.option(
        "--lease-identity", metavar="NAME", help="Name of this replica; the host's by default."
    ),
    click.option(
        "--lease-duration",
        type=_seconds,
        metavar="SECONDS",
        help="How long to wait for a leader that is not heard of, seconds; 15 by default.",
    ),
    click.option(
        "--lease-renew-deadline",
        type=_seconds,
        metavar="SECONDS",
        help="How long a leader acts on without a renewal, seconds; 10 by default.",
    ),
    click.option(
        "--lease-retry",
        type=_seconds,
        metavar="SECONDS",
        help="Time between two renewals, seconds; 2 by default.",
    ),
)

_SERVING = (
    click.option("--listen-address", help="Address of the HTTP listener; 0.0.0.0 by default."),
    click.option(
        "--listen-port",
        type=int,
        help="Port of the HTTP listener; 0 takes a free one; 8080 by default.",
    ),
)

_LOGGING = (
    click.option(
        "-l",
        "--log-format",
        type=click.Choice(["default", "json", "pretty"]),
        default="default",
        help="How log lines are written, on standard error.",
    ),
)


def _with(options: tuple[Callable[[F], F], ...], command: F) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def kubernetes_options(command: F) -> F:
    """Add the flags that say how to reach the API server."""
    return _with(_KUBERNETES + _LOGGING, command)


def controller_options(command: F) -> F:
    """Add every flag of a command that decides."""
    return _with(_TELEMETRY + _DECIDING + _LEASE + _KUBERNETES + _LOGGING, command)


def serving_options(command: F) -> F:
    """Add the flags of a command that listens."""
    return _with(_SERVING, command)


_FLAGS = {
    "window_seconds": "-t/--duration",
    "settle_seconds": "-g/--grace-period",
    "cycle_seconds": "-c/--check-interval",
    "notice_seconds": "--ack-grace-period",
    "idle_threshold": "--idle-threshold",
    "listen_port": "--listen-port",
    "lease.namespace": "--lease-namespace",
    "lease.name": "--lease-name",
    "lease.identity": "--lease-identity",
    "lease.duration_seconds": "--lease-duration",
    "lease.renew_deadline_seconds": "--lease-renew-deadline",
    "lease.retry_seconds": "--lease-retry",
    "prometheus.url": "--prometheus-url",
    "prometheus.token": "--prometheus-token",
    "prometheus.headers": "--prometheus-header",
    "prometheus.cluster_label": "--prometheus-cluster-label",
    "prometheus.cluster": "--prometheus-cluster",
    "prometheus.node_label": "--node-label",
    "scrape.node_label": "--node-label",
    "scrape.exporters": "--exporter",
    "scrape.interval_seconds": "--scrape-interval",
}
"""Where a person wrote the value of a setting."""


def settings_from_flags(flags: dict[str, object]) -> Settings:
    """Turn flags into settings, with the flag's name in every error."""
    if flags.get("prometheus_url") and flags.get("exporter"):
        raise ConfigurationError("give --prometheus-url or --exporter, not both")
    try:
        return _settings(flags)
    except ConfigurationError as error:
        raise ConfigurationError("\n".join(map(_with_flag, str(error).splitlines()))) from None


def _with_flag(line: str) -> str:
    path, separator, message = line.partition(": ")
    flag = next((flag for key, flag in _FLAGS.items() if path.startswith(key)), "")
    return f"{flag} ({path}){separator}{message}" if flag else line


def _settings(flags: dict[str, object]) -> Settings:
    """Turn flags into settings.

    Args:
        flags: click's parameters by name; None means not given.

    Raises:
        ConfigurationError: every wrong value, one line each.
    """
    telemetry = {
        "profiles": flags.get("profiles") or None,
        "node_label": flags.get("node_label"),
    }
    return load_settings(
        {
            "mode": flags.get("run_mode"),
            "window_seconds": flags.get("duration"),
            "settle_seconds": flags.get("grace_period"),
            "cycle_seconds": flags.get("check_interval"),
            "notice_seconds": flags.get("ack_grace_period"),
            "enabled_kinds": flags.get("enabled_resources"),
            "idle_threshold": flags.get("idle_threshold"),
            "prometheus": _prometheus(flags, telemetry),
            "scrape": {
                **telemetry,
                "exporters": flags.get("exporter") or None,
                "interval_seconds": flags.get("scrape_interval"),
            },
            "kubernetes": {
                "kubeconfig": _readable(flags.get("kubeconfig"), "--kubeconfig"),
                "context": flags.get("kube_context"),
            },
            "lease": {
                "name": flags.get("lease_name"),
                "namespace": flags.get("lease_namespace"),
                "identity": flags.get("lease_identity"),
                "duration_seconds": flags.get("lease_duration"),
                "renew_deadline_seconds": flags.get("lease_renew_deadline"),
                "retry_seconds": flags.get("lease_retry"),
            },
            "listen_address": flags.get("listen_address"),
            "listen_port": flags.get("listen_port"),
        },
        file=_readable(flags.get("config"), "--config"),
    )


def _prometheus(flags: dict[str, object], telemetry: dict[str, object]) -> dict[str, object] | None:
    """Return the section ``prometheus``; None where no URL was given."""
    url = flags.get("prometheus_url")
    if not url:
        return None
    return {
        **telemetry,
        "url": url,
        "token": flags.get("prometheus_token"),
        "token_file": _readable(flags.get("prometheus_token_file"), "--prometheus-token-file"),
        "ca_file": _readable(flags.get("prometheus_tls_cert"), "--prometheus-tls-cert"),
        "tls_verify": _not_skip(flags.get("prometheus_tls_mode")),
        "headers": _headers(flags.get("prometheus_header")),
        "honor_labels": flags.get("honor_labels"),
        "cluster": flags.get("prometheus_cluster"),
        "cluster_label": flags.get("prometheus_cluster_label"),
    }


def _not_skip(mode: object) -> bool | None:
    return None if mode is None else mode != "skip"


def _readable(path: object, flag: str) -> Path | None:
    if path is None:
        return None
    if not isinstance(path, Path) or not path.is_file() or not os.access(path, os.R_OK):
        raise ConfigurationError(f"{path} is not a readable file", path=flag)
    return path


def _headers(pairs: object) -> dict[str, str] | None:
    if not isinstance(pairs, tuple) or not pairs:
        return None
    headers: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = str(pair).partition("=")
        if not separator or not name.strip():
            raise ConfigurationError("is not NAME=VALUE", path="--prometheus-header")
        if value.startswith("@"):
            value = _content(Path(value[1:]), "--prometheus-header")
        headers[name.strip()] = value
    return headers


def _content(path: Path, flag: str) -> str:
    _readable(path, flag)
    try:
        return path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text", path=flag) from None

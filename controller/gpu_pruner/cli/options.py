"""The flags that several commands share.

Names, letters and units are the Rust tool's where it has the flag: `-t` counts minutes, `-c`, `-g`
and `--ack-grace-period` count seconds; a unit may be written everywhere. `cli.given` turns what was
given into settings; `cli.rust_flags` has the flags that we take for its sake.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from gpu_pruner.cli.given import settings_from_flags
from gpu_pruner.cli.rust_flags import RUST_FLAGS
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.durations import parse_duration
from gpu_pruner.settings.environment import CONFIG
from gpu_pruner.settings.platforms import Platform
from gpu_pruner.settings.schema import ProfileName, kinds_from_letters

__all__ = [
    "config_options",
    "controller_options",
    "history_options",
    "kubernetes_options",
    "printing_options",
    "serving_options",
    "settings_from_flags",
]

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
        envvar=CONFIG,
        help="YAML file with settings, by their names in the reference. Variables and flags win "
        "over it.",
    ),
    click.option("--kubeconfig", type=click.Path(path_type=Path), help="Path of a kubeconfig."),
    click.option("--context", "kube_context", help="Context of the kubeconfig."),
)

_TELEMETRY = (
    click.option("--prometheus-url", help="Base URL of Prometheus."),
    click.option(
        "--prometheus-token",
        help="Bearer token; better given by a file, or by the variable PROMETHEUS_TOKEN.",
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
        "--preset",
        type=click.Choice([one.value for one in Platform]),
        help="Values that are the same on every cluster of this make.",
    ),
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
    click.option(
        "-n",
        "--namespace",
        metavar="REGEX",
        help="Namespaces whose workloads may be paused, as an expression of the whole name.",
    ),
    click.option(
        "-m",
        "--model-name",
        metavar="REGEX",
        help="GPU models whose workloads may be paused, as an expression of the whole name.",
    ),
    click.option(
        "--power-threshold",
        type=float,
        metavar="WATTS",
        help="Power above which a GPU is at work, whatever else it says.",
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


_PRINTING = (
    click.option(
        "--print-settings",
        is_flag=True,
        help="Print every setting with where it comes from, and do nothing else.",
    ),
)


def _with(options: tuple[Callable[[F], F], ...], command: F) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def config_options(command: F) -> F:
    """Add the flags of a command that only needs the settings file."""
    return _with(_KUBERNETES[:1] + _LOGGING, command)


def history_options(command: F) -> F:
    """Add the flags of a command that reads telemetry, and decides by the settings file."""
    return _with(_TELEMETRY + _KUBERNETES[:1] + _LOGGING, command)


def kubernetes_options(command: F) -> F:
    """Add the flags that say how to reach the API server."""
    return _with(_KUBERNETES + _LOGGING, command)


def controller_options(command: F) -> F:
    """Add every flag of a command that decides."""
    options = _TELEMETRY + _DECIDING + _LEASE + _KUBERNETES + RUST_FLAGS + _LOGGING
    return _with(options, command)


def printing_options(command: F) -> F:
    """Add the flags of a command that can print its settings."""
    return _with(_PRINTING, command)


def serving_options(command: F) -> F:
    """Add the flags of a command that listens."""
    return _with(_SERVING, command)

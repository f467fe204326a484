"""What was given on the command line, as settings with their places.

Lays flags over the environment over the settings file, and tells every error at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import structlog

from gpu_pruner.cli.rust_flags import without_effect
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.document import Document, Keys, read_document
from gpu_pruner.settings.environment import layer_of_environment, layer_of_names
from gpu_pruner.settings.layers import Layer, Origin, Place, Written
from gpu_pruner.settings.loading import Loaded, load
from gpu_pruner.settings.problems import Problem
from gpu_pruner.settings.schema import Settings

_log = structlog.get_logger(__name__)

FLAGS: Mapping[str, tuple[str, Keys]] = {
    "preset": ("--preset", ("preset",)),
    "run_mode": ("-r/--run-mode", ("mode",)),
    "duration": ("-t/--duration", ("window_seconds",)),
    "grace_period": ("-g/--grace-period", ("settle_seconds",)),
    "check_interval": ("-c/--check-interval", ("cycle_seconds",)),
    "ack_grace_period": ("--ack-grace-period", ("notice_seconds",)),
    "enabled_resources": ("-e/--enabled-resources", ("enabled_kinds",)),
    "idle_threshold": ("--idle-threshold", ("idle_threshold",)),
    "namespace": ("-n/--namespace", ("namespaces",)),
    "model_name": ("-m/--model-name", ("models",)),
    "power_threshold": ("--power-threshold", ("power_threshold_watts",)),
    "prometheus_url": ("--prometheus-url", ("prometheus", "url")),
    "prometheus_token": ("--prometheus-token", ("prometheus", "token")),
    "prometheus_token_file": ("--prometheus-token-file", ("prometheus", "token_file")),
    "prometheus_tls_cert": ("--prometheus-tls-cert", ("prometheus", "ca_file")),
    "honor_labels": ("--honor-labels", ("prometheus", "honor_labels")),
    "prometheus_cluster": ("--prometheus-cluster", ("prometheus", "cluster")),
    "prometheus_cluster_label": ("--prometheus-cluster-label", ("prometheus", "cluster_label")),
    "exporter": ("--exporter", ("scrape", "exporters")),
    "scrape_interval": ("--scrape-interval", ("scrape", "interval_seconds")),
    "kubeconfig": ("--kubeconfig", ("kubernetes", "kubeconfig")),
    "kube_context": ("--context", ("kubernetes", "context")),
    "lease_name": ("--lease-name", ("lease", "name")),
    "lease_namespace": ("--lease-namespace", ("lease", "namespace")),
    "lease_identity": ("--lease-identity", ("lease", "identity")),
    "lease_duration": ("--lease-duration", ("lease", "duration_seconds")),
    "lease_renew_deadline": ("--lease-renew-deadline", ("lease", "renew_deadline_seconds")),
    "lease_retry": ("--lease-retry", ("lease", "retry_seconds")),
    "listen_address": ("--listen-address", ("listen_address",)),
    "listen_port": ("--listen-port", ("listen_port",)),
}
"""Parameter to the flag as one writes it, and to its setting."""

_BOTH_SOURCES: Mapping[str, tuple[str, str]] = {
    "profiles": ("--profile", "profiles"),
    "node_label": ("--node-label", "node_label"),
}
"""Flags for both telemetry sources: parameter to flag and name within the section."""


def settings_from_flags(flags: Mapping[str, object]) -> Settings:
    """Return the settings that hold, from flags, variables and the file.

    Args:
        flags: click's parameters by name; None means not given.

    Raises:
        ConfigurationError: everything that is wrong, one line each with its place.
    """
    return loaded_from_flags(flags).settings


def loaded_from_flags(flags: Mapping[str, object]) -> Loaded:
    """Return the settings that hold, and where each was written.

    Raises:
        ConfigurationError: as `settings_from_flags`.
    """
    config = flags.get("config")
    document = read_document(config) if isinstance(config, Path) else None
    return loaded_with(document, flags)


def loaded_with(document: Document | None, flags: Mapping[str, object]) -> Loaded:
    """Return the settings that hold with this file.

    Raises:
        ConfigurationError: as `settings_from_flags`.
    """
    variables, problems = layer_of_environment(os.environ)
    given, wrong = layer_of_flags(flags)
    layers = [variables, given]
    return load(layers, document=document, problems=[*problems, *wrong], files_must_exist=True)


def tell_without_effect(flags: Mapping[str, object]) -> None:
    """Log everything that was given and does nothing here."""
    for sentence in without_effect(flags, os.environ):
        _log.warning("given without effect", what=sentence)


def layer_of_flags(flags: Mapping[str, object]) -> tuple[Layer, list[Problem]]:
    """Return what the flags say, and what is wrong with them."""
    problems: list[Problem] = []
    found: dict[Keys, Written] = dict(_listener(flags.get("metrics_addr"), problems))
    for name, (flag, keys) in FLAGS.items():
        value = flags.get(name)
        if value is not None and value != ():
            found[keys] = Written(value, Place(Origin.FLAG, flag))
    for name, (flag, key) in _BOTH_SOURCES.items():
        if flags.get(name):
            written = Written(flags[name], Place(Origin.FLAG, flag, for_all=True))
            found |= {("prometheus", key): written, ("scrape", key): written}
    if flags.get("prometheus_tls_mode") is not None:
        verify = flags["prometheus_tls_mode"] != "skip"
        place = Place(Origin.FLAG, "--prometheus-tls-mode")
        found["prometheus", "tls_verify"] = Written(verify, place)
    found |= dict(_headers(flags.get("prometheus_header"), problems))
    found |= _mentions(flags.get("slack_namespace_mentions"), problems)
    return found, problems


def _listener(address: object, problems: list[Problem]) -> Iterator[tuple[Keys, Written]]:
    if not isinstance(address, str):
        return
    place = Place(Origin.FLAG, "--metrics-addr")
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdecimal():
        problems.append(Problem(place.text, "", "is not ADDRESS:PORT"))
        return
    yield ("listen_port",), Written(int(port), place)
    if host:
        yield ("listen_address",), Written(host.strip("[]"), place)


def _mentions(text: object, problems: list[Problem]) -> Layer:
    place = Place(Origin.FLAG, "--slack-namespace-mentions")
    if not isinstance(text, str) or not text.strip():
        return {}
    try:
        return layer_of_names(text, ("audience", "namespaces"), place)
    except ConfigurationError as error:
        problems.append(Problem(place.text, "", str(error)))
        return {}


def _headers(pairs: object, problems: list[Problem]) -> Iterator[tuple[Keys, Written]]:
    flag = "--prometheus-header"
    for pair in pairs if isinstance(pairs, tuple) else ():
        name, separator, value = str(pair).partition("=")
        if not separator or not name.strip():
            problems.append(Problem(flag, "", "is not NAME=VALUE"))
            continue
        if value.startswith("@"):
            try:
                value = _content(Path(value[1:]))
            except ConfigurationError as error:
                problems.append(Problem(flag, "", str(error)))
                continue
        yield ("prometheus", "headers", name.strip()), Written(value, Place(Origin.FLAG, flag))


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        raise ConfigurationError(f"{path} is not a readable file") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text") from None

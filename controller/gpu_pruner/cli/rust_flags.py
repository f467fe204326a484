"""Flags and variables of the Rust tool that are taken so that its manifests start unchanged.

They have no setting, because what they set up there does not exist here. Whoever gives one is told
so, with what is done instead: a flag that is silently ignored would be believed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import click

_LEVELS: Mapping[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL,
}

RUST_FLAGS = (
    click.option(
        "--metrics-addr",
        metavar="ADDRESS:PORT",
        help="The HTTP listener: as --listen-address and --listen-port, which win over it.",
    ),
    click.option(
        "--slack-webhook-url",
        metavar="URL",
        help="No effect: Slack is no channel of warnings yet. See `channels`, `report.webhook`.",
    ),
    click.option("--slack-channel", metavar="NAME", help="No effect, as Slack is no channel yet."),
    click.option(
        "--slack-interaction-port",
        type=int,
        metavar="PORT",
        help="No effect, as Slack is no channel yet.",
    ),
    click.option(
        "--slack-namespace-mentions",
        metavar="JSON",
        help="The setting audience.namespaces: namespace to whom to tell.",
    ),
    click.option(
        "--cluster",
        "clusters",
        multiple=True,
        metavar="NAME=URL",
        help="No effect: this controller asks for its own cluster only.",
    ),
    click.option(
        "--honor-labels-clusters",
        metavar="NAMES",
        help="No effect: this controller asks for its own cluster only.",
    ),
)
"""Options that name no setting of ours by its own name."""

_SLACK = "Slack is no channel for warnings yet; see channels and report.webhook in the settings"
_ONE_CLUSTER = "this controller shows its own cluster only"

WITHOUT_EFFECT: Mapping[str, tuple[str, str]] = {
    "slack_webhook_url": ("--slack-webhook-url", _SLACK),
    "slack_channel": ("--slack-channel", _SLACK),
    "slack_interaction_port": ("--slack-interaction-port", _SLACK),
    "clusters": ("--cluster", _ONE_CLUSTER),
    "honor_labels_clusters": ("--honor-labels-clusters", _ONE_CLUSTER),
}
"""Parameter to the flag, and why it has no effect."""

VARIABLES_WITHOUT_EFFECT: Mapping[str, str] = {
    "SLACK_WEBHOOK_URL": _SLACK,
    "GPU_PRUNER_WEB_DIST": "there is no dashboard to serve yet",
}
"""Variable to why it has no effect."""


def without_effect(flags: Mapping[str, object], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence for everything that was given and does nothing."""
    for name, (flag, why) in WITHOUT_EFFECT.items():
        if flags.get(name) not in (None, ()):
            yield f"{flag} has no effect: {why}"
    for name, why in VARIABLES_WITHOUT_EFFECT.items():
        if environ.get(name):
            yield f"{name} has no effect: {why}"


def log_level(environ: Mapping[str, str], default: int) -> int:
    """Return the level that RUST_LOG asks for, of its part that names no module; else the default.

    Args:
        environ: the environment variables.
        default: where nothing, or nothing that we know, is asked for.
    """
    words = (one.strip().lower() for one in environ.get("RUST_LOG", "").split(","))
    return next((_LEVELS[one] for one in words if one in _LEVELS), default)

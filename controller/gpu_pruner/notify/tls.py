"""What proves to us who a server is: the system's authorities, or a CA bundle of the settings."""

from __future__ import annotations

import ssl
from pathlib import Path

from gpu_pruner.errors import ConfigurationError


def client_context(ca_file: Path | None, *, channel: str) -> ssl.SSLContext:
    """Return how a channel checks its server; names and dates are always checked.

    Raises:
        ConfigurationError: the CA bundle cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        message = f"channel {channel}: {ca_file} cannot be used as a CA bundle"
        raise ConfigurationError(message, path="channels") from error

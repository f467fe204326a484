"""Credentials for a Prometheus-compatible server, applied anew to each request.

A token file is read again when it changes: projected ServiceAccount tokens rotate. Nothing here
ever puts a secret into a message or a log.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from requests import PreparedRequest
from requests.auth import HTTPBasicAuth

from gpu_pruner.errors import PrometheusError
from gpu_pruner.settings.credentials import header_text
from gpu_pruner.settings.schema import PrometheusSettings

Auth: TypeAlias = Callable[[PreparedRequest], PreparedRequest]
"""Adds credentials to a request, as `requests` calls it for each one."""

_Version: TypeAlias = tuple[int, int, int]
"""inode, modification time in nanoseconds, size: a new one means a new token."""


def no_auth(request: PreparedRequest) -> PreparedRequest:
    """Add nothing. Its presence keeps requests from looking into a ``.netrc``."""
    return request


class Bearer:
    """``Authorization: Bearer``, from a fixed token or from a file."""

    def __init__(self, token: str = "", *, file: Path | None = None) -> None:
        self._token = token
        self._file = file
        self._version: _Version | None = None

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the header.

        Raises:
            PrometheusError: the token file cannot be read, is empty, or holds no token.
        """
        if self._file is not None:
            self._reread(self._file)
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def _reread(self, file: Path) -> None:
        try:
            state = file.stat()
            version = (state.st_ino, state.st_mtime_ns, state.st_size)
            if version == self._version:
                return
            written = file.read_text(encoding="ascii")
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
            raise PrometheusError(
                f"the token file {file} cannot be read: {reason}; check prometheus.token_file"
            ) from error
        try:
            token = header_text(written)
        except ValueError as error:
            raise PrometheusError(
                f"the token file {file} {error}; check prometheus.token_file"
            ) from None
        if not token:
            raise PrometheusError(f"the token file {file} is empty; check prometheus.token_file")
        self._token, self._version = token, version


def auth_for(settings: PrometheusSettings) -> Auth:
    """Return what authenticates requests.

    Args:
        settings: a token file wins over a token, and both over a login.
    """
    if settings.token_file is not None:
        return Bearer(file=settings.token_file)
    if settings.token is not None:
        return Bearer(settings.token.get_secret_value())
    if settings.login is not None:
        user, _, password = settings.login.get_secret_value().partition(":")
        # Bytes: the library encodes text itself, and stumbles over what is not Latin-1.
        return HTTPBasicAuth(unquote(user).encode(), unquote(password).encode())
    return no_auth

"""The exporters that are scraped directly: where they are, and fetching their pages.

``dns+http://name:port/path`` stands for every address that the name has at the time of a round: a
headless Service in front of a DaemonSet. Failures are `ObservationError`s that name the exporter by
host and port. Called by `observe.scrape` only.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import SecretStr
from tornado.httpclient import HTTPClientError
from tornado.httputil import HTTPInputError
from tornado.iostream import StreamClosedError
from tornado.simple_httpclient import (
    HTTPStreamClosedError,
    HTTPTimeoutError,
    SimpleAsyncHTTPClient,
)

from gpu_pruner.errors import ObservationError
from gpu_pruner.model.foreign import quoted
from gpu_pruner.model.units import Seconds
from gpu_pruner.settings.addresses import DNS

MOST_AT_ONCE = 32
"""Exporters fetched at the same time."""

LARGEST_PAGE = 16 * 2**20
"""Bytes. An exporter of eight GPUs sends about 50 kB."""

CONNECT_SECONDS: Seconds = 3.0
"""Longest wait for a connection; real seconds."""

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """One address to scrape."""

    name: str
    """host:port, for people and as the series' origin."""
    url: str
    login: SecretStr | None = field(default=None, compare=False)
    """user:password for basic authentication, written as in a URL."""


async def expand(url: str, login: SecretStr | None = None) -> tuple[Target, ...]:
    """Return the targets that one configured URL stands for now, sorted.

    Args:
        url: ``http://…``, or ``dns+http://…`` for every address of the name.
        login: what all of them ask for.

    Raises:
        ObservationError: the name does not resolve.
    """
    parts = urlsplit(url.removeprefix(DNS))
    host, port = parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]
    if not url.startswith(DNS):
        return (Target(f"{host}:{port}", parts.geturl(), login),)
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ObservationError(f"exporter {host}:{port}: the name does not resolve") from error
    places = {_place(str(address[0]), port) for *_, address in found}
    return tuple(Target(place, _url(place, parts), login) for place in sorted(places))


def _place(address: str, port: int) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{port}"


def _url(place: str, parts: SplitResult) -> str:
    return parts._replace(netloc=place).geturl()


class Fetcher:
    """Fetches pages, a bounded number at a time. Each wait and each page is bounded too."""

    def __init__(self, timeout_seconds: Seconds) -> None:
        """Make a fetcher.

        Args:
            timeout_seconds: longest wait for one page; real seconds.
        """
        self._timeout = timeout_seconds
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)
        self._client = SimpleAsyncHTTPClient(
            force_instance=True, max_clients=MOST_AT_ONCE, max_body_size=LARGEST_PAGE
        )

    async def page(self, target: Target) -> str:
        """Return an exporter's page.

        Raises:
            ObservationError: there is none, with the reason.
        """
        user, password = _login(target)
        try:
            async with self._turns:
                response = await self._client.fetch(
                    target.url,
                    auth_username=user,
                    auth_password=password,
                    connect_timeout=min(CONNECT_SECONDS, self._timeout),
                    request_timeout=self._timeout,
                    follow_redirects=False,
                    decompress_response=False,
                    user_agent="gpu-pruner",
                )
        except (HTTPClientError, HTTPInputError, StreamClosedError, OSError) as error:
            raise ObservationError(f"exporter {target.name}: {self._failure(error)}") from error
        except ValueError:
            # An address or a password that cannot be sent; the words of the error may hold it.
            raise ObservationError(
                f"exporter {target.name}: cannot be asked; check its URL in scrape.exporters"
            ) from None
        return response.body.decode("utf-8", errors="replace")

    def close(self) -> None:
        """Release connections."""
        self._client.close()

    def _failure(self, error: Exception) -> str:
        match error:
            case HTTPTimeoutError():
                return f"no answer within {self._timeout:g} s"
            case HTTPStreamClosedError():
                return f"broke off, or sent more than {LARGEST_PAGE >> 20} MiB"
            case HTTPClientError():
                return f"HTTP {error.code} instead of a page of metrics"
            case ConnectionRefusedError():
                return "refuses connections"
            case OSError() if error.strerror:
                return quoted(error.strerror)
            case _:
                return quoted(str(error)) or type(error).__name__


def _login(target: Target) -> tuple[str | None, str | None]:
    if target.login is None:
        return None, None
    user, _, password = target.login.get_secret_value().partition(":")
    return unquote(user), unquote(password)

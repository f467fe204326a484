"""URLs as people write them: checked when settings are read, with the password taken out.

A wrong URL is told by what is wrong with it; what may belong to a password is never repeated.
Nothing here resolves a name or opens a connection. `settings.schema` is the only caller.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from gpu_pruner.model.foreign import quoted

DNS = "dns+"
"""Begins the URL of every address behind a name."""

_SCHEMES = ("http://", "https://")
_LONGEST = 80
_AT = "has an @ where none may be; in a user name or password write @ as %40 and / as %2F"


def split_login(url: str) -> tuple[str, str]:
    """Return a URL without its ``user:password@``, and those, as they were written.

    >>> split_login("http://admin:s3cret@prom:9090/a")
    ('http://prom:9090/a', 'admin:s3cret')
    """
    scheme, separator, rest = url.partition("://")
    authority = rest[: min((rest + mark).index(mark) for mark in "/?#")]
    login, at, _ = authority.rpartition("@")
    return (f"{scheme}{separator}{rest[len(login) + len(at) :]}", login)


def _server(url: str) -> str:
    """Check the base URL of a server."""
    _check(url, url, _SCHEMES)
    if "?" in url or "#" in url:
        message = f"{_shown(url)} must end before the ? or #"
        raise ValueError(message)
    return url.rstrip("/")


def _exporter(url: str) -> str:
    """Check the URL of a page, or of the pages behind a name."""
    _check(url, url.removeprefix(DNS), _SCHEMES)
    return url


ServerAddress = Annotated[str, AfterValidator(_server)]
"""``http://host:port/prefix``, without a slash at its end."""

ExporterAddress = Annotated[str, AfterValidator(_exporter)]
"""``http://host:port/path``, or the same behind ``dns+``."""


def _hook(url: str) -> str:
    """Check a URL that messages are posted to."""
    _check(url, url, _SCHEMES)
    if "#" in url:
        message = f"{_shown(url)} must end before the #"
        raise ValueError(message)
    if url.startswith("http://") and not is_loopback(url):
        message = f"{_shown(url)} must begin with https://, or be at a loopback address"
        raise ValueError(message)
    return url


HookAddress = Annotated[str, AfterValidator(_hook)]
"""``https://host:port/path?query``; http only where the host can be nothing but this machine."""


def is_loopback(url: str) -> bool:
    """Whether the host of a checked URL can be nothing but this machine: no name is resolved."""
    return is_this_machine(urlsplit(url).hostname or "")


def is_this_machine(host: str) -> bool:
    """Whether a host, by its name or address alone, can be nothing but this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check(written: str, url: str, schemes: tuple[str, ...]) -> None:
    problem = _problem(url, schemes)
    if problem:
        message = f"{_shown(written)} {problem}"
        raise ValueError(message)


def _problem(url: str, schemes: tuple[str, ...]) -> str:
    """Return what is wrong with a URL, or nothing."""
    if not url.startswith(schemes):
        return f"is not a URL; it must begin with {' or '.join(schemes)}"
    if not url.isprintable() or " " in url:
        return "has a blank or an unprintable character in it"
    if "@" in url:
        return _AT
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:
        return "has no valid host and port; the port is a number from 1 to 65535"
    if not host:
        return "names no host"
    return "" if port != 0 else "has port 0, at which nothing can be reached"


def _shown(url: str) -> str:
    """Return as much of a URL as cannot be a secret: from the last @ on, up to a query."""
    before, at, rest = url.rpartition("@")
    rest = re.split("[?#]", rest, maxsplit=1)[0]
    return repr(quoted(f"{'…' if before or at else ''}{at}{rest}")[:_LONGEST])

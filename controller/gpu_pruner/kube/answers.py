"""What the API server's answers mean, as our errors.

Turns statuses, bodies and transport failures into `errors.ClusterError` with a sentence that
names the thing and the fix. It never sends anything, and nothing that it writes contains a token,
a URL with credentials or more than 256 characters of a body. Only `kube` calls it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp
import msgspec

from gpu_pruner.errors import ClusterError, Conflict, Forbidden, Gone, NotFound, Throttled
from gpu_pruner.kube.wire import Status
from gpu_pruner.model.foreign import NOTHING_SENT, Sent, quoted
from gpu_pruner.model.units import Seconds

_LOGIN = "; is that the address of a login page instead of the API server?"


def place(url: str) -> str:
    """Return scheme, host and port of a URL, without credentials, path and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if not parts.netloc:
        return quoted(url.rpartition("@")[2])
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def unsendable(address: str) -> ClusterError:
    """Return the error for a request that no HTTP library would send.

    Args:
        address: of the API server, as `place` shows it.
    """
    return ClusterError(
        f"The Kubernetes API at {address} cannot be asked: its address or our token has a part "
        "that no request can carry; check server and user in the kubeconfig"
    )


def refusal(
    status: int,
    body: bytes,
    headers: Mapping[str, str],
    *,
    asked: str,
    sent: Sent = NOTHING_SENT,
) -> ClusterError:
    """Return the error that an answer with a status of 300 or more stands for.

    Args:
        status: HTTP status.
        body: begin of the body; a ``Status`` object where it came from an API server.
        headers: of the answer; ``Retry-After`` and ``Content-Type`` are read.
        asked: what was asked, for example ``GET /api/v1/pods``.
        sent: our credentials, which the server's words may repeat.
    """
    said = _said(body, headers, sent)
    if status == 422 and _is_another_object(body):  # noqa: PLR2004  # HTTP: Unprocessable Content
        return Conflict(f"{asked}: another object has that name now. {said}", status=status)
    if status == 429:  # noqa: PLR2004  # HTTP: Too Many Requests
        wait = retry_after(headers)
        return Throttled(f"{asked}: the API server asks to slow down", retry_after_seconds=wait)
    return error_for(status, said, asked=asked)


def error_for(status: int, said: str, *, asked: str) -> ClusterError:
    """Return the error for a status code from an HTTP answer or from inside a watch.

    Args:
        status: HTTP status.
        said: the server's own words.
        asked: what was asked.
    """
    match status:
        case 401:
            return ClusterError(
                f"{asked}: the API server does not accept our credentials (401); "
                f"renew the token or the kubeconfig. {said}".rstrip(),
                status=status,
            )
        case 403:
            return Forbidden(
                f"{asked}: forbidden (403); are the ClusterRoles of deploy/kustomize/base bound to "
                f"our account? {said}".rstrip(),
                status=status,
            )
        case 404:
            return NotFound(f"{asked}: not found (404). {said}".rstrip(), status=status)
        case 409:
            return Conflict(f"{asked}: conflict (409). {said}".rstrip(), status=status)
        case 410:
            return Gone(f"{asked}: too old (410). {said}".rstrip(), status=status)
        case _:
            return ClusterError(
                f"{asked}: the API server answered {status}. {said}".rstrip(), status=status
            )


def _said(body: bytes, headers: Mapping[str, str], sent: Sent) -> str:
    """Return the server's own words, where it is an API server that speaks."""
    if is_page(headers):
        return f"It sent a web page{_LOGIN}"
    try:
        message = msgspec.json.decode(body, type=Status).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = body.decode("utf-8", "replace")
    return quoted(message or "", sent=sent)


def _is_another_object(body: bytes) -> bool:
    """Return whether a refusal is about the uid: the server's answer to that precondition."""
    try:
        details = msgspec.json.decode(body, type=Status).details
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    causes = (details.causes if details else None) or ()
    return any(one.field == "metadata.uid" for one in causes)


def is_page(headers: Mapping[str, str]) -> bool:
    """Return whether an answer is HTML, which no API server sends."""
    return "html" in headers.get("Content-Type", "").lower()


def page_instead(address: str) -> ClusterError:
    """Return the error for a web page where JSON was expected."""
    return ClusterError(f"{place(address)} answered with a web page{_LOGIN}", status=200)


def redirected(
    address: str, status: int, location: str, *, sent: Sent = NOTHING_SENT
) -> ClusterError:
    """Return the error for a redirect, which would carry our requests and writes elsewhere.

    Args:
        address: of the API server.
        status: HTTP status.
        location: the header; only its host is shown.
        sent: our credentials, which the host may repeat.
    """
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    target = f" to {quoted(host, sent=sent)}" if host else ""
    return ClusterError(
        f"The Kubernetes API at {place(address)} redirects{target} (HTTP {status}): probably to a "
        "login page; set the server in the kubeconfig to the final address",
        status=status,
    )


def unreadable(asked: str, error: Exception, *, sent: Sent = NOTHING_SENT) -> ClusterError:
    """Return the error for a body that is not what the API promises."""
    return ClusterError(f"{asked}: the answer cannot be read: {quoted(str(error), sent=sent)}")


def unreachable(
    address: str, error: Exception, *, waited: Seconds, sent: Sent = NOTHING_SENT
) -> ClusterError:
    """Return the error for a request that got no answer.

    Args:
        address: base URL of the API server; only scheme, host and port are shown.
        error: of the HTTP library.
        waited: the limit that was set for the request, seconds.
        sent: our credentials, which the library may repeat from what the server sent.
    """
    where = f"The Kubernetes API at {place(address)}"
    match error:
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return ClusterError(f"{where} has no address: it must begin with https:// or http://")
        case aiohttp.ClientConnectorCertificateError():
            return ClusterError(
                f"{where} shows a certificate that is not trusted: "
                f"{quoted(str(error), sent=sent)}; set certificate-authority in the kubeconfig"
            )
        case aiohttp.ClientSSLError() | aiohttp.ClientConnectorSSLError():
            return ClusterError(
                f"{where} does not speak TLS as expected: {quoted(str(error), sent=sent)}; "
                "check http or https, and the port"
            )
        case aiohttp.ClientConnectorError():
            return ClusterError(
                f"{where} cannot be reached: {_plain(error)}; "
                "check the address in the kubeconfig, and that it is up"
            )
        case asyncio.TimeoutError():
            return ClusterError(f"{where} gave no answer within {waited:g} s")
        case _:
            said = quoted(str(error) or type(error).__name__, sent=sent)
            return ClusterError(f"{where} broke off: {said}")


def _plain(error: aiohttp.ClientConnectorError) -> str:
    """Return the system's words for a failed connection, without asyncio's around them."""
    number = error.errno
    return os.strerror(number) if number and number > 0 else quoted(error.strerror or str(error))


def retry_after(headers: Mapping[str, str]) -> Seconds:
    """Return how long ``Retry-After`` asks to wait: whole seconds, 1 where it says nothing."""
    text = headers.get("Retry-After", "")
    return float(min(int(text), 300)) if text.isascii() and text.isdigit() else 1.0

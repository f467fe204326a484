"""What a Prometheus-compatible server answers, judged: a complete reply, or an error in words.

Pure: bytes in, typed reply or `ObservationError` out. A partial or warned-about answer is an error
here, because nothing may be concluded from it. Called by `prometheus_transport` only.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TypeAlias

import msgspec

from gpu_pruner.errors import IncompleteData, PrometheusError
from gpu_pruner.model.foreign import NOTHING_SENT, Sent, quoted
from gpu_pruner.observe.backends import TENANCY

INFO_PREFIX = "PromQL info:"
"""How Prometheus 2.5x marks a note that is no warning; from 3.0 on these come as ``infos``."""


class Series(msgspec.Struct, gc=False, frozen=True):
    """One series of an answer: `values` of a range, `value` of an instant query."""

    metric: msgspec.Raw = msgspec.Raw(b"{}")
    """Labels as JSON, decoded only for label sets not seen before."""
    values: msgspec.Raw = msgspec.Raw(b"[]")
    """JSON of (Unix seconds, number as text); `points` reads it. Many series of one answer are the
    same here, byte for byte, so each distinct one is read once."""
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct, gc=False):
    result: list[Series] = []


class Reply(msgspec.Struct, gc=False, rename="camel"):
    """A successful answer."""

    status: str
    data: _Data
    warnings: list[str] = []
    infos: list[str] = []
    is_partial: bool = False
    """VictoriaMetrics: some storage nodes did not answer."""


_Points: TypeAlias = tuple[tuple[float, float], ...]

_PLAIN = msgspec.json.Decoder(_Points, strict=False)
_ANY = msgspec.json.Decoder(tuple[tuple[float, str], ...])


def points(values: msgspec.Raw | bytes) -> _Points:
    """Return the (Unix seconds, value) pairs of a range.

    Args:
        values: as in `Series`.

    Raises:
        PrometheusError: these are no such pairs.
    """
    try:
        return _PLAIN.decode(values)
    except msgspec.DecodeError:
        pass  # JSON has no word for not-a-number and infinity
    try:
        return tuple((at, float(text)) for at, text in _ANY.decode(values))
    except (msgspec.DecodeError, ValueError) as error:
        raise PrometheusError("a series has values that cannot be read") from error


class _Refusal(msgspec.Struct, gc=False, rename="camel"):
    error_type: str = ""
    error: str = ""


class QueryTooLarge(PrometheusError):
    """The question must be cut into smaller ones."""


_REPLY = msgspec.json.Decoder(Reply)
_REFUSAL = msgspec.json.Decoder(_Refusal)

_TOO_LARGE = (
    "too many samples",  # Prometheus: --query.max-samples
    "exceeded maximum resolution",  # Prometheus: 11,000 points per series
    "exceeded series limit",  # Thanos store
    "-search.max",  # VictoriaMetrics: its limits are named in the message
    "err-mimir-max",  # Mimir: per-query limits
)

_WANTS_NAMESPACE = re.compile(rb'namespace\\?" (query )?parameter')
"""A proxy that shows one namespace at a time, and was not told which."""

_WANTS_TENANT = re.compile(rb"no org id|X-Scope-OrgID|missing tenant", re.IGNORECASE)
"""A server of many tenants, which was not told which of them asks."""

_TENANT = (
    "wants to know which tenant asks; set prometheus.headers "
    "(--prometheus-header X-Scope-OrgID=TENANT)"
)

_ADVICE = {
    HTTPStatus.UNAUTHORIZED: "asks for credentials; set prometheus.token_file or prometheus.token",
    HTTPStatus.FORBIDDEN: "does not allow our credentials to query; grant them read access to "
    "metrics (on OpenShift: cluster-monitoring-view)",
    HTTPStatus.NOT_FOUND: "has no query API at this path; prometheus.url must be the part before "
    "/api/v1, with the prefix if there is one (Mimir: /prometheus)",
    HTTPStatus.METHOD_NOT_ALLOWED: "refuses POST; prometheus.url must lead to the query API itself",
    HTTPStatus.TOO_MANY_REQUESTS: "asks us to slow down; raise its query limits or cycle_seconds",
    HTTPStatus.BAD_GATEWAY: "is behind a proxy that cannot reach it; check that it runs",
    HTTPStatus.SERVICE_UNAVAILABLE: "is unavailable; check that it runs and is ready",
    HTTPStatus.GATEWAY_TIMEOUT: "is behind a proxy that gave up waiting; check its load",
}


def read(body: bytes | bytearray, *, server: str, sent: Sent = NOTHING_SENT) -> Reply:
    """Decode the body of an answer with status 200.

    Args:
        body: as received, decompressed.
        server: how to name the server in messages; without credentials.
        sent: our credentials, which the server's words may repeat.

    Returns:
        A complete reply. Its `infos` hold every note that is no warning.

    Raises:
        IncompleteData: the answer is partial, or carries a warning.
        PrometheusError: this is not an answer of a Prometheus API.
    """
    try:
        reply = _REPLY.decode(body)
    except msgspec.DecodeError as error:
        raise PrometheusError(f"{server} {_not_prometheus(bytes(body[:4096]), sent)}") from error
    if reply.status != "success":
        raise PrometheusError(
            f"{server} reports status {quoted(reply.status, sent=sent)!r} with HTTP 200"
        )
    if reply.is_partial:
        raise IncompleteData(
            f"{server} sent a partial answer (isPartial): some of its storage did not answer; "
            "check its storage nodes"
        )
    notes = [text for text in reply.warnings if text.startswith(INFO_PREFIX)]
    warnings = [text for text in reply.warnings if not text.startswith(INFO_PREFIX)]
    if warnings:
        raise IncompleteData(
            f"{server} sent its answer with a warning, so it may be partial: "
            f"{quoted(warnings[0], sent=sent)}"
        )
    reply.infos.extend(notes)
    return reply


def refusal(
    status: int, body: bytes | bytearray, *, server: str, sent: Sent = NOTHING_SENT
) -> PrometheusError:
    """Return the error that a status other than 200 means.

    Args:
        status: HTTP status.
        body: as received; quoted shortened.
        server: how to name the server in messages; without credentials.
        sent: our credentials, which the server's words may repeat.
    """
    try:
        reason = _REFUSAL.decode(body)
    except msgspec.DecodeError:
        reason = _Refusal()
    told = quoted(f"{reason.error_type}: {reason.error}" if reason.error_type else "", sent=sent)
    if any(text in reason.error for text in _TOO_LARGE):
        return QueryTooLarge(f"{server} finds the query too large (HTTP {status}, {told})")
    if reason.error_type == "timeout":
        return QueryTooLarge(f"{server} gave up on the query (HTTP {status}, {told})")
    if status == HTTPStatus.BAD_REQUEST and _WANTS_NAMESPACE.search(body[:4096]):
        return PrometheusError(f"{server} {TENANCY} (HTTP {status})")
    if _is_client_error(status) and _WANTS_TENANT.search(body[:4096]):
        return PrometheusError(f"{server} {_TENANT} (HTTP {status})")
    if status in _ADVICE:
        return PrometheusError(
            f"{server} {_ADVICE[HTTPStatus(status)]} (HTTP {status}{', ' if told else ''}{told})"
        )
    if not told and (text := _text(bytes(body[:4096]), sent)):
        told = text
    detail = f": {told}" if told else "; check prometheus.url"
    return PrometheusError(f"{server} refused the query with HTTP {status}{detail}")


def _is_client_error(status: int) -> bool:
    return HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR


def _not_prometheus(start: bytes, sent: Sent) -> str:
    """Say what a body that is no reply looks like."""
    if not start.strip():
        return "sent an empty body; check that prometheus.url leads to a Prometheus API"
    if start.lstrip()[:1] == b"<":
        return (
            "answered with an HTML page instead of data: probably a login page or a web interface; "
            "check prometheus.url and prometheus.token_file"
        )
    return f"sent something that is not a Prometheus answer: {_text(start, sent)}"


def _text(start: bytes, sent: Sent) -> str:
    return quoted(start.decode("utf-8", errors="replace"), sent=sent)

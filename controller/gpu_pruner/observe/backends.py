"""Which server answers, and what it must be told to answer whole and raw. Pure.

Servers that speak Prometheus' API differ in what they leave out unless told otherwise, and some
refuse parameters that they do not know: each is sent only its own. What cannot be recognised is
sent none, and its warnings are taken seriously like everybody's. Called by `observe.prometheus`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec

from gpu_pruner.model.foreign import NOTHING_SENT, Sent, quoted


class Backend(StrEnum):
    """What kind of server answers."""

    PROMETHEUS = "Prometheus"
    THANOS = "Thanos"
    MIMIR = "Mimir"
    VICTORIA_METRICS = "VictoriaMetrics"
    UNKNOWN = "unknown"


_PARAMETERS: Mapping[Backend, Mapping[str, str]] = {
    # Partial answers are this server's default, and so are samples of a coarser resolution.
    Backend.THANOS: {
        "dedup": "true",
        "partial_response": "false",
        "max_source_resolution": "0s",
    },
    # The cache moves the begin and end of a question; the newest 30 s are hidden with it.
    Backend.VICTORIA_METRICS: {"nocache": "1", "deny_partial_response": "1"},
}

_VICTORIA_HEADER = "X-Server-Hostname"
"""On every answer of VictoriaMetrics, whose build information imitates another server's."""

TENANCY_PORT = 9092
_TENANCY_HOST = "thanos-querier"

TENANCY = (
    "is OpenShift's tenancy port, which shows the series of one namespace by the label namespace; "
    "with honorLabels false that is the exporter's, so a workload's namespace looks empty. Use "
    "port 9091 with a token that may read all metrics (cluster-monitoring-view)"
)


_LONGEST_VERSION = 40


class _Build(msgspec.Struct, gc=False):
    version: str = ""
    application: str = ""


class _Answer(msgspec.Struct, gc=False):
    data: _Build = msgspec.field(default_factory=_Build)


_ANSWER = msgspec.json.Decoder(_Answer)


def recognise(body: bytes | bytearray, headers: Mapping[str, str]) -> Backend:
    """Say which server it is.

    Args:
        body: its answer to ``/api/v1/status/buildinfo``; may be anything.
        headers: of that answer.
    """
    if _VICTORIA_HEADER in headers:
        return Backend.VICTORIA_METRICS
    try:
        build = _ANSWER.decode(body).data
    except msgspec.DecodeError:
        return Backend.UNKNOWN
    if "Mimir" in build.application:
        return Backend.MIMIR
    major = build.version.removeprefix("v").partition(".")[0]
    if not major.isdecimal() or build.application:
        return Backend.UNKNOWN
    return Backend.THANOS if major == "0" else Backend.PROMETHEUS


def version_told(body: bytes | bytearray, backend: Backend, *, sent: Sent = NOTHING_SENT) -> str:
    """Return the version that an answer to ``/api/v1/status/buildinfo`` tells; empty: none.

    VictoriaMetrics tells that of the server that it imitates.
    """
    if backend is Backend.VICTORIA_METRICS:
        return ""
    try:
        return quoted(_ANSWER.decode(body).data.version[:_LONGEST_VERSION], sent=sent)
    except msgspec.DecodeError:
        return ""


def parameters(backend: Backend) -> Mapping[str, str]:
    """Return what this server must be sent with every question."""
    return _PARAMETERS.get(backend, {})


def is_tenancy(url: str) -> bool:
    """Whether a URL leads to OpenShift's view of one namespace."""
    parts = urlsplit(url)
    return parts.port == TENANCY_PORT and _TENANCY_HOST in (parts.hostname or "")

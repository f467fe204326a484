"""The HTTP listener: routes to handlers, on the loop that everything runs on."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias

import structlog
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import Seconds
from gpu_pruner.record.board import Board
from gpu_pruner.serve import handlers, remembering, wishes
from gpu_pruner.serve.explaining import ExplainHandler, Explains
from gpu_pruner.serve.people import People
from gpu_pruner.serve.remembering import Remembers
from gpu_pruner.serve.reporting import ReportHandler, Reports

_Route: TypeAlias = tuple[str, type[RequestHandler], dict[str, object]]
"""Pattern of the path, who answers, and what it is given."""
_log = structlog.get_logger(__name__)
_LONGEST_BODY = 64 * 1024
"""Bytes; the longest that a route reads is a sentence or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voices:
    """Who answers what the board cannot; None where nobody does."""

    people: People | None = None
    """Takes people's wishes."""
    explainer: Explains | None = None
    reports: Reports | None = None
    """Sums up history."""
    archive: Remembers | None = None
    """Tells of the past."""


NOBODY = Voices()


def application(
    board: Board,
    clock: Clock,
    *,
    cycle_seconds: Seconds = 60.0,
    keep_cap_seconds: Seconds = 0.0,
    voices: Voices = NOBODY,
) -> Application:
    """Return the routes over one board.

    Args:
        board: what the routes tell of.
        clock: the clock that the cycles run on.
        cycle_seconds: time between two cycles; ten of them without one and the loop is stuck.
        keep_cap_seconds: the longest keep that is honoured.
        voices: who answers what the board cannot.
    """
    stuck_after = max(600.0, 10 * cycle_seconds)
    shared = {"board": board, "clock": clock}
    return Application(
        [
            (r"/healthz", handlers.HealthHandler, {**shared, "stuck_after": stuck_after}),
            (r"/readyz", handlers.ReadyHandler, shared),
            (r"/metrics", handlers.MetricsHandler, shared),
            (r"/api/v1/namespaces", handlers.NamespacesHandler, shared),
            (r"/api/v1/report", ReportHandler, {**shared, "reports": voices.reports}),
            *_past_routes({**shared, "archive": voices.archive}),
            (r"/api/v1/workloads", handlers.WorkloadsHandler, shared),
            (r"/api/v1/workloads/([^/]+)/([^/]+)/([^/]+)", handlers.WorkloadHandler, shared),
            (
                r"/api/v1/workloads/([^/]+)/([^/]+)/([^/]+)/explain",
                ExplainHandler,
                {**shared, "explainer": voices.explainer},
            ),
            *_wish_routes({**shared, "people": voices.people, "cap": keep_cap_seconds}),
        ],
        default_handler_class=handlers.NotFoundHandler,
        default_handler_args=shared,
        compress_response=True,
        log_function=_log_failure,
    )


def _past_routes(given: dict[str, object]) -> list[_Route]:
    """Return the routes that need history, or tell more with it."""
    return [
        (r"/api/v1/summary", remembering.SummaryHandler, given),
        (r"/api/v1/stats", remembering.StatsHandler, given),
        (r"/api/v1/leaderboard", remembering.LeaderboardHandler, given),
        (r"/api/v1/history", remembering.HistoryHandler, given),
    ]


def _wish_routes(given: dict[str, object]) -> list[_Route]:
    """Return the routes on which people say what they want of a workload."""
    return [
        (r"/api/v1/workloads/([^/]+)/([^/]+)/([^/]+)/keep", wishes.KeepHandler, given),
        (r"/api/v1/workloads/([^/]+)/([^/]+)/([^/]+)/exempt", wishes.ExemptHandler, given),
        (r"/api/v1/workloads/([^/]+)/([^/]+)/([^/]+)/release", wishes.ReleaseHandler, given),
    ]


def _log_failure(handler: RequestHandler) -> None:
    """Log what went wrong with us. That we are not ready yet is an answer, and no failure."""
    status = handler.get_status()
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.SERVICE_UNAVAILABLE:
        _log.error("request failed", path=handler.request.path[:200], status=status)


class Listener:
    """The open port. Closed by `close`."""

    def __init__(self, app: Application, *, address: str, port: int) -> None:
        """Bind and listen.

        Raises:
            ConfigurationError: the address and port cannot be bound.
        """
        try:
            sockets = bind_sockets(port, address)
        except OSError as error:
            place = f"{address}:{port}"
            raise ConfigurationError(
                f"cannot listen on {place}: {error.strerror}; choose another with --listen-port"
            ) from error
        self.port = sockets[0].getsockname()[1]
        """The port that was bound; the free one where 0 was asked for."""
        self._server = HTTPServer(app, max_body_size=_LONGEST_BODY, idle_connection_timeout=60)
        self._server.add_sockets(sockets)

    async def close(self) -> None:
        """Stop listening and close the connections."""
        self._server.stop()
        await self._server.close_all_connections()

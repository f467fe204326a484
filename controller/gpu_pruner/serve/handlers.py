"""The read API and the probes, whose answers come from the board."""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from tornado.web import RequestHandler
from typing_extensions import override

from gpu_pruner.model.clock import Clock
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.units import Seconds
from gpu_pruner.record.board import Board
from gpu_pruner.record.metrics import exposition
from gpu_pruner.record.namespaces import namespaces
from gpu_pruner.record.rows import plan_row, workload_row

_encode = msgspec.json.encode

MOST_SKEW: Seconds = 5.0
"""How far in the future the last cycle may lie: a little, as clocks are corrected. If a clock was
set back farther, nobody can tell how old it is until the next cycle ends."""


def find(board: Board, ref: str) -> Decision | None:
    """Return what the latest plan says of a workload, by ``kind/namespace/name``."""
    decisions = board.planned.decisions if board.planned else ()
    return next((one for one in decisions if one.workload.root.ref == ref), None)


class ReadHandler(RequestHandler):
    """What all routes share: JSON bodies, JSON errors, no caching, no client errors with traces."""

    board: Board
    clock: Clock

    @override
    def initialize(self, board: Board, clock: Clock) -> None:
        """Take what the application hands to every handler."""
        self.board = board
        self.clock = clock

    @override
    def set_default_headers(self) -> None:
        """Say nothing of the server, and forbid caching and sniffing."""
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    def answer(self, body: object, *, status: int = 200) -> None:
        """Write a JSON body."""
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        self.write(_encode(body))

    @override
    def head(self, *arguments: str) -> Awaitable[None] | None:
        """Answer as GET would; tornado drops the body."""
        return self.get(*arguments)

    @override
    def write_error(self, status_code: int, **_details: object) -> None:
        """Answer errors as one JSON sentence, never a trace."""
        self.answer({"error": self._reason}, status=status_code)


class NotFoundHandler(ReadHandler):
    """Every path that is no route."""

    @override
    def prepare(self) -> None:
        """Answer 404 with the place to look."""
        self.answer({"error": "no such route; see /api/v1/workloads"}, status=404)
        self.finish()


class HealthHandler(ReadHandler):
    """`/healthz`: do cycles still end? Says nothing of whether telemetry is well.

    Before the first cycle it is healthy: a restart would not make the API server answer.
    """

    @override
    def initialize(self, board: Board, clock: Clock, stuck_after: Seconds = 600.0) -> None:
        """Take the age of the last cycle, in seconds, from which the loop counts as stuck."""
        super().initialize(board, clock)
        self.stuck_after = stuck_after

    @override
    def get(self) -> None:
        """Answer 200 while cycles finish, 503 when the loop is stuck or nobody can tell."""
        last = self.board.last_cycle_at
        age = None if last is None else round(self.clock.now() - last)
        stuck = age is not None and not -MOST_SKEW <= age <= self.stuck_after
        self.answer({"ok": not stuck, "lastCycleSecondsAgo": age}, status=503 if stuck else 200)


class ReadyHandler(ReadHandler):
    """`/readyz`: is a first cycle done? Open breakers are shown, and do not unready us.

    A replica that does not lead is ready, too: it answers, and it takes what people wish.
    """

    @override
    def get(self) -> None:
        """Answer 200 once the first cycle is done."""
        report = self.board.latest
        body = {
            "ready": report is not None,
            "waitingFor": None if report else self.board.waiting_for,
            "failure": report.failure if report else "",
            "leading": self.board.leading,
            "breakers": [{"name": one.name, "message": one.message} for one in self.board.breakers],
        }
        self.answer(body, status=200 if report else 503)


class MetricsHandler(ReadHandler):
    """`/metrics` in the Prometheus text format."""

    @override
    def get(self) -> None:
        """Render the board."""
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.write(exposition(self.board))


class WorkloadsHandler(ReadHandler):
    """`/api/v1/workloads`: every workload of the latest cycle."""

    @override
    def get(self) -> None:
        """Answer the latest plan, or 503 before the first cycle."""
        report = self.board.planned
        if report is None or report.plan is None:
            self.answer({"error": f"no plan yet; waiting for {self.board.waiting_for}"}, status=503)
            return
        self.answer(plan_row(report.plan, number=report.number))


class NamespacesHandler(ReadHandler):
    """`/api/v1/namespaces`: what each namespace holds, by the latest cycle."""

    @override
    def get(self) -> None:
        """Answer one row per namespace with GPUs or pauses, or 503 before the first cycle."""
        report = self.board.planned
        if report is None or report.plan is None:
            self.answer({"error": f"no plan yet; waiting for {self.board.waiting_for}"}, status=503)
            return
        self.answer(namespaces(report.plan))


class WorkloadHandler(ReadHandler):
    """`/api/v1/workloads/{kind}/{namespace}/{name}`."""

    @override
    def get(self, kind: str = "", namespace: str = "", name: str = "") -> None:
        """Answer one workload of the latest cycle; 404 where it has no such workload."""
        wanted = f"{kind.lower()}/{namespace}/{name}"
        found = find(self.board, wanted)
        if found is None:
            self.answer({"error": f"{wanted[:200]} holds no GPU in the latest cycle"}, status=404)
        else:
            self.answer(workload_row(found))

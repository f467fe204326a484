"""What idle GPUs cost and what pauses gave back, as the route that `report --from` reads."""

from __future__ import annotations

from typing import Protocol

import msgspec
from typing_extensions import override

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import HOUR, Seconds
from gpu_pruner.record.board import Board
from gpu_pruner.serve.handlers import ReadHandler
from gpu_pruner.serve.people import Refusal
from gpu_pruner.settings.durations import parse_duration


class Reports(Protocol):
    """`cli.reporter.Reporter`."""

    async def report(self, length: Seconds) -> msgspec.Struct:
        """Return `record.savings.Savings` of the time up to now.

        Raises:
            Refusal: no history is kept, or it cannot be read now.
        """
        ...


class ReportHandler(ReadHandler):
    """`/api/v1/report?since=7d`: what `gpu-pruner report --output json` prints.

    From the controller's ledger and with the prices of its settings. One is made at a time.
    """

    SUPPORTED_METHODS = ("GET",)

    @override
    def initialize(self, board: Board, clock: Clock, reports: Reports | None = None) -> None:
        """Take who reports; None where nobody does."""
        super().initialize(board, clock)
        self.reports = reports

    @override
    async def get(self) -> None:
        """Answer the report; 400, 429 or 503 with the reason."""
        try:
            length = parse_duration(self.get_query_argument("since", "7d"), bare_unit="d")
        except ConfigurationError as error:
            self.answer({"error": f"since: {error}"}, status=400)
            return
        if length < HOUR:
            told = "since: sums are kept by the hour, so it is at least 1h"
            self.answer({"error": told}, status=400)
        elif self.reports is None:
            self.answer({"error": "nothing is reported here"}, status=503)
        else:
            try:
                self.answer(await self.reports.report(length))
            except Refusal as refusal:
                self.answer({"error": str(refusal)}, status=refusal.status)

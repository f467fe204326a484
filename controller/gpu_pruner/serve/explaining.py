"""One workload explained in full, on request: the route that measures.

It answers what `gpu-pruner explain` prints, from the controller's own latest look and a measurement
made now. It decides nothing and writes nothing. Whoever connects it hands in who explains.
"""

from __future__ import annotations

from typing import Protocol

from typing_extensions import override

from gpu_pruner.model.clock import Clock
from gpu_pruner.record.board import Board
from gpu_pruner.record.explanation_rows import Explanation
from gpu_pruner.serve.handlers import ReadHandler
from gpu_pruner.serve.people import Refusal


class Explains(Protocol):
    """`cli.explainer.Explainer`."""

    async def explain(self, ref: str) -> Explanation:
        """Measure a workload, by ``kind/namespace/name``, and explain it.

        Raises:
            Refusal: nothing with GPUs is called so, or it cannot be done now.
        """
        ...


class ExplainHandler(ReadHandler):
    """`/api/v1/workloads/{kind}/{namespace}/{name}/explain`: measured now, explained in full.

    One is answered at a time, because each asks the metrics server for a whole window.
    """

    SUPPORTED_METHODS = ("GET",)

    @override
    def initialize(self, board: Board, clock: Clock, explainer: Explains | None = None) -> None:
        """Take who explains; None where nobody does."""
        super().initialize(board, clock)
        self.explainer = explainer

    @override
    async def get(self, kind: str = "", namespace: str = "", name: str = "") -> None:
        """Answer the explanation; 404, 429 or 503 with the reason."""
        if self.explainer is None:
            self.answer({"error": "nothing is explained here"}, status=503)
            return
        try:
            self.answer(await self.explainer.explain(f"{kind}/{namespace}/{name}"))
        except Refusal as refusal:
            self.answer({"error": str(refusal)}, status=refusal.status)

"""Who explains workloads over HTTP: the running controller's cycle, asked between its looks."""

from __future__ import annotations

from http import HTTPStatus

from gpu_pruner.cli.explain import nobody, written
from gpu_pruner.cli.references import parse_question
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.loop.cycle import Cycle
from gpu_pruner.model.rules import Rules
from gpu_pruner.record.explanation_rows import Explanation, SettingRow
from gpu_pruner.serve.people import Refusal
from gpu_pruner.settings.durations import format_duration


class Explainer:
    """Explains from the moment on that there is a cycle to ask; see `serve.explaining`."""

    def __init__(self) -> None:
        self._cycle: Cycle | None = None
        self._under_way = False

    def open(self, cycle: Cycle) -> None:
        """Explain by this cycle from now on."""
        self._cycle = cycle

    async def explain(self, ref: str) -> Explanation:
        """Measure a workload and explain it; see `serve.explaining.Explains`."""
        if self._cycle is None:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "not connected to the API server yet")
        if self._under_way:
            told = "something else is being measured; come again"
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, told)
        self._under_way = True
        try:
            return await self._explained(self._cycle, ref)
        except ConfigurationError as error:
            raise Refusal(HTTPStatus.NOT_FOUND, str(error)) from error
        finally:
            self._under_way = False

    async def _explained(self, cycle: Cycle, ref: str) -> Explanation:
        question = parse_question(ref)
        answer = await cycle.explain_latest(question)
        if answer is None:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "no look at the cluster yet")
        if not answer.examined:
            raise Refusal(HTTPStatus.NOT_FOUND, nobody(question, answer))
        return written(question, answer, settings=_rows(answer.rules))


def _rows(rules: Rules) -> tuple[SettingRow, ...]:
    """Return the numbers that the controller decides with."""
    values = {
        "mode": rules.mode.value,
        "window_seconds": format_duration(rules.window_seconds),
        "settle_seconds": format_duration(rules.settle_seconds),
        "idle_threshold": f"{rules.idle_threshold:g}",
        "coverage_ratio": f"{rules.coverage_ratio:g}",
        "freshness_seconds": format_duration(rules.freshness_seconds),
        "liveness": str(rules.liveness_required).lower(),
        "liveness_changes": str(rules.liveness_changes),
        "cycle_seconds": format_duration(rules.cycle_seconds),
        "confirmations": str(rules.confirmations),
        "notice_seconds": format_duration(rules.notice_seconds),
        "keep_cap_seconds": format_duration(rules.keep_cap_seconds),
    }
    return tuple(SettingRow(name, value, "the controller's") for name, value in values.items())

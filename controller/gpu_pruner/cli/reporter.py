"""Who answers what idle GPUs cost over HTTP: the ledger, read in a thread."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

import structlog

from gpu_pruner.cli.posting import report_until
from gpu_pruner.errors import ConfigurationError, LedgerError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import Seconds
from gpu_pruner.serve.people import Refusal
from gpu_pruner.settings.schema import Settings

if TYPE_CHECKING:
    from gpu_pruner.record.savings import Savings

_log = structlog.get_logger(__name__)


class Reporter:
    """Reports by the settings of the controller; see `serve.reporting`."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._under_way = False

    async def report(self, length: Seconds) -> Savings:
        """Return the report; one at a time, for each reads all that there is."""
        if not self._settings.ledger.is_on:
            told = "no history is kept: set ledger.directory or ledger.dsn"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, told)
        if self._under_way:
            told = "another report is being made; come again"
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, told)
        self._under_way = True
        try:
            now = self._clock.now()
            return await asyncio.to_thread(report_until, self._settings, now, length=length)
        except (LedgerError, ConfigurationError) as error:
            _log.error("history cannot be read", error=str(error))
            told = "history cannot be read now; the controller's log says why"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, told) from error
        finally:
            self._under_way = False

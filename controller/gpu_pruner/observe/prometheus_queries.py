"""Questions to one Prometheus-compatible server, whole answers only.

It answers a range or an instant query with typed series, or raises an `ObservationError`; what the
server finds too large is asked in parts. One connection, used by one thread at a time. It knows
nothing of metrics. Called by `prometheus` only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from prometheus_api_client import PrometheusConnect

from gpu_pruner.errors import PrometheusError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.signals import Period
from gpu_pruner.model.units import Timestamp
from gpu_pruner.observe.prometheus_replies import QueryTooLarge, Series
from gpu_pruner.observe.prometheus_transport import RETRY, Transport
from gpu_pruner.observe.promql import Slice
from gpu_pruner.settings.schema import PrometheusSettings

_SERVER_SHARE = 0.9
"""Share of our time limit that the server gets, so that it is the one that says why it gave up."""

_PATIENCE = 10
"""A screen or verify is given up after this many time limits: no endless cutting into parts."""


class Queries:
    """The query API of one server."""

    def __init__(self, settings: PrometheusSettings, *, clock: Clock) -> None:
        self.transport = Transport(settings, clock=clock)
        self._client = PrometheusConnect(
            self.transport.url, session=self.transport, method="POST", retry=RETRY
        )
        self._timeout = settings.timeout_seconds
        self._always = {"timeout": f"{self._timeout * _SERVER_SHARE:g}"}
        self._parameters: Mapping[str, str] = self._always
        self._give_up_at = 0.0
        self._closed = False

    @property
    def server(self) -> str:
        """Return how to name the server in messages."""
        return self.transport.server

    def begin(self) -> None:
        """Allow so much time for all that is asked from now on."""
        self._give_up_at = time.monotonic() + _PATIENCE * self._timeout

    def send_also(self, parameters: Mapping[str, str]) -> None:
        """Send these with every question from now on."""
        self._parameters = {**self._always, **parameters}

    def close(self) -> None:
        """Stop after the request that is under way, and release connections."""
        self._closed = True
        self.transport.close()

    def range(self, query: str, period: Period) -> list[Series]:
        """Evaluate a query at the end of each step of a period.

        Raises:
            QueryTooLarge: the question must be cut into smaller ones.
            ObservationError: no complete answer.
        """
        self._check_time()
        step = period.step_seconds
        answer: list[Series] = self._client.custom_query_range(
            query,
            start_time=datetime.fromtimestamp(period.start + step, UTC),
            end_time=datetime.fromtimestamp(period.end, UTC),
            step=f"{step:g}",
            params=dict(self._parameters),
        )
        return answer

    def instant(self, query: str, at: Timestamp) -> list[Series]:
        """Evaluate a query at one moment; raises as `range` does."""
        self._check_time()
        answer: list[Series] = self._client.custom_query(
            query, params={"time": f"{at:.3f}", **self._parameters}
        )
        return answer

    def parts(self, query: Callable[[Slice], str], part: Slice) -> Iterator[list[Series]]:
        """Yield the answers for a slice: one, or those of smaller slices where it is too large.

        Raises:
            QueryTooLarge: the slice cannot be made smaller.
            ObservationError: no complete answer.
        """
        try:
            answer = self.range(query(part), part.period)
        except QueryTooLarge:
            smaller = part.split()
            if not smaller:
                raise
        else:
            yield answer
            return
        for one in smaller:
            yield from self.parts(query, one)

    def _check_time(self) -> None:
        if self._closed:
            raise PrometheusError(f"{self.server} is no longer asked: we are stopping")
        if time.monotonic() > self._give_up_at:
            raise PrometheusError(
                f"{self.server} is too slow for the whole question; check its load, or "
                "raise prometheus.timeout_seconds"
            )

"""Our own metrics: the one list of them, and how they are read off the board at each scrape.

Answers a scrape of ``/metrics``. Aggregates only: no label carries a workload's, pod's or device's
name, so the number of series does not grow with the cluster. The Rust tool's names keep their
documented meaning; where its code measured something else, the help text here is what holds.
A replica that does not lead tells 0 of what the leader tells, so that sums are right.
`serve` calls `exposition`; the reference page is generated from `METRICS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from gpu_pruner.model.verdict import Verdict
from gpu_pruner.record import statistics
from gpu_pruner.record.board import Board
from gpu_pruner.record.ledger.state import LedgerState
from gpu_pruner.record.totals import DURATION_BOUNDS, is_kept

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""Of what `exposition` returns."""

Samples: TypeAlias = Iterable[tuple[tuple[str, ...], float]]
"""Label values, in the order of the definition, with the value."""


class MetricKind(StrEnum):
    """How a metric's values are to be read."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """One metric as the reference page shows it."""

    name: str
    kind: MetricKind
    meaning: str
    """One sentence: the HELP text."""
    read: Callable[[Board], Samples]
    """Its samples now. A histogram's are its buckets, each with its own count."""
    labels: tuple[str, ...] = ()


def _one(value: float) -> Samples:
    return (((), value),)


def _idle_gpus(board: Board) -> Samples:
    idle = board.led.idle() if board.led else ()
    return _one(sum(decision.workload.gpus for decision in idle))


def _kept(board: Board) -> Samples:
    if board.led is None or board.led.plan is None:
        return _one(0)
    now = board.led.plan.at
    return _one(sum(is_kept(decision, now=now) for decision in board.led.decisions))


def _pods_checked(board: Board) -> Samples:
    return _one(statistics.pods_checked(board) if board.led else 0)


def _workloads(board: Board) -> Iterator[tuple[tuple[str, ...], float]]:
    decisions = board.led.decisions if board.led else ()
    for verdict in Verdict:
        yield (verdict.value,), sum(one.verdict is verdict for one in decisions)


def _reload_successful(board: Board) -> Samples:
    return () if board.reloads is None else _one(float(board.reloads.is_last_successful))


def _reload_succeeded_at(board: Board) -> Samples:
    return () if board.reloads is None else _one(board.reloads.succeeded_at)


def _last_cycle(board: Board) -> Samples:
    return () if board.last_cycle_at is None else _one(board.last_cycle_at)


def _ledger(read: Callable[[LedgerState], float | None]) -> Callable[[Board], Samples]:
    """Return what reads the ledger's state; no sample where no history is kept."""

    def samples(board: Board) -> Samples:
        value = read(board.ledger()) if board.ledger else None
        return () if value is None else _one(value)

    return samples


COUNTER, GAUGE, HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM

METRICS: tuple[MetricDefinition, ...] = (
    MetricDefinition(
        "gpu_pruner_query_successes_total",
        COUNTER,
        "Telemetry queries (screens and verifications) that were answered completely.",
        lambda board: _one(board.totals.query_successes),
    ),
    MetricDefinition(
        "gpu_pruner_query_failures_total",
        COUNTER,
        "Telemetry queries (screens and verifications) that failed or were partial.",
        lambda board: _one(board.totals.query_failures),
    ),
    MetricDefinition(
        "gpu_pruner_query_candidates_total",
        COUNTER,
        "GPU pods of workloads that were found idle, summed over cycles.",
        lambda board: _one(board.totals.candidates),
    ),
    MetricDefinition(
        "gpu_pruner_query_shutdown_events_total",
        COUNTER,
        "Workloads that came due for a pause, also in dry run; each counted once.",
        lambda board: _one(board.totals.due),
    ),
    MetricDefinition(
        "gpu_pruner_scale_successes_total",
        COUNTER,
        "Workloads that were paused.",
        lambda board: _one(statistics.scale_downs(board)),
    ),
    MetricDefinition(
        "gpu_pruner_scale_failures_total",
        COUNTER,
        "Pauses that were ordered and failed; refusals and conflicts are not failures.",
        lambda board: _one(board.totals.actions["pause", "failed"]),
    ),
    MetricDefinition(
        "gpu_pruner_scales_total",
        COUNTER,
        "Workloads that were paused, by kind of root and namespace.",
        lambda board: board.totals.scales.items(),
        ("kind", "namespace"),
    ),
    MetricDefinition(
        "gpu_pruner_idle_gpus",
        GAUGE,
        "GPUs that workloads found idle by the last plan hold.",
        _idle_gpus,
    ),
    MetricDefinition(
        "gpu_pruner_pods_checked_total",
        GAUGE,
        "GPU pods that the last plan judged (a gauge, in spite of its name).",
        _pods_checked,
    ),
    MetricDefinition(
        "gpu_pruner_acknowledged_workloads",
        GAUGE,
        "Workloads with a keep in force.",
        _kept,
    ),
    MetricDefinition(
        "gpu_pruner_acknowledgments_total",
        COUNTER,
        "Keeps that were given or prolonged, whoever gave them.",
        lambda board: _one(board.totals.keeps),
    ),
    MetricDefinition(
        "gpu_pruner_scaledowns_prevented_total",
        COUNTER,
        "Warnings and pauses that ended because somebody kept or exempted the workload.",
        lambda board: _one(board.totals.prevented),
    ),
    MetricDefinition(
        "gpu_pruner_false_positives_total",
        COUNTER,
        "Pauses that somebody called wrong; each counted once, by the leader that heard of it.",
        lambda board: _one(board.totals.false_positives),
    ),
    MetricDefinition(
        "gpu_pruner_cycle_duration_seconds",
        HISTOGRAM,
        "How long a cycle took.",
        lambda board: (((str(bound),), count) for bound, count in board.totals.durations.items()),
    ),
    MetricDefinition(
        "gpu_pruner_cycle_failures_total",
        COUNTER,
        "Cycles that did not come to their end.",
        lambda board: _one(board.totals.cycle_failures),
    ),
    MetricDefinition(
        "gpu_pruner_last_cycle_timestamp_seconds",
        GAUGE,
        "When the last cycle ended, Unix time; absent before the first.",
        _last_cycle,
    ),
    MetricDefinition(
        "gpu_pruner_leader",
        GAUGE,
        "1 where this replica leads, 0 where it only looks on; what is told of workloads is 0 "
        "there, so that sums over replicas are right.",
        lambda board: _one(float(board.leading)),
    ),
    MetricDefinition(
        "gpu_pruner_decisions_total",
        COUNTER,
        "Decisions by reason, one per workload and cycle.",
        lambda board: (((reason,), count) for reason, count in board.totals.decisions.items()),
        ("reason",),
    ),
    MetricDefinition(
        "gpu_pruner_actions_total",
        COUNTER,
        "Orders by what was ordered and how it ended.",
        lambda board: board.totals.actions.items(),
        ("kind", "result"),
    ),
    MetricDefinition(
        "gpu_pruner_messages_total",
        COUNTER,
        "Messages to owners by kind and confirming channel; none means that no channel confirmed.",
        lambda board: board.totals.messages.items(),
        ("kind", "channel"),
    ),
    MetricDefinition(
        "gpu_pruner_message_failures_total",
        COUNTER,
        "Messages that a channel did not confirm, by kind and channel; each try counts.",
        lambda board: board.totals.message_failures.items(),
        ("kind", "channel"),
    ),
    MetricDefinition(
        "gpu_pruner_workloads",
        GAUGE,
        "Workloads by verdict in the last plan.",
        _workloads,
        ("verdict",),
    ),
    MetricDefinition(
        "gpu_pruner_gpu_seconds_total",
        COUNTER,
        "Time that GPUs spent in workloads of a state: active, idle, unknown, or paused, which "
        "counts the GPUs held before the pause. Time in which no cycle ran is left out.",
        lambda board: board.totals.gpu_seconds.items(),
        ("state", "namespace"),
    ),
    MetricDefinition(
        "gpu_pruner_config_last_reload_successful",
        GAUGE,
        "1 where the settings file was right when it was last read, 0 where it was wrong and the "
        "settings before it hold; absent without a file.",
        _reload_successful,
    ),
    MetricDefinition(
        "gpu_pruner_config_last_reload_success_timestamp_seconds",
        GAUGE,
        "When the settings file was last read and right, Unix time; absent without a file.",
        _reload_succeeded_at,
    ),
    MetricDefinition(
        "gpu_pruner_breaker",
        GAUGE,
        "1 while a breaker stops all acts, 0 after it was released.",
        lambda board: (((name,), float(on)) for name, on in board.breaker_states().items()),
        ("name",),
    ),
    MetricDefinition(
        "gpu_pruner_ledger_backlog",
        GAUGE,
        "Cycles whose history is not in the database yet; absent where no history is kept.",
        _ledger(lambda state: state.backlog),
    ),
    MetricDefinition(
        "gpu_pruner_ledger_last_success_timestamp_seconds",
        GAUGE,
        "When history was written to the database last, Unix time; absent before the first.",
        _ledger(lambda state: state.last_success_at),
    ),
    MetricDefinition(
        "gpu_pruner_ledger_failures_total",
        COUNTER,
        "Attempts to write history to the database that failed; what they held is kept aside.",
        _ledger(lambda state: state.failures),
    ),
    MetricDefinition(
        "gpu_pruner_ledger_lost_total",
        COUNTER,
        "Cycles whose history is lost: neither database nor spool nor memory had room for it.",
        _ledger(lambda state: state.lost),
    ),
)
"""Every metric, in the order in which it is exposed."""


def _family(definition: MetricDefinition, board: Board) -> Metric:
    if definition.kind is HISTOGRAM:
        return _histogram(definition, board)
    of_kind = CounterMetricFamily if definition.kind is COUNTER else GaugeMetricFamily
    family = of_kind(definition.name, definition.meaning, labels=definition.labels)
    for values, value in sorted(definition.read(board)):
        family.add_metric(values, value)
    return family


def _histogram(definition: MetricDefinition, board: Board) -> Metric:
    counts = {float(bound): count for (bound,), count in definition.read(board)}
    bounds = (*DURATION_BOUNDS, float("inf"))
    running = accumulate(counts.get(bound, 0.0) for bound in bounds)
    family = HistogramMetricFamily(definition.name, definition.meaning)
    names = ("+Inf" if bound == float("inf") else str(bound) for bound in bounds)
    family.add_metric([], list(zip(names, running, strict=True)), board.totals.duration_seconds)
    return family


class BoardCollector:
    """Reads the board whenever somebody scrapes; keeps nothing of its own."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of `METRICS` as it is now."""
        for definition in METRICS:
            yield _family(definition, self._board)


def exposition(board: Board) -> bytes:
    """Return all metrics in the Prometheus text format, with `CONTENT_TYPE`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(BoardCollector(board))
    return generate_latest(registry)

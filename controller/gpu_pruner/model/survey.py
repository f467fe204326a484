"""What a telemetry source has to offer, as one value: for a person who sets it up.

Answers which server it is, what is exported by whom and for which GPU models. Nothing here is ever
decided upon: the cycle reads `model.telemetry`. Both sources make it, and `check` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_pruner.model.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSurvey:
    """One scrape job, or one exporter that is scraped directly. Counts are numbers of series."""

    name: str
    series: int
    """Of the primary signals."""
    exported: int = 0
    """With a pod in ``exported_pod``: honorLabels is false."""
    native: int = 0
    """With a pod in ``pod``, and none in ``exported_pod``; the exporter's own pod does not count
    where its name shows that it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was found at one moment."""

    server: str
    """How to name the source in sentences, without credentials."""
    product: str = ""
    """Which product answers; empty where that means nothing, or nobody tells."""
    version: str = ""
    interval_seconds: Seconds | None = None
    """Time between two samples of a series, as measured; None where too few samples are there."""
    jobs: tuple[JobSurvey, ...] = ()
    """Sorted by name."""
    models: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """GPU model to metric name to the number of devices that export it; an empty model is one that
    the exporter does not tell."""
    only_util: int = 0
    """Devices of which only utilisation could prove idleness: their window is doubled."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Exporter to why it could not be scraped; empty for a server."""

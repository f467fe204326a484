"""How the last attempt to read the settings file anew ended, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pruner.model.units import Timestamp


@dataclass(frozen=True, slots=True)
class Reloads:
    """What is known of the settings file since the start, which counts as the first reading."""

    is_last_successful: bool
    succeeded_at: Timestamp
    """When it was last read with success."""

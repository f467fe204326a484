"""The numbers that decisions are made with. Defaults and their reasons live in `settings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpu_pruner.model.audience import Directory
from gpu_pruner.model.orders import EVENT
from gpu_pruner.model.units import Seconds

LEAST_STEPS = 4
"""A window of fewer steps, or scrape intervals, proves nothing: single samples would decide."""


class Mode(StrEnum):
    """Whether we only say what we would do."""

    DRY_RUN = "dry-run"
    SCALE_DOWN = "scale-down"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One table of numbers, one place. `docs/explanation/deciding.md` tells why."""

    mode: Mode
    window_seconds: Seconds
    """Judged period (`-t`); doubled for devices that export only UTIL."""
    settle_seconds: Seconds
    """Added to the window for a pod's age, counted from Ready (`-g`)."""
    idle_threshold: float
    """Engine activity ratio (0-1) at or above which a step counts as work."""
    coverage_ratio: float
    """Share of steps that must be seen: floor(ratio x steps), at least 1."""
    freshness_seconds: Seconds
    """Greatest age of the newest sample; never below 3 scrape intervals."""
    liveness_required: bool
    """Whether a device must show that its telemetry moves."""
    liveness_changes: int
    """Changes of energy (else power, else temperature) asked for, at most steps/3 of them."""
    cycle_seconds: Seconds
    confirmations: int
    """Cycles in a row that must find a workload idle before it is warned."""
    notice_seconds: Seconds
    """Delivered warning to pause."""
    keep_cap_seconds: Seconds
    """Longest keep that is honoured, from the moment it is read."""
    shield_seconds: Seconds
    """How long a Pending sibling or a rollout can veto."""
    never_ready_seconds: Seconds
    """A pod that never becomes Ready counts from its container start plus this."""
    verify_max_age_seconds: Seconds
    """Greatest age of a verification at the moment of the act."""
    budget_workloads_per_cycle: int
    budget_gpu_ratio_per_cycle: float
    """Share of allocated GPUs that one cycle may pause; always at least one workload."""
    budget_per_namespace_per_cycle: int
    budget_per_hour: int
    budget_ratio_per_hour: float
    """Share of workloads per hour; the larger of this and `budget_per_hour` holds."""
    enabled_kinds: frozenset[str]
    """Root kinds that may be paused (`-e`)."""
    protected_namespaces: frozenset[str]
    """Namespaces in which nothing is ever paused."""
    warn_only_kinds: frozenset[str] = frozenset()
    """Root kinds whose owners are warned like others, and which are never paused."""
    custom_kinds: Mapping[tuple[str, str], frozenset[tuple[str, str]]] = field(default_factory=dict)
    """Group and kind of roots with a lever in the settings, and of what their controllers make."""
    measurable_models: tuple[str, ...] = ()
    """More device models whose signals are trusted to show work: names, with ``*`` for any text."""
    namespaces: str | None = None
    """Regular expression, of the whole name, of namespaces whose workloads may be paused."""
    models: str | None = None
    """The same for the models of a workload's devices."""
    directory: Directory = Directory()
    """Whom to tell where no annotation names anybody. Nothing is decided by it."""
    delivering_channels: frozenset[str] = frozenset({EVENT})
    """Channels whose confirmation counts as having warned somebody: an Event where no other does.
    """
    power_threshold_watts: float | None = None
    """Power above which a step counts as work; None: power alone never does."""

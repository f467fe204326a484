"""The rows of an explanation: what `explain --output json` and the API answer.

Only shapes, with what each field means; `explanation` fills them. Times are RFC 3339, UTC.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.record.rows import AudienceRow, BreakerRow


class SettingRow(msgspec.Struct, frozen=True):
    """One setting that the decision rests on."""

    name: str
    value: str
    origin: str
    """Where the value comes from, for example ``default``."""


class SignalRow(msgspec.Struct, frozen=True, rename="camel"):
    """One signal of one device over the measured period."""

    signal: str
    word: str
    """How sentences call it."""
    role: str
    """primary, activity, liveness or none: which part it plays in a verdict."""
    metrics: tuple[str, ...]
    """Names as exported."""
    jobs: tuple[str, ...]
    """Where they come from: scrape jobs of Prometheus, or addresses of exporters."""
    unit: str
    peak: float | None
    peak_at: str | None
    """End of the step of the peak."""
    counts: str
    """What of it counts as work or as life, for example ``from 0.01``; empty where nothing does."""
    active_steps: int
    last_active_at: str | None
    seen_steps: int
    steps: int
    """Steps of the period; `seenSteps` of them have a sample."""
    invalid_steps: int
    changes: int
    """Steps in which the value moved."""
    newest_at: str
    newest_age_seconds: float


class MissingRow(msgspec.Struct, frozen=True):
    """A signal that could have spoken, and is not exported."""

    signal: str
    word: str
    role: str
    counts: str


class MovementRow(msgspec.Struct, frozen=True):
    """How the telemetry showed that it is alive."""

    signal: str
    changes: int
    wanted: int
    """Changes that are asked for."""


class DrawRow(msgspec.Struct, frozen=True, rename="camel"):
    """The highest mean power by the energy counter."""

    watts: float
    begin: str
    end: str
    idle_watts: float | None
    """The most that the model draws without work; None where nobody knows."""


class DeviceExplanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One device of a workload: its verdict and everything that it rests on."""

    device: str
    pod: str
    node: str
    model: str
    shared: bool
    verdict: str
    reason: str
    rule: str
    detail: str
    begin: str
    """Begin of the measured period."""
    end: str
    step_seconds: float
    steps: int
    needed_seconds: float
    """How long it has to be quiet."""
    signals: tuple[SignalRow, ...]
    missing: tuple[MissingRow, ...]
    movement: MovementRow | None
    """None where nothing that moves is exported."""
    draw: DrawRow | None
    what_counts: str


class PodExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """One GPU pod of a workload."""

    name: str
    node: str
    phase: str
    gpus: int
    """GPUs that it requests."""
    devices: int
    """Devices that were found to be its own."""
    ready_since: str | None
    gap: str
    """Why its devices cannot be trusted to be its own; empty where they can."""
    rule: str


class WishRow(msgspec.Struct, frozen=True):
    """Somebody's word that the workload stays."""

    reason: str
    rule: str
    detail: str
    """Who, since when or until when, and why, as far as it was written down."""
    until: str | None


class ClockRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where its clock stands: its GPUWorkload after this look."""

    state: str
    confirmations: int
    confirmations_wanted: int
    idle_since: str | None = None
    nominated_at: str | None = None
    warned_at: str | None = None
    warned_via: tuple[str, ...] = ()
    warned_mode: str | None = None
    pause_at: str | None = None
    frozen_since: str | None = None
    paused_at: str | None = None
    contested_by: str | None = None
    contested_until: str | None = None
    object_name: str | None = None
    """Name of the GPUWorkload; absent where there is none yet."""


class OutlookRow(msgspec.Struct, frozen=True):
    """What comes next, if nothing changes."""

    at: str | None
    sentence: str


class ScreenRow(msgspec.Struct, frozen=True):
    """What a cycle says of it without a measurement."""

    verdict: str
    reason: str
    message: str


class WorkloadExplanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One workload, explained in full."""

    ref: str
    verdict: str
    reason: str
    rule: str
    message: str
    """The sentence that its people read."""
    action: str
    """What a cycle would do now: none, warn, remind, cancel, pause or restore."""
    gpus: int
    lever: str | None
    """Kind of the object that would pause it; None where it can never be paused."""
    obstacle: str
    """Why it can never be paused; empty where it can."""
    measured_at: str | None
    """None where no device could be measured."""
    failure: str
    """Why the measurement could not be made; empty where it was."""
    screen: ScreenRow | None
    """Only where the screen alone says something else than the measurement."""
    clock: ClockRow
    next: OutlookRow
    wishes: tuple[WishRow, ...]
    audience: tuple[AudienceRow, ...]
    """Who is told about it: its people, then their team's channel."""
    unread: tuple[str, ...]
    """What was written down as somebody to tell, and is nobody."""
    pods: tuple[PodExplanation, ...]
    devices: tuple[DeviceExplanation, ...]
    changes: tuple[str, ...]
    """What would change the verdict, or what follows from it."""


class Explanation(msgspec.Struct, frozen=True):
    """The answer to `explain` and to `GET …/explain`."""

    asked: str
    at: str
    breakers: tuple[BreakerRow, ...]
    """Open ones: nothing is done to anybody because of them."""
    workloads: tuple[WorkloadExplanation, ...]
    settings: tuple[SettingRow, ...]

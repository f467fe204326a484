"""What is remembered about a workload between cycles: `GPUWorkload.status` as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpu_pruner.model.units import Timestamp


class Phase(StrEnum):
    """Where a workload stands. Written on transitions only."""

    WATCHING = "Watching"
    NOMINATED = "Nominated"
    """Found idle by `Book.confirmations` cycles in a row; nobody was told yet."""
    WARNED = "Warned"
    PAUSING = "Pausing"
    """Written before the lever object is patched; settled by reading that object."""
    PAUSED = "Paused"
    RESTORING = "Restoring"
    WOULD_PAUSE = "WouldPause"
    """Dry run only: the deadline passed; latched until activity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRecord:
    """What was taken, so that it can be given back by anybody. Lives on the lever object.

    Of a JupyterHub server, which is no object, it lives in the GPUWorkload alone.
    """

    lever: str
    """Kind of the lever object, for example ``Deployment``."""
    replicas: int | None
    """Former size; None for levers without one, such as a Notebook's."""
    uid: str
    """uid of the lever object: a record that was copied to another object is not a record."""
    generation: int
    """generation of the lever object before the patch."""
    at: Timestamp
    decision: str
    """Decision id."""
    why: str
    """The sentence with the evidence."""
    by: str = "gpu-pruner"
    """Who ordered it: the controller, or a person through the CLI or API."""
    name: str = ""
    """Name of the lever object, where that is not the root (KEDA, Kueue)."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Annotations of others that the pause replaced, with their former values. Of a JupyterHub
    server, which has none: its names and which start was stopped (keys: `model.jupyterhub`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The leader's memory of one workload. The blank book is a workload never nominated."""

    phase: Phase = Phase.WATCHING
    verdict: str = ""
    reason: str = ""
    message: str = ""
    gpus: int = 0
    confirmations: int = 0
    idle_since: Timestamp | None = None
    nominated_at: Timestamp | None = None
    warned_at: Timestamp | None = None
    warned_via: tuple[str, ...] = ()
    warned_mode: str = ""
    pause_at: Timestamp | None = None
    frozen_since: Timestamp | None = None
    paused_at: Timestamp | None = None
    """When the pause was ordered; stays after a restart, because the hourly budget counts it."""
    pause: PauseRecord | None = None
    long_keep_until: Timestamp | None = None
    """End of a keep that reaches beyond the cap, as asked for; None where no keep is that long."""
    long_keep_read_at: Timestamp | None = None
    """When that keep was first read: the cap counts from here."""
    alerts_in: tuple[str, ...] = ()
    """Channels that hold an alert about it open, to be closed there when the matter ends."""
    reverted_by: str = ""
    """Field manager, of unknown kind, that took the last pause back soon after it."""
    contested_by: str = ""
    """Field manager that we leave the workload to."""
    contested_until: Timestamp | None = None
    counted_wrong: str = ""
    """Decision id of the last pause that somebody called wrong, from when that is counted."""
    resource_version: str = ""
    """Of the GPUWorkload; empty where none exists yet. Not part of the status."""
    object_name: str = ""
    """metadata.name of the GPUWorkload; empty where none exists yet. Not part of the status."""

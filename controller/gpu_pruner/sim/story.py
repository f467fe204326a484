"""A story: a world, and how each of its workloads must end.

`gpu-pruner demo` plays the one in ``first_story.yaml`` or one of the user's (`story_file` reads
both), `stage` plays it, and `judge` compares the ending with it. Frozen values.
"""

from __future__ import annotations

from enum import StrEnum

from gpu_pruner.model.units import MINUTE, Seconds
from gpu_pruner.model.verdict import Reason
from gpu_pruner.sim.world import Workload, World

WINDOW: Seconds = 35 * MINUTE
NOTICE: Seconds = 15 * MINUTE
"""The controller's own defaults: the demo runs with the numbers that a cluster would."""


class Ending(StrEnum):
    """How a workload's part must end."""

    PAUSED = "paused"
    RESUMED = "resumed"
    """Paused, then given back by a person."""
    KEPT = "kept"
    """Never touched, although everything idle around it is paused."""
    OPEN = "open"
    """Nothing is expected. Where it is paused, that has to be after a window and a notice."""


class Part(Workload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One workload, and its part in the story."""

    ending: Ending = Ending.OPEN
    reasons: tuple[Reason, ...] = ()
    """Reasons that the controller may show at the end; none: any."""
    told: str = ""
    """What this part shows, for the person who watches."""
    keep: bool = False
    """Whether somebody asks to keep it as soon as its warning is out."""

    @property
    def ref(self) -> str:
        """Return ``kind/namespace/name``."""
        return f"{self.kind.lower()}/{self.namespace}/{self.name}"

    @property
    def place(self) -> str:
        """Return the end of its own path at the API server."""
        return f"/namespaces/{self.namespace}/{self.kind.lower()}s/{self.name}"


class Story(World, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A world whose workloads have parts."""

    workloads: tuple[Part, ...] = ()
    minutes: float = 150.0
    """Simulated minutes after which a story that is not over has failed."""

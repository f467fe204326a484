"""Everything that the simulated cluster is, without its faces: no HTTP and no controllers in it.

Made once by `cluster` and handed to whatever reads or writes the world's objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from gpu_pruner.model.clock import Clock
from gpu_pruner.sim.identity import Identities
from gpu_pruner.sim.moments import Moments
from gpu_pruner.sim.occupancy import Occupancy
from gpu_pruner.sim.resources import BUILT_IN, OTHERS_KINDS, Catalogue
from gpu_pruner.sim.store import Store
from gpu_pruner.sim.world import World
from gpu_pruner.sim.writes import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The parts that all others share."""

    world: World
    moments: Moments
    identities: Identities
    catalogue: Catalogue
    store: Store
    occupancy: Occupancy
    writer: Writer

    @classmethod
    def empty(cls, world: World, clock: Clock, *, history: int) -> Self:
        """Return the state of a world in which nothing has been created yet.

        Args:
            world: what will be created; decides which kinds there are.
            clock: the simulated time.
            history: how many changes of each resource are remembered for watches.
        """
        moments, identities = Moments(clock), Identities(world.seed)
        kinds = (*BUILT_IN, *OTHERS_KINDS)
        catalogue = Catalogue(tuple(one for one in kinds if one.kind not in world.absent_kinds))
        store = Store(history=history)
        return cls(
            world=world,
            moments=moments,
            identities=identities,
            catalogue=catalogue,
            store=store,
            occupancy=Occupancy(world),
            writer=Writer(store, catalogue, now=moments.now, identities=identities),
        )

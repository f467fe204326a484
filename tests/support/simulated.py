"""The simulated cluster under test: a small world, a clock that stands still, and a raw client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Self

from support.caller import Caller
from support.stepped_clock import SteppedClock

from gpu_pruner.sim.cluster import OPERATOR, SimulatedCluster, Tuning
from gpu_pruner.sim.tree import JsonObject, mapping, number, text
from gpu_pruner.sim.world import Node, Workload, World

DEPLOYMENTS = "/apis/apps/v1/namespaces/team-a/deployments"
STATEFUL_SETS = "/apis/apps/v1/namespaces/team-a/statefulsets"
NOTEBOOKS = "/apis/kubeflow.org/v1/namespaces/team-a/notebooks"
PODS = "/api/v1/namespaces/team-a/pods"
CONFIG_MAPS = "/api/v1/namespaces/team-a/configmaps"
UNTIL_READY = 21.0
"""Simulated seconds from a pod's creation to Ready, and one more."""
UNTIL_GONE = 11.0
"""Simulated seconds from a pod's deletion until it is gone, and one more."""

SMALL_WORLD = World(
    nodes=(Node(name="node-1", gpus=4), Node(name="node-2", gpus=2)),
    workloads=(
        Workload(kind="Deployment", namespace="team-a", name="serve", replicas=2),
        Workload(kind="StatefulSet", namespace="team-a", name="train", replicas=2),
        Workload(kind="Notebook", namespace="team-a", name="notebook-1"),
    ),
)


def caller_of(cluster: SimulatedCluster, user: str = OPERATOR) -> Caller:
    """Return somebody with the token of a user; nobody has none."""
    return Caller(cluster.url, token=cluster.token(user) if user else "")


@dataclass(slots=True)
class Simulation:
    """A cluster in its world, its clock, and somebody to speak to it."""

    cluster: SimulatedCluster
    clock: SteppedClock
    caller: Caller

    @classmethod
    async def of(
        cls,
        world: World,
        *,
        tuning: Tuning | None = None,
        crds: tuple[JsonObject, ...] = (),
    ) -> AsyncIterator[Self]:
        """Yield one running simulation, for a fixture."""
        clock = SteppedClock()
        async with SimulatedCluster(world, clock, tuning=tuning, crds=crds) as cluster:
            simulation = cls(cluster, clock, caller_of(cluster))
            yield simulation
            await simulation.caller.close()

    def status(self, kind: str, name: str) -> JsonObject:
        return mapping(self.cluster.get(kind, name=name, namespace="team-a"), "status")

    def replicas(self, kind: str, name: str) -> int:
        found = self.cluster.get(kind, name=name, namespace="team-a")
        return number(found, "spec", "replicas", default=-1)

    def pod_names(self, kind: str, name: str) -> list[str]:
        pods = self.cluster.pods_of(kind, name=name, namespace="team-a")
        return [text(pod, "metadata", "name") for pod in pods]

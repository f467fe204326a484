"""`SimulatedCluster`: the simulated world behind one loopback port, as demo and tests hold it.

An async context manager. It starts the API server, the controllers and the exporters on the running
event loop, and hands out addresses, credentials, the request log and the faults. What it tells is
read from the store, never from what a client claims. Called by the demo and by tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import msgspec
import yaml

from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp, rfc3339
from gpu_pruner.sim.access import Access
from gpu_pruner.sim.api import Api
from gpu_pruner.sim.controllers.loop import ControlLoop
from gpu_pruner.sim.deletes import DeleteOptions
from gpu_pruner.sim.exporter import Exporter
from gpu_pruner.sim.faults import Fault, Faults, Trouble
from gpu_pruner.sim.history import Scraping, openmetrics_history
from gpu_pruner.sim.journal import RequestRecord
from gpu_pruner.sim.kubelet import Pace
from gpu_pruner.sim.meter import Meter
from gpu_pruner.sim.resources import CRDS, NODES, PODS
from gpu_pruner.sim.seeding import node_condition, seed
from gpu_pruner.sim.serving import Server
from gpu_pruner.sim.state import State
from gpu_pruner.sim.store import Item, Key
from gpu_pruner.sim.targets import Target
from gpu_pruner.sim.tree import JsonObject, mapping, with_value
from gpu_pruner.sim.world import Workload, World, within

CONTROLLER = "gpu-pruner"
OPERATOR = "operator"
"""The person at the keyboard: what the demo does by hand is done under this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How the cluster behaves, apart from what is in it."""

    pace: Pace = field(default_factory=Pace)
    bookmark_seconds: Seconds = 30.0
    """Real seconds without a change after which a watch gets a bookmark; real servers: about 60."""
    history: int = 10_000
    """How many changes of each resource are remembered for watches."""
    anonymous: str = ""
    """Who a request without a token is; empty: nobody, 403. kubectl sends no token over HTTP."""


class SimulatedCluster:
    """A cluster that exists as long as its ``async with`` block.

    Attributes:
        requests: every request that the API server answered, oldest first.
        faults: misbehaviour in force; add to it, clear it.
        begin: when the simulation began, Unix seconds; the world's minutes count from here.
    """

    def __init__(
        self,
        world: World,
        clock: Clock,
        *,
        port: int = 0,
        crds: Sequence[Mapping[str, object]] = (),
        users: Iterable[str] = (CONTROLLER, OPERATOR),
        tuning: Tuning | None = None,
    ) -> None:
        tuning = tuning or Tuning()
        self.world = world
        self.faults = Faults()
        self.begin: Timestamp = clock.now()
        self._port = port
        self._crds = crds
        self._access = Access(world.seed, users, anonymous=tuning.anonymous)
        self._state = State.empty(world, clock, history=tuning.history)
        self._exporter = Exporter(
            Meter(world, self._state.occupancy, begin=self.begin), self._state.occupancy
        )
        self._control = ControlLoop(self._state, pace=tuning.pace)
        self._api = Api(
            self._state,
            access=self._access,
            faults=self.faults,
            bookmark_seconds=tuning.bookmark_seconds,
        )
        self._server = Server(
            self._api,
            access=self._access,
            faults=self.faults,
            now=self._state.moments.now,
            scrape=self._scrape,
        )
        self.requests: list[RequestRecord] = self._server.requests

    async def __aenter__(self) -> Self:
        """Build the world and start serving it."""
        for crd in self._crds:
            self._state.writer.create(Target(CRDS, ""), mapping(dict(crd)))
        seed(self._state, self._control, begin=self.begin)
        self._control.start()
        for workload in self.world.workloads:
            for minute in workload.pods_deleted:
                delete = partial(self._delete_pods, workload)
                self._state.moments.after(minute * MINUTE, delete)
        self._port = self._server.listen(self._port)
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Stop everything and cut every connection."""
        self._control.stop()
        await self._state.moments.close()
        await self._server.close()

    @property
    def url(self) -> str:
        """Return the address of the API server."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def exporter_urls(self) -> tuple[str, ...]:
        """Return the metrics addresses of the exporters, one per node, in the world's order."""
        return tuple(f"{self.url}/exporters/{one.name}/metrics" for one in self.world.nodes)

    def token(self, user: str = CONTROLLER) -> str:
        """Return the bearer token of a user that the cluster knows."""
        return self._access.token(user)

    def kubeconfig(self, user: str = CONTROLLER) -> str:
        """Return a kubeconfig file for a user that the cluster knows."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "simulated", "cluster": {"server": self.url}}],
            "users": [{"name": user, "user": {"token": self.token(user)}}],
            "contexts": [{"name": "simulated", "context": {"cluster": "simulated", "user": user}}],
            "current-context": "simulated",
        }
        return yaml.safe_dump(config, sort_keys=False)

    def get(self, kind: str, *, name: str, namespace: str = "") -> JsonObject | None:
        """Return an object as a copy, or None where there is none.

        Args:
            kind: for example ``Deployment``.
            name: of the object.
            namespace: empty for kinds without one.
        """
        item = self._find(kind, (namespace, name))
        return None if item is None else _copy(item)

    def all(self, kind: str, namespace: str = "") -> tuple[JsonObject, ...]:
        """Return all objects of a kind as copies, ordered by namespace and name."""
        resource = self._state.catalogue.of_kind(kind)
        found = self._state.store.all(resource, namespace) if resource else []
        return tuple(map(_copy, found))

    def pods_of(self, kind: str, *, name: str, namespace: str) -> tuple[JsonObject, ...]:
        """Return the pods at the bottom of an object's chain of controllers, as copies."""
        root = self._find(kind, (namespace, name))
        return tuple(map(_copy, self._pods_below(root))) if root else ()

    def _find(self, kind: str, key: Key) -> Item | None:
        resource = self._state.catalogue.of_kind(kind)
        return self._state.store.get(resource, key) if resource else None

    def _pods_below(self, item: Item) -> list[Item]:
        below = self._state.store.dependents(item.uid)  # of a pod, too: the leader of a group
        mine = [item] if item.resource is PODS else []
        return [*mine, *(pod for one in below for pod in self._pods_below(one))]

    def _delete_pods(self, workload: Workload) -> None:
        root = self._find(workload.kind, (workload.namespace, workload.name))
        for pod in self._pods_below(root) if root else ():
            target = Target(PODS, pod.namespace, pod.name)
            self._state.writer.delete(target, DeleteOptions())

    def gpus_allocated(self) -> int:
        """Return how many GPUs (and MIG slices) pods hold now."""
        return self._state.occupancy.allocated

    def set_node_ready(self, node: str, *, ready: bool) -> None:
        """Make a node Ready, or lose contact with it: its pods stay, new ones go elsewhere."""
        item = self._state.store.get(NODES, ("", node))
        if item is None:
            raise KeyError(node)
        moment = rfc3339(self._state.moments.now())
        conditions = [node_condition(ready=ready, at=moment)]
        self._state.store.put(NODES, with_value(item.body, ("status", "conditions"), to=conditions))

    def kill_exporter(self, node: str) -> Fault:
        """Make a node's exporter refuse connections until the returned fault is removed."""
        return self.faults.add(Fault(path=f"^/exporters/{node}/", trouble=Trouble.REFUSED))

    def silence_exporter(self, node: str) -> Fault:
        """Make a node's exporter accept and never answer until the returned fault is removed."""
        return self.faults.add(Fault(path=f"^/exporters/{node}/", trouble=Trouble.STALL))

    def cut_connections(self, path: str = "") -> None:
        """Cut the connections of requests now being answered whose path holds this text."""
        self._server.cut_connections(path)

    def forget_history(self) -> None:
        """Make every resource version and continue token given out so far expire."""
        self._state.store.compact()
        self._api.pages.forget()

    def history(self, scraping: Scraping) -> str:
        """Return what a Prometheus would have stored, as OpenMetrics text for promtool."""
        return "".join(openmetrics_history(self.world, self._exporter, scraping=scraping))

    def exposition(self, node: str) -> str:
        """Return what the exporter of a node answers now."""
        return self._exporter.exposition(node, self._state.moments.now())

    def _scrape(self, name: str) -> str | None:
        minute = self._exporter.meter.minute(self._state.moments.now())
        node = next((one for one in self.world.nodes if one.name == name), None)
        if node is None or within(node.exporter_gaps, minute):
            return None
        return self.exposition(name)


def _copy(item: Item) -> JsonObject:
    return mapping(msgspec.json.decode(item.full))

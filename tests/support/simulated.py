"""The simulated cluster under test: a small world, a clock that stands still, and a raw client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Self

from support.stepped_clock import SteppedClock
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPResponse

from gpu_pruner.sim.cluster import OPERATOR, SimulatedCluster, Tuning
from gpu_pruner.sim.patches import MERGE
from gpu_pruner.sim.tree import JsonObject, mapping, number, text
from gpu_pruner.sim.world import Node, Workload, World

DEPLOYMENTS = "/apis/apps/v1/namespaces/team-a/deployments"
STATEFUL_SETS = "/apis/apps/v1/namespaces/team-a/statefulsets"
NOTEBOOKS = "/apis/kubeflow.org/v1/namespaces/team-a/notebooks"
PODS = "/api/v1/namespaces/team-a/pods"
CONFIG_MAPS = "/api/v1/namespaces/team-a/configmaps"
NO_ANSWER = 599
"""tornado's status for a connection that ended without an answer."""
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


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: JsonObject
    raw: bytes
    headers: dict[str, str]

    @property
    def reason(self) -> str:
        return text(self.body, "reason")

    @property
    def version(self) -> str:
        return text(self.body, "metadata", "resourceVersion")

    @classmethod
    def of(cls, response: HTTPResponse) -> Self:
        try:
            body = mapping(json.loads(response.body))
        except ValueError:
            body = {}
        return cls(response.code, body, response.body, dict(response.headers))


class Caller:
    """Somebody with a token, speaking raw HTTP over the real socket."""

    def __init__(self, cluster: SimulatedCluster, user: str = OPERATOR) -> None:
        self._cluster = cluster
        self._token = cluster.token(user) if user else ""
        self._http = AsyncHTTPClient(force_instance=True)

    async def get(self, path: str, *, accept: str = "application/json") -> Answer:
        return await self.send("GET", path, headers={"Accept": accept})

    async def post(self, path: str, body: JsonObject) -> Answer:
        return await self.send("POST", path, body=body)

    async def put(self, path: str, body: JsonObject) -> Answer:
        return await self.send("PUT", path, body=body)

    async def patch(self, path: str, body: object, *, kind: str = MERGE) -> Answer:
        return await self.send("PATCH", path, body=body, headers={"Content-Type": kind})

    async def delete(self, path: str, body: JsonObject | None = None) -> Answer:
        return await self.send("DELETE", path, body=body)

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Ask, and return the answer; a connection that ends without one is `NO_ANSWER`."""
        try:
            response = await self._http.fetch(
                self._cluster.url + path,
                raise_error=False,
                method=method,
                body=None if body is None else json.dumps(body),
                headers=self._credentials() | (headers or {}),
                allow_nonstandard_methods=True,
            )
        except HTTPClientError as error:
            return Answer(error.code, {}, b"", {})
        return Answer.of(response)

    async def watch(
        self, path: str, *, accept: str = "application/json"
    ) -> AsyncGenerator[JsonObject, None]:
        """Go through the events of a watch until the server ends it."""
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        fetching = asyncio.ensure_future(
            self._http.fetch(
                self._cluster.url + path,
                headers=self._credentials() | {"Accept": accept},
                streaming_callback=lines.put_nowait,
                request_timeout=0,
                raise_error=False,
            )
        )
        fetching.add_done_callback(lambda _: lines.put_nowait(b""))
        rest = b""
        try:
            while chunk := await lines.get():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield mapping(json.loads(line))
        finally:
            fetching.cancel()

    def close(self) -> None:
        self._http.close()

    def _credentials(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}


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
            caller = Caller(cluster)
            yield cls(cluster, clock, caller)
            caller.close()

    def status(self, kind: str, name: str) -> JsonObject:
        return mapping(self.cluster.get(kind, name=name, namespace="team-a"), "status")

    def replicas(self, kind: str, name: str) -> int:
        found = self.cluster.get(kind, name=name, namespace="team-a")
        return number(found, "spec", "replicas", default=-1)

    def pod_names(self, kind: str, name: str) -> list[str]:
        pods = self.cluster.pods_of(kind, name=name, namespace="team-a")
        return [text(pod, "metadata", "name") for pod in pods]

"""Plays the kubelets and device plugins of a described world's nodes against a real API server.

Registers the nodes with their GPUs, MIG slices and labels, runs the pods that are bound to them
(Running, then Ready), gives them devices, and confirms deletions. The same description drives the
simulated exporter, so `FakeKubelet.exposition` answers what a scrape of the node would. Slow by
`pace`, stuck by `freeze`, dead by `report`. It works in a thread of its own, so that tests may
block. It never creates or chooses a pod: the real controllers and the real scheduler do.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Self, TypeVar

import aiohttp
from support.api_server import Api, ApiError
from support.kubelet_reports import node_manifest, node_ready, running

from gpu_pruner.model.units import Seconds
from gpu_pruner.sim.exporter import Exporter
from gpu_pruner.sim.history import Scraping, openmetrics_history
from gpu_pruner.sim.kubelet import gpu_requests
from gpu_pruner.sim.meter import Meter
from gpu_pruner.sim.occupancy import Device, Holding, Occupancy
from gpu_pruner.sim.tree import JsonObject, elements, mapping, text, texts
from gpu_pruner.sim.world import Behaviour, Node, World

T = TypeVar("T")

_NOTHING_TO_DO = {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
"""The pod is gone, or another has its name."""
_AGAIN_SECONDS = 0.2
_THREAD_SECONDS = 60.0
_AT_ONCE: JsonObject = {"gracePeriodSeconds": 0}
_OWNERS = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
"""Kinds that may themselves have an owner which the world describes."""


@dataclass
class Pace:
    """How long the steps of a pod's life take, in real seconds. May be changed at any time."""

    start_seconds: Seconds = 0.0
    """From bound to Running."""
    ready_seconds: Seconds = 0.0
    """From Running to Ready."""
    stop_seconds: Seconds = 0.0
    """From deleted to gone."""
    age_seconds: Seconds = 0.0
    """How long ago pods that start now are said to have started, and to have become Ready."""


@dataclass
class FakeKubelet:
    """A context manager around the kubelets of a world's nodes; removes the nodes at its end."""

    api: Api
    world: World = field(default_factory=World)
    pace: Pace = field(default_factory=Pace)
    extra: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """More resources, by node: what the world has no word for, ``nvidia.com/gpu.shared`` for
    example. Their pods hold no device of the world."""

    def __enter__(self) -> Self:
        self._occupancy = Occupancy(self.world)
        meter = Meter(self.world, self._occupancy, begin=time.time())
        self._exporter = Exporter(meter, self._occupancy)
        self._pods: dict[str, JsonObject] = {}
        self._begun: set[tuple[str, str]] = set()
        self._frozen: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._watching = threading.Event()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._in_thread, name="kubelet", daemon=True)
        self._thread.start()
        if not self._watching.wait(_THREAD_SECONDS) or self._ended.done():
            self._ended.result(0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._ended.done():
            self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join(_THREAD_SECONDS)
        self._ended.result(0)

    # What a test may do to it.

    def exposition(self, node: str) -> str:
        """Return what a scrape of a node's DCGM exporter answers now."""

        async def scrape() -> str:
            return self._exporter.exposition(node, time.time())

        return self._call(scrape())

    def history(self, scraping: Scraping) -> str:
        """Return what a Prometheus would have stored, as OpenMetrics text for promtool."""

        async def told() -> str:
            return "".join(openmetrics_history(self.world, self._exporter, scraping=scraping))

        return self._call(told())

    def freeze(self, *nodes: str) -> None:
        """Let nodes neither start nor end pods, until `thaw`."""
        self._frozen |= set(nodes)

    def thaw(self, *nodes: str) -> None:
        """Let frozen nodes, by default all, go on with everything that happened meanwhile."""

        async def go_on() -> None:
            self._frozen -= set(nodes or self._frozen)
            for pod in list(self._pods.values()):
                self._consider(pod)

        self._call(go_on())

    def report(self, node: str, *, ready: bool) -> None:
        """Say that a node is Ready, or no longer heard of."""
        path = f"/api/v1/nodes/{node}/status"
        self._call(self.api.patch(path, {"status": {"conditions": [node_ready(ready=ready)]}}))

    def _call(self, coroutine: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_THREAD_SECONDS)

    # The loop.

    def _in_thread(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._run())
        except asyncio.CancelledError:
            if self._failure is None:
                self._ended.set_result(None)
            else:
                self._ended.set_exception(self._failure)
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            self._ended.set_exception(error)
        finally:
            self._watching.set()

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._main = task
        async with self.api:
            for node in self.world.nodes:
                await self._register(node)
            try:
                while True:
                    await self._follow()
            finally:
                for one in self._tasks:
                    one.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
                await self._remove_everything()

    async def _remove_everything(self) -> None:
        """Remove the nodes, then their pods: what the controllers make anew stays Pending."""
        nodes = [f"/api/v1/nodes/{one.name}" for one in self.world.nodes]
        await asyncio.gather(*(self._quietly(self.api.delete(one)) for one in nodes))
        pods = [_path(one) for one in self._pods.values()]
        await asyncio.gather(*(self._quietly(self.api.delete(one, _AT_ONCE)) for one in pods))

    async def _follow(self) -> None:
        try:
            pods, version = await self.api.items("/api/v1/pods")
            listed = {text(one, "metadata", "uid") for one in pods}
            for uid in set(self._pods) - listed:
                self._forget(uid)
            for pod in pods:
                self._consider(pod)
            self._watching.set()
            async for kind, pod in self.api.watch("/api/v1/pods", since=version):
                if kind == "DELETED":
                    self._forget(text(pod, "metadata", "uid"))
                else:
                    self._consider(pod)
        except (ApiError, aiohttp.ClientError, TimeoutError):
            await asyncio.sleep(_AGAIN_SECONDS)

    def _consider(self, pod: JsonObject) -> None:
        """Begin what a pod needs, once."""
        uid, node = text(pod, "metadata", "uid"), text(pod, "spec", "nodeName")
        if node not in self._occupancy.devices:
            return
        self._pods[uid] = pod
        if node in self._frozen:
            return
        if text(pod, "metadata", "deletionTimestamp"):
            self._once(uid, "end", lambda: self._end(pod))
        elif text(pod, "status", "phase") == "Pending":
            self._once(uid, "start", lambda: self._start(pod))

    def _once(
        self, uid: str, step: str, begin: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        if (uid, step) not in self._begun:
            self._begun.add((uid, step))
            task = self._loop.create_task(begin())
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._failure = error
            self._main.cancel()

    def _forget(self, uid: str) -> None:
        self._pods.pop(uid, None)
        self._occupancy.release(uid, time.time())
        self._begun -= {(uid, "start"), (uid, "end")}

    # A pod's life.

    async def _start(self, pod: JsonObject) -> None:
        await asyncio.sleep(self.pace.start_seconds)
        if self._is_ending(pod):
            return
        missing = await self._allocate(pod)
        if missing:
            failed: JsonObject = {"phase": "Failed", "reason": f"OutOf{missing}"}
            await self._report(pod, failed)
            return
        started = time.time() - self.pace.age_seconds
        await self._report(pod, running(pod, started))
        await asyncio.sleep(self.pace.ready_seconds)
        if not self._is_ending(pod):
            since = started + self.pace.ready_seconds
            await self._report(pod, running(pod, started, ready_since=since))

    async def _end(self, pod: JsonObject) -> None:
        await asyncio.sleep(self.pace.stop_seconds)
        uid = text(pod, "metadata", "uid")
        this = _AT_ONCE | {"preconditions": {"uid": uid}}
        await self._persist(lambda: self.api.delete(_path(pod), this))

    def _is_ending(self, pod: JsonObject) -> bool:
        newest = self._pods.get(text(pod, "metadata", "uid"))
        return newest is None or bool(text(newest, "metadata", "deletionTimestamp"))

    async def _report(self, pod: JsonObject, status: JsonObject) -> None:
        body: JsonObject = {"metadata": {"uid": text(pod, "metadata", "uid")}, "status": status}
        await self._persist(lambda: self.api.patch(f"{_path(pod)}/status", body))

    async def _persist(self, call: Callable[[], Awaitable[object]]) -> None:
        """Try until the server has answered: it may be restarted under us."""
        while not await self._quietly(call()):
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _quietly(self, call: Awaitable[object]) -> bool:
        try:
            await call
        except ApiError as error:
            return error.status in _NOTHING_TO_DO
        except (aiohttp.ClientError, TimeoutError):
            return False
        return True

    # Devices.

    async def _allocate(self, pod: JsonObject) -> str:
        """Give a pod its devices; return the resource that the node has too little of, if one."""
        node = text(pod, "spec", "nodeName")
        root = await self._root_of(pod)  # the last await: what follows must not be interleaved
        devices: list[Device] = []
        for resource, count in gpu_requests(pod).items():
            free = self._occupancy.free(node, resource)
            if len(free) < count and resource not in self.extra.get(node, {}):
                return resource
            devices += free[:count]
        self._occupancy.hold(tuple(self._holdings(pod, root, devices)))
        return ""

    def _holdings(
        self, pod: JsonObject, root: tuple[str, str], devices: Iterable[Device]
    ) -> Iterable[Holding]:
        namespace = text(pod, "metadata", "namespace")
        described = self.world.workload(root[0], namespace=namespace, name=root[1])
        ordinal = texts(pod, "metadata", "labels").get("apps.kubernetes.io/pod-index", "0")
        containers = [
            text(one, "name")
            for one in elements(pod, "spec", "containers")
            for _ in range(sum(gpu_requests({"spec": {"containers": [one]}}).values()))
        ]
        for index, (device, container) in enumerate(zip(devices, containers, strict=False)):
            yield Holding(
                device=device,
                namespace=namespace,
                pod=text(pod, "metadata", "name"),
                uid=text(pod, "metadata", "uid"),
                container=container,
                behaviour=described.behaviour_of(int(ordinal), index) if described else Behaviour(),
                since=time.time() - self.pace.age_seconds,
            )

    async def _root_of(self, pod: JsonObject) -> tuple[str, str]:
        """Return kind and name of the topmost owner that can be found."""
        kind, name, body = "Pod", text(pod, "metadata", "name"), pod
        namespace = text(pod, "metadata", "namespace")
        while owners := elements(body, "metadata", "ownerReferences"):
            kind, name = text(owners[0], "kind"), text(owners[0], "name")
            if kind not in _OWNERS:
                break
            path = f"/apis/apps/v1/namespaces/{namespace}/{_OWNERS[kind]}/{name}"
            try:
                body = await self.api.get(path)
            except ApiError:
                break
        return kind, name

    async def _register(self, node: Node) -> None:
        resources = [one.resource for one in self._occupancy.devices[node.name]]
        counts = {name: resources.count(name) for name in resources}
        counts |= dict(self.extra.get(node.name, {}))
        manifest = node_manifest(node, counts)
        await self.api.create("/api/v1/nodes", manifest)
        path = f"/api/v1/nodes/{node.name}"
        await self.api.patch(path, {"spec": {"taints": None}})  # admission taints every new node
        await self.api.patch(f"{path}/status", {"status": manifest["status"]})


def _path(pod: JsonObject) -> str:
    metadata = mapping(pod, "metadata")
    return f"/api/v1/namespaces/{text(metadata, 'namespace')}/pods/{text(metadata, 'name')}"

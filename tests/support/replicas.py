"""Several replicas of the controller in one cluster: who leads, and who is stopped or killed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from support.between import Between, Order
from support.controller import WAIT_SECONDS, Controller
from support.product import Product, until

from gpu_pruner.model.annotations import HOLD
from gpu_pruner.sim.tree import JsonObject, text

LEASE_SECONDS = 6.0
TIMES = ("--lease-duration", "6", "--lease-renew-deadline", "4", "--lease-retry", "1")
"""Short enough for a test to wait for, long enough for a busy machine."""
WRITES = (
    ("POST", "/events"),
    ("PATCH", "/status"),
    ("PATCH", "/server"),
    ("POST", "/gpuworkloads"),
)
"""All that a controller writes, but for the Lease, where every workload is called server."""
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-pruner-system/leases/gpu-pruner"


@dataclass
class Replicas:
    product: Product
    running: dict[str, Controller] = field(default_factory=dict)
    """By identity in the Lease, without its random ending."""

    def lease(self) -> JsonObject:
        return self.product.get(_LEASE)

    @property
    def holder(self) -> str:
        """Whom the Lease names."""
        return text(self.lease(), "spec", "holderIdentity").rpartition("_")[0]

    @property
    def leader(self) -> Controller:
        return self.running[self.holder]

    @property
    def follower(self) -> Controller:
        [other] = [one for name, one in self.running.items() if name != self.holder]
        return other

    def until(self, happened: Callable[[], object]) -> None:
        """Wait for something that any of them does."""
        until(happened)

    def until_followed(self, former: str) -> None:
        """Wait until somebody else leads, and knows it."""
        self.until(lambda: self.holder not in {"", former})
        self.until(lambda: self.leader.get("/readyz").get("leading") is True)

    @contextmanager
    def frozen(self) -> Iterator[Controller]:
        """Stop the leader until another leads and has begun a cycle; then wake it."""
        former = self.holder
        stopped = self.running[former]
        stopped.signal(signal.SIGSTOP)
        try:
            self.until_followed(former)
            yield stopped
        finally:
            stopped.signal(signal.SIGCONT)

    def release(self) -> None:
        """Let the world go its way."""
        spaces = {one.namespace for one in self.product.world.workloads}
        self.product.lab.kubectl("annotate", "namespace", *spaces, f"{HOLD}-")

    def kill_leader(self) -> str:
        """Kill the leader and return its name."""
        former = self.holder
        assert self.running.pop(former).stop(signal.SIGKILL) == -signal.SIGKILL
        return former


@contextmanager
def replicas(
    product: Product,
    *arguments: str,
    kubeconfigs: Mapping[str, Path | None] = MappingProxyType({"a": None, "b": None}),
    held: bool = False,
) -> Iterator[Replicas]:
    """Run several, by name; one of them leads when this begins.

    Until all are there the world is held, or on a busy machine the story would be over by then.

    Args:
        product: the world.
        arguments: for each of them.
        kubeconfigs: by name; None is that of our ServiceAccount.
        held: whether it stays held until somebody calls `Replicas.release`.
    """
    it = Replicas(product)
    spaces = {one.namespace for one in product.world.workloads}
    product.lab.kubectl("annotate", "namespace", *spaces, f"{HOLD}=true")
    try:
        for name, kubeconfig in kubeconfigs.items():
            more = (*TIMES, "--lease-identity", name, *arguments)
            it.running[name] = one = product.controller(*more, kubeconfig=kubeconfig)
            one.__enter__()
            it.until(lambda one=one: one.get("/readyz").get("ready"))
            it.until(lambda: it.holder)
        it.until(lambda: it.leader.get("/readyz").get("leading") is True)
        if not held:
            it.release()
        yield it
    finally:
        codes = {}
        for name, one in it.running.items():
            one.signal(signal.SIGCONT)
            codes[name] = one.stop()
    assert set(codes.values()) == {0}, codes


class Trap:
    """Freezes whoever makes the next write of a kind, in the middle of it, until another leads.

    The write itself is on its way already. It arrives while its sender is frozen, either at once,
    so that only its answer comes too late, or after another has begun to lead.
    """

    def __init__(self, both: Replicas, proxies: Mapping[str, Between]) -> None:
        self._both = both
        self._proxies = proxies
        self._lock = threading.Lock()
        self._followed = threading.Event()
        self._orders: list[Order] = []
        self._later: list[Order] = []
        self._caught = ""

    def set(self, method: str, path: str, *, late: bool) -> None:
        """Lie in wait, in the background."""
        self._followed.clear()
        self._caught = ""
        self._orders = [
            one.before(method, path, partial(self._spring, name, late=late))
            for name, one in self._proxies.items()
        ]

    def until_over(self) -> int:
        """Wait until who was caught has looked around, and return what it wrote after that one."""
        assert self._followed.wait(WAIT_SECONDS), "nobody came by, or nobody followed"
        caught = self._both.running[self._caught]
        self._both.until(lambda: caught.get("/readyz").get("leading") is False)
        for one in (*self._orders, *self._later):
            one.times = 0
        return sum(one.done for one in self._later)

    def _spring(self, name: str, *, late: bool) -> None:
        with self._lock:
            if self._caught:
                return
            self._caught = name
        self._both.running[name].signal(signal.SIGSTOP)
        waking = threading.Thread(target=self._wake, args=(name,), daemon=True)
        waking.start()
        if late:
            self._followed.wait(WAIT_SECONDS)

    def _wake(self, name: str) -> None:
        self._both.until_followed(name)
        self._later = [
            self._proxies[name].before(method, path, lambda: None, times=1_000_000)
            for method, path in WRITES
        ]
        self._followed.set()
        self._both.running[name].signal(signal.SIGCONT)

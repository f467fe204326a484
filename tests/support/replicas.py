"""Several replicas of the controller in one cluster: who leads, and who is stopped or killed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from support.controller import Controller
from support.product import Product, until

from gpu_pruner.sim.tree import JsonObject, text

LEASE_SECONDS = 6.0
TIMES = ("--lease-duration", "6", "--lease-renew-deadline", "4", "--lease-retry", "1")
"""Short enough for a test to wait for, long enough for a busy machine."""
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

    def kill_leader(self) -> str:
        """Kill the leader and return its name."""
        former = self.holder
        assert self.running.pop(former).stop(signal.SIGKILL) == -signal.SIGKILL
        return former


@contextmanager
def replicas(product: Product, *arguments: str, names: tuple[str, ...] = ("a", "b")):
    """Run several; the first of them leads when this returns."""
    it = Replicas(product)
    try:
        for name in names:
            one = product.controller(*TIMES, "--lease-identity", name, *arguments)
            it.running[name] = one.__enter__()
            it.until(lambda: it.holder)
            one.until(lambda one=one: one.get("/readyz").get("ready"))
        it.until(lambda: it.leader.get("/readyz").get("leading") is True)
        yield it
    finally:
        codes = {}
        for name, one in it.running.items():
            one.signal(signal.SIGCONT)
            codes[name] = one.stop()
    assert set(codes.values()) == {0}, (codes, next(iter(it.running.values())).tail())

"""Which pod holds which GPU, now and before: the memory of a device plugin.

Answers who holds a device at a moment, for the exporter's labels and its energy counter, and
gives devices out. It never forgets a holding, so history and live telemetry agree.
Called by `kubelet` (which writes) and `meter` (which reads).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from gpu_pruner.model.units import Timestamp
from gpu_pruner.sim.identity import uuid_of
from gpu_pruner.sim.world import Behaviour, Node, World

SHARED = "nvidia.com/gpu.shared"
"""The resource of a time-sliced GPU, as NVIDIA's device plugin names it with renameByDefault."""


@dataclass(frozen=True, slots=True)
class Device:
    """A thing that a pod can hold: a whole GPU, a MIG slice of one, or a time-sliced share."""

    node: str
    index: int
    """Index of the GPU within its node."""
    uuid: str
    """Of the physical GPU."""
    model: str
    resource: str
    """Name of the Kubernetes resource."""
    mig_profile: str = ""
    mig_instance: str = ""
    share: str = ""
    """Number of a time-sliced share; empty for what nobody else can hold."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A pod that holds a device for a time."""

    device: Device
    namespace: str
    pod: str
    uid: str
    container: str
    behaviour: Behaviour
    since: Timestamp
    until: Timestamp = float("inf")


class Occupancy:
    """All devices of the world and all holdings of them."""

    def __init__(self, world: World) -> None:
        self.devices: dict[str, tuple[Device, ...]] = {
            node.name: _devices_of(node, world.seed) for node in world.nodes
        }
        """By node, ordered by GPU and slice; shares by their number, so that they spread."""
        self._holdings: dict[Device, list[Holding]] = defaultdict(list)
        self._held: dict[Device, Holding] = {}
        self._by_pod: dict[str, tuple[Device, ...]] = {}

    def free(self, node: str, resource: str) -> tuple[Device, ...]:
        """Return the devices of a node that nobody holds, in order."""
        return tuple(
            one
            for one in self.devices.get(node, ())
            if one.resource == resource and one not in self._held
        )

    def hold(self, holdings: tuple[Holding, ...]) -> None:
        """Give devices to one pod. They must be free."""
        for one in holdings:
            self._holdings[one.device].append(one)
            self._held[one.device] = one
        if holdings:
            self._by_pod[holdings[0].uid] = tuple(one.device for one in holdings)

    def release(self, uid: str, at: Timestamp) -> None:
        """Take back what a pod holds; nothing happens where it holds nothing."""
        for device in self._by_pod.pop(uid, ()):
            ended = replace(self._held.pop(device), until=at)
            self._holdings[device][-1] = ended

    def held_by(self, uid: str) -> tuple[Device, ...]:
        """Return the devices that a pod holds now."""
        return self._by_pod.get(uid, ())

    def holders(self, device: Device) -> tuple[Holding, ...]:
        """Return everybody who held the device, oldest first."""
        return tuple(self._holdings.get(device, ()))

    def holder(self, device: Device, at: Timestamp) -> Holding | None:
        """Return who held the device at a moment, or None."""
        for one in reversed(self._holdings.get(device, ())):
            if one.since <= at < one.until:
                return one
        return None

    @property
    def allocated(self) -> int:
        """Return how many devices are held now."""
        return len(self._held)


def _devices_of(node: Node, seed: int) -> tuple[Device, ...]:
    if node.shares > 1:
        return tuple(
            Device(node.name, gpu, _uuid(node, seed, gpu), node.model, SHARED, share=str(share))
            for share in range(node.shares)
            for gpu in range(node.gpus)
        )
    devices: list[Device] = []
    for index in range(node.gpus):
        uuid = _uuid(node, seed, index)
        if not node.mig:
            devices.append(Device(node.name, index, uuid, node.model, "nvidia.com/gpu"))
        for instance, profile in enumerate(node.mig, start=7):
            devices.append(
                Device(
                    node=node.name,
                    index=index,
                    uuid=uuid,
                    model=node.model,
                    resource=f"nvidia.com/mig-{profile}",
                    mig_profile=profile,
                    mig_instance=str(instance),
                )
            )
    return tuple(devices)


def _uuid(node: Node, seed: int, index: int) -> str:
    return f"GPU-{uuid_of(seed, 'gpu', node.name, index)}"

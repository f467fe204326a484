"""How many GPUs a pod holds, by the API server's own arithmetic.

Answers which extended resources are GPUs and how many of each a pod has at once. It knows
nothing of telemetry. `observe.cluster_records` calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from sys import intern

from gpu_pruner.kube.wire import Container, PodSpec, Quantity

_NVIDIA = "nvidia.com/"
_DIGITS = 9
_SHARES = ("mem", "core", "percent", "monitoring")
"""Words in the names of resources that count something else than devices, such as GPU memory."""


@dataclass(frozen=True, slots=True)
class GpuRequests:
    """What a pod requests."""

    counts: Mapping[str, int]
    """GPU resource name to devices; only those above 0."""
    odd: tuple[str, ...] = ()
    """Quantities that are no whole numbers; each counts as one device."""


def is_gpu(resource: str) -> bool:
    """Return whether an extended resource is some vendor's GPU, or a part of one.

    ``nvidia.com/gpu``, ``nvidia.com/gpu.shared`` and ``nvidia.com/mig-1g.10gb`` are; so is
    every other vendor's name with ``gpu`` in it, for a pod that is left out is never protected.
    """
    if resource.startswith(_NVIDIA):
        return resource.startswith(("nvidia.com/gpu", "nvidia.com/mig-"))
    domain, slash, _ = resource.partition("/")
    return bool(slash) and "gpu" in resource.lower() and domain != "requests"


def counts_devices(resource: str) -> bool:
    """Return whether a GPU resource counts devices and not, for example, mebibytes of one."""
    name = resource.partition("/")[2].lower()
    return not any(word in name for word in _SHARES)


def gpu_requests(spec: PodSpec) -> GpuRequests:
    """Return the most GPUs that a pod holds at once, per resource.

    That is the larger of what runs together (containers and sidecars) and of what any init
    container needs beside the sidecars started before it. A pod that requests only shares of a
    GPU (memory, cores) holds one device.

    Source: Kubernetes' effective pod requests, with sidecars as in KEP-753.
    """
    odd: list[str] = []
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers or ():
        needs = _needs(container, odd)
        if container.restart_policy == "Always":
            _add(sidecars, needs)
        else:
            together = dict(sidecars)
            _add(together, needs)
            _raise_to(peak, together)
    running = dict(sidecars)
    for container in spec.containers or ():
        _add(running, _needs(container, odd))
    _raise_to(peak, running)
    return GpuRequests(_devices(peak), tuple(odd))


def whole_gpus(quantities: Mapping[str, Quantity] | None) -> Mapping[str, int]:
    """Return the GPU resources of a node; a quantity that is no whole number is left out."""
    found = {name: _count(quantity) for name, quantity in (quantities or {}).items()}
    return {
        intern(name): count
        for name, count in found.items()
        if count and is_gpu(name) and counts_devices(name)
    }


def _devices(peak: Mapping[str, int]) -> Mapping[str, int]:
    devices = {name: count for name, count in peak.items() if count > 0 and counts_devices(name)}
    shares = sorted(name for name, count in peak.items() if count > 0)
    return devices or dict.fromkeys(shares[:1], 1)


def _needs(container: Container, odd: list[str]) -> dict[str, int]:
    """Return a container's GPU requests; limits count where no request is given."""
    resources = container.resources
    if resources is None or not (resources.requests or resources.limits):
        return {}
    wanted = {**(resources.limits or {}), **(resources.requests or {})}
    needs: dict[str, int] = {}
    for name, quantity in wanted.items():
        if not is_gpu(name):
            continue
        count = _count(quantity)
        if count is None:
            odd.append(f"{name}: {quantity!r:.40}")
        needs[intern(name)] = 1 if count is None else count
    return needs


def _count(quantity: Quantity) -> int | None:
    """Return a whole quantity, or None for what is none."""
    if isinstance(quantity, str):
        text = quantity.strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None
    if quantity is None or quantity != quantity // 1 or quantity < 0:
        return None
    return int(quantity)


def _add(total: dict[str, int], more: Iterable[tuple[str, int]] | Mapping[str, int]) -> None:
    for name, count in dict(more).items():
        total[name] = total.get(name, 0) + count


def _raise_to(peak: dict[str, int], level: Mapping[str, int]) -> None:
    for name, count in level.items():
        peak[name] = max(peak.get(name, 0), count)

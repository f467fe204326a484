"""Who held which device in a history, and which of them make one workload.

A history knows pods by the names in the labels of series. It groups them by the roots that it is
told, and takes a pod of which nothing is told for a workload of its own; it guesses no owner from a
name. `grid` judges what it returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gpu_pruner.decide.bits import between, next_in
from gpu_pruner.decide.pauses import Holding, PastWorkload
from gpu_pruner.decide.recording import PastDevice
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceId, PodName

_EXPORTER = re.compile(r".*dcgm-exporter.*")
"""Pods that hold nothing: a target's label names the exporter itself."""

_GONE_STEPS = 5
"""A pod is gone where its device was seen without it in this many steps between two sights of it.
Where the device itself was not seen, the pod is taken to hold it still."""


def pods_seen(
    devices: Iterable[PastDevice], *, honor_labels: bool | None
) -> Mapping[PodName, tuple[Holding, ...]]:
    """Return what each pod held.

    Args:
        devices: of the history. A board that has slices is held by nobody.
        honor_labels: as in `resolve.attribution`; None: whichever label names a workload.
    """
    known = tuple(devices)
    sliced = {one.device.uuid for one in known if one.device.mig_instance}
    jobs = frozenset(
        labels.job for one in known for labels in one.sightings if labels.exported is not None
    )
    found: dict[PodName, list[Holding]] = {}
    for past in known:
        if not past.device.mig_instance and past.device.uuid in sliced:
            continue
        everything = 0
        for mask in past.sightings.values():
            everything |= mask
        for pod, seen in _holders(past, jobs, honor_labels=honor_labels).items():
            stretches = _stretches(seen, everything & ~seen)
            found.setdefault(pod, []).extend(
                Holding(past.device, first, end) for first, end in stretches
            )
    return {pod: tuple(found[pod]) for pod in sorted(found)}


def _holders(
    past: PastDevice, jobs: frozenset[str], *, honor_labels: bool | None
) -> dict[PodName, int]:
    """Return the steps in which each pod was named by a device's labels."""
    found: dict[PodName, int] = {}
    for labels, seen in past.sightings.items():
        native = None if honor_labels is False else labels.native
        exported = None if honor_labels else labels.exported
        if honor_labels is None and native is not None:
            # Where any series of a job has exported_pod, a pod alone is the exporter's own.
            exporter = labels.job in jobs or _EXPORTER.fullmatch(native.name)
            native = None if exporter else native
        pod = exported or native
        if pod is not None:
            found[pod] = found.get(pod, 0) | seen
    return found


def _stretches(seen: int, without: int) -> Iterable[tuple[int, int]]:
    """Yield first step and end of each stretch that a pod held a device for."""
    first = next_in(seen, 0)
    end = first
    while first is not None and end is not None:
        end = next_in(~seen, end) or 0
        again = next_in(seen, end)
        if again is not None and (without & between(end, again)).bit_count() < _GONE_STEPS:
            end = again
            continue
        yield first, end
        first = end = again


def workloads(
    pods: Mapping[PodName, tuple[Holding, ...]],
    roots: Mapping[PodName, str],
    models: Mapping[DeviceId, str],
    *,
    rules: Rules,
) -> tuple[PastWorkload, ...]:
    """Put pods together into workloads, those left out that the rules never pause.

    Args:
        pods: with what each held.
        roots: names of their roots, for example ``deployment/finetune``, as far as known.
        models: of the devices.
        rules: for the namespaces and models that may be paused.
    """
    found: dict[tuple[str, str], list[Holding]] = {}
    for pod, holdings in pods.items():
        if pod.namespace in rules.protected_namespaces:
            continue
        if rules.namespaces is not None and not re.fullmatch(rules.namespaces, pod.namespace):
            continue
        chosen = rules.models
        if chosen is not None and not all(
            re.fullmatch(chosen, models.get(one.device, "")) for one in holdings
        ):
            continue
        name = roots.get(pod, f"pod/{pod.name}")
        found.setdefault((pod.namespace, name), []).extend(holdings)
    return tuple(
        PastWorkload(namespace, name, tuple(found[namespace, name]))
        for namespace, name in sorted(found)
    )

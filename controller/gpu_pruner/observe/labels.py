"""From a series' labels to the device it is about and the pods it names.

The one list of label names, for queries and for decoding alike. Nothing here decides which of two
label triples names the workload: both are handed over and `resolve` checks them against the API.
An empty label is an absent one (exporter 2.x printed empty labels for unallocated GPUs).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from gpu_pruner.model.signals import DeviceId, PodName, SeriesLabels

UUID = "UUID"
MIG_INSTANCE = "GPU_I_ID"
MIG_PROFILE = "GPU_I_PROFILE"
EXPORTED_NAMESPACE = "exported_namespace"
EXPORTED_POD = "exported_pod"
NAMESPACE = "namespace"
POD = "pod"
POD_UID = "pod_uid"
NODE_NAMES = ("Hostname", "hostname")
"""Either case: exporters from 4.8.3 on write it small."""
MODEL = "modelName"
REPLICA = "vgpu"
JOB = "job"

IDENTITY = (
    UUID,
    MIG_INSTANCE,
    MIG_PROFILE,
    EXPORTED_NAMESPACE,
    EXPORTED_POD,
    NAMESPACE,
    POD,
    POD_UID,
    *NODE_NAMES,
    MODEL,
    REPLICA,
    JOB,
)
"""Labels that series are told apart by. Series that differ in others only are merged by maximum."""


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """The device of a series, and everything else that its labels say.

    Compared as an object, because tens of thousands are looked up per answer: `Identities` makes
    one per label set. Two that say the same give two tracks, which is harmless.
    """

    device: DeviceId
    labels: SeriesLabels


Key = TypeVar("Key", bound=Hashable)

MOST_IDENTITIES = 500_000
"""Label sets remembered; when there are more (churn over weeks), all are forgotten and re-read."""


class Identities(Generic[Key]):
    """Remembers what label sets mean, so that each is read once and not in every cycle."""

    def __init__(self, read: Callable[[Key], Mapping[str, str]], *, job: str = "") -> None:
        """Make an empty memory.

        Args:
            read: returns the labels that a key stands for; called for unknown keys only.
            job: see `identify`.
        """
        self._read = read
        self._job = job
        self._known: dict[Key, Identity | None] = {}

    def of(self, key: Key) -> Identity | None:
        """Return the identity of a label set, or None where it names no device."""
        try:
            return self._known[key]
        except KeyError:
            if len(self._known) >= MOST_IDENTITIES:
                self._known.clear()
            identity = identify(self._read(key), job=self._job)
            self._known[key] = identity
            return identity


def identify(labels: Mapping[str, str], *, job: str = "") -> Identity | None:
    """Read the labels of one series.

    Args:
        labels: label name to value.
        job: what to call the origin where the series has no ``job`` label.

    Returns:
        None where the series names no device (CPU metrics of the exporter, for example).
    """
    uuid = labels.get(UUID)
    if not uuid:
        return None
    return Identity(
        DeviceId(uuid, labels.get(MIG_INSTANCE, "")),
        SeriesLabels(
            exported=_pod(labels, EXPORTED_NAMESPACE, EXPORTED_POD),
            native=_pod(labels, NAMESPACE, POD),
            pod_uid=labels.get(POD_UID, ""),
            node=next((labels[name] for name in NODE_NAMES if labels.get(name)), ""),
            model=labels.get(MODEL, ""),
            mig_profile=labels.get(MIG_PROFILE, ""),
            replica=labels.get(REPLICA, ""),
            job=labels.get(JOB, "") or job,
        ),
    )


def _pod(labels: Mapping[str, str], namespace: str, name: str) -> PodName | None:
    """Return the pod that two labels name; one without the other names none."""
    if labels.get(namespace) and labels.get(name):
        return PodName(labels[namespace], labels[name])
    return None

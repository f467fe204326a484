"""From a series' labels to the device it is about and the pods it names.

The one list of label names, for queries and for decoding alike. Nothing here decides which of two
label triples names the workload: both are handed over and `resolve` checks them against the API.
An empty label is an absent one (exporter 2.x printed empty labels for unallocated GPUs).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from sys import intern
from typing import Generic, TypeVar

from gpu_pruner.model.signals import DeviceId, PodName, SeriesLabels, Subject

UUID = "UUID"
OLD_UUID = "uuid"
"""Exporter 1.x, old-namespace mode, and nvidia_gpu_exporter."""
LINK_UUID = "gpu_uuid"
"""NVLink metrics of exporter 4.4 and newer, and AMD's exporter."""
ACCELERATOR_ID = "accelerator_id"
UUIDS = (UUID, OLD_UUID, LINK_UUID, ACCELERATOR_ID)
"""Labels that hold a device's UUID; a series has one of them."""

MIG_INSTANCE = "GPU_I_ID"
DRA_INSTANCE = "dra_mig_device_uuid"
PARTITION = "gpu_partition_id"
"""AMD: number of a partition; 0 is also what a whole GPU says."""
MIG_PROFILES = ("GPU_I_PROFILE", "dra_mig_profile")
EXPORTED_NAMESPACE = "exported_namespace"
EXPORTED_POD = "exported_pod"
NAMESPACE = "namespace"
POD = "pod"
OLD_PODS = (("pod_namespace", "pod_name"), ("namespace_name", "pod_name"))
"""Exporter 1.x and Google's system metrics."""
POD_UID = "pod_uid"
NODE_NAMES = ("Hostname", "hostname", "dra_pool_name")
"""Either case: exporters from 4.8.3 on write it small. A DRA pool is named after its node."""
MODELS = ("modelName", "model_name")
REPLICA = "vgpu"
JOB = "job"

DEVICE = (*UUIDS, MIG_INSTANCE, DRA_INSTANCE, PARTITION)
"""Labels that devices are told apart by."""

IDENTITY = (
    *DEVICE,
    *MIG_PROFILES,
    EXPORTED_NAMESPACE,
    EXPORTED_POD,
    NAMESPACE,
    POD,
    *sorted({label for pair in OLD_PODS for label in pair}),
    POD_UID,
    *NODE_NAMES,
    *MODELS,
    REPLICA,
    JOB,
)
"""Labels that series are told apart by. Series that differ in others only are merged by maximum:
HA replicas, driver versions, instances of a restarted exporter, Slurm jobs, pod labels."""


Key = TypeVar("Key", bound=Hashable)

MOST_SUBJECTS = 500_000
"""Label sets remembered; when there are more (churn over weeks), all are forgotten and re-read."""


class Subjects(Generic[Key]):
    """Remembers what label sets mean, so that each is read once and not in every cycle.

    A series that only changed a label which means nothing here (``Hostname`` became ``hostname``)
    keeps its subject, and so stays one track.
    """

    def __init__(
        self, read: Callable[[Key], Mapping[str, str]], *, job: str = "", node_label: str = ""
    ) -> None:
        """Make an empty memory.

        Args:
            read: returns the labels that a key stands for; called for unknown keys only.
            job: see `identify`.
            node_label: see `identify`.
        """
        self._read = read
        self._job = job
        self._node_label = node_label
        self._known: dict[Key, Subject | None] = {}
        self._same: dict[tuple[DeviceId, SeriesLabels], Subject] = {}

    def of(self, key: Key) -> Subject | None:
        """Return the subject of a label set, or None where it names no device."""
        try:
            return self._known[key]
        except KeyError:
            if len(self._known) >= MOST_SUBJECTS:
                self._known.clear()
                self._same.clear()
            subject = identify(self._read(key), job=self._job, node_label=self._node_label)
            if subject is not None:
                subject = self._same.setdefault((subject.device, subject.labels), subject)
            self._known[key] = subject
            return subject


def identify(labels: Mapping[str, str], *, job: str = "", node_label: str = "") -> Subject | None:
    """Read the labels of one series.

    Args:
        labels: label name to value.
        job: what to call the origin where the series has no ``job`` label.
        node_label: label with the node's name, where it has another one than the exporter's own.

    Returns:
        None where the series names no device (CPU metrics of the exporter, for example).
    """
    uuid = _first(labels, UUIDS)
    if not uuid:
        return None
    native = _pod(labels, NAMESPACE, POD)
    old = next((pod for pair in OLD_PODS if (pod := _pod(labels, *pair)) is not None), None)
    return Subject(
        DeviceId(uuid, _instance(labels)),
        SeriesLabels(
            # A pod in one of the old pairs is never the exporter itself.
            exported=_pod(labels, EXPORTED_NAMESPACE, EXPORTED_POD) or old,
            native=native or old,
            pod_uid=labels.get(POD_UID, ""),
            node=_first(labels, (node_label, *NODE_NAMES)),
            model=_first(labels, MODELS),
            mig_profile=_first(labels, MIG_PROFILES),
            replica=labels.get(REPLICA, ""),
            job=intern(labels.get(JOB, "") or job),
        ),
    )


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return the first of these labels that is not empty, or nothing."""
    return next((intern(labels[name]) for name in names if labels.get(name)), "")


def _instance(labels: Mapping[str, str]) -> str:
    """Return which part of the board a series is about; empty for all of it."""
    own = _first(labels, (MIG_INSTANCE, DRA_INSTANCE))
    partition = labels.get(PARTITION, "")
    return own or (partition if partition != "0" else "")


def _pod(labels: Mapping[str, str], namespace: str, name: str) -> PodName | None:
    """Return the pod that two labels name; one without the other names none."""
    if labels.get(namespace) and labels.get(name):
        return PodName(intern(labels[namespace]), intern(labels[name]))
    return None

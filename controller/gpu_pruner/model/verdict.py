"""The three verdicts, and the one list of reasons.

Every outcome of a decision is one `Reason`. Reasons are shown to everybody in the same words:
in Events, in `kubectl get gpw`, as a metric label, in the docs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Verdict(StrEnum):
    """What the evidence says. UNKNOWN never starts, advances or shortens a clock."""

    ACTIVE = "active"
    IDLE = "idle"
    UNKNOWN = "unknown"


class Reason(StrEnum):
    """Why a workload is where it is. The value is the CamelCase word that people see."""

    rule: str
    """The rule in one sentence, for the reference page."""
    source: str
    """Where the rule comes from: public reports as ``repository#number``, sections of our own
    pages as ``page#section``; separated by spaces."""

    def __new__(cls, word: str, rule: str, source: str) -> Self:
        """Keep the rule and its source beside the word."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.rule = rule
        member.source = source
        return member

    # What the evidence says.
    GPU_ACTIVE = (
        "GpuActive",
        "A trustworthy signal shows work on a device of the workload.",
        "deciding#signals",
    )
    IDLE = (
        "Idle",
        "Every device of every pod is proven idle over the whole window.",
        "deciding#three-verdicts",
    )
    # Why nothing can be said.
    NO_SERIES = (
        "NoSeries",
        "A device, or a GPU that the pod requests, has no telemetry.",
        "NVIDIA/dcgm-exporter#362 NVIDIA/dcgm-exporter#549",
    )
    NO_PRIMARY_SIGNAL = (
        "NoPrimarySignal",
        "No signal that could prove idleness is exported for the device.",
        "NVIDIA/DCGM#226 NVIDIA/dcgm-exporter#456",
    )
    LOW_COVERAGE = (
        "LowCoverage",
        "Too few steps of the window have a sample.",
        "NVIDIA/dcgm-exporter#164 NVIDIA/dcgm-exporter#340",
    )
    STALE = (
        "Stale",
        "The newest sample is too old.",
        "NVIDIA/dcgm-exporter#164 deciding#the-numbers",
    )
    OUT_OF_RANGE = (
        "OutOfRange",
        "A value is not a number or outside its signal's range.",
        "NVIDIA/DCGM#199 NVIDIA/dcgm-exporter#418",
    )
    NOT_LIVE = (
        "NotLive",
        "Energy, power and temperature do not move: the reading may be frozen.",
        "NVIDIA/gpu-monitoring-tools#188",
    )
    CONTRADICTION = (
        "Contradiction",
        "Engine activity reads idle while utilisation reads busy: the node's telemetry is suspect.",
        "NVIDIA/dcgm-exporter#662 NVIDIA/DCGM#303",
    )
    SHARED_DEVICE = (
        "SharedDevice",
        "The device is shared, and its other users are not all idle.",
        "NVIDIA/dcgm-exporter#307 NVIDIA/dcgm-exporter#568 NVIDIA/dcgm-exporter#587",
    )
    OWNER_CHANGED = (
        "OwnerChanged",
        "Another pod held the device within the window.",
        "NVIDIA/dcgm-exporter#140 kubernetes/kubernetes#119423",
    )
    DEVICE_MISMATCH = (
        "DeviceMismatch",
        "The pod's devices are not as many as the GPUs it requests.",
        "NVIDIA/dcgm-exporter#348 NVIDIA/dcgm-exporter#569",
    )
    WRONG_NODE = (
        "WrongNode",
        "The device reports from another node than the pod's, or from none of this cluster.",
        "NVIDIA/dcgm-exporter#568",
    )
    SUDDEN_SILENCE = (
        "SuddenSilence",
        "Many busy devices of several workloads fell quiet at once: a window more is waited for.",
        "deciding#breakers",
    )
    POWER_ABOVE_IDLE = (
        "PowerAboveIdle",
        "Nothing shows work, but the energy counter says that the device drew more than idle ones.",
        "deciding#signals",
    )
    UNPROVEN_METER = (
        "UnprovenMeter",
        "Nothing shows that the signal can see work on this model, so its zero proves nothing.",
        "rwlove/home-ops#13238 deciding#signals",
    )
    DEVICE_ERROR = (
        "DeviceError",
        "The device reported an Xid error within the window.",
        "NVIDIA/DCGM#303 NVIDIA/dcgm-exporter#500",
    )
    TELEMETRY_BREAKER = (
        "TelemetryBreaker",
        "Telemetry as a whole cannot be trusted in this cycle.",
        "kedacore/keda#965 deciding#breakers",
    )
    VERIFY_FAILED = (
        "VerifyFailed",
        "The full-window check of the devices could not be made.",
        "deciding#the-numbers",
    )
    # Why an idle workload is not (yet) nominated.
    TOO_YOUNG = (
        "TooYoung",
        "A pod has not been Ready for the window plus the settle time.",
        "kubeflow/kubeflow#6648 deciding#the-numbers",
    )
    POD_NOT_READY = (
        "PodNotReady",
        "A GPU pod of the workload is pending, starting or not Ready.",
        "deciding#the-numbers",
    )
    POD_TERMINATING = (
        "PodTerminating",
        "A GPU pod of the workload is being deleted.",
        "deciding#three-verdicts",
    )
    ROLLOUT_IN_PROGRESS = (
        "RolloutInProgress",
        "The root is rolling out a change or is being resized.",
        "deciding#the-numbers",
    )
    MIXED_REPLICAS = (
        "MixedReplicas",
        "The root has other replicas than the GPU pods: a pause would stop them too.",
        "deciding#three-verdicts",
    )
    EXEMPT = (
        "Exempt",
        "An exemption is set on the workload, a pod of it or its namespace.",
        "safety",
    )
    MALFORMED_EXEMPTION = (
        "MalformedExemption",
        "An exemption cannot be read, so it is honoured, and reported.",
        "safety",
    )
    KEPT = (
        "Kept",
        "Somebody asked to keep the workload until a time that has not come.",
        "deciding#the-numbers",
    )
    HELD = (
        "Held",
        "A hold is set on the workload, its namespace, or everything.",
        "deciding#the-clock",
    )
    CONTESTED = (
        "Contested",
        "Another controller took the pause back: hands off for 7 days, or until it is cleared.",
        "argoproj/argo-cd#8207 caas-team/GoKubeDownscaler#453",
    )
    PROTECTED_NAMESPACE = (
        "ProtectedNamespace",
        "The namespace is protected by the settings.",
        "safety",
    )
    # Why an idle workload is never paused.
    BARE_POD = (
        "BarePod",
        "A pod without a controller cannot be restored, so it is never touched.",
        "jupyterhub/kubespawner#697",
    )
    DAEMON_SET = (
        "DaemonSet",
        "A DaemonSet has no size that could be lowered.",
        "safety",
    )
    UNKNOWN_OWNER = (
        "UnknownOwner",
        "The controlling owner is of a kind that we do not know.",
        "NVIDIA/k8s-nim-operator#710",
    )
    OWNER_MISSING = (
        "OwnerMissing",
        "The controlling owner is not, or not yet, to be seen.",
        "safety",
    )
    NO_LEVER = (
        "NoLever",
        "The root is of a kind that we can read but have no way to pause.",
        "safety",
    )
    KIND_DISABLED = (
        "KindDisabled",
        "Pausing this kind is switched off in the settings.",
        "safety",
    )
    NOT_SELECTED = (
        "NotSelected",
        "The settings select other namespaces or GPU models (`-n`, `-m`).",
        "safety",
    )
    WARN_ONLY = (
        "WarnOnly",
        "A stop would lose this kind's progress: its owner was warned, and it is not paused.",
        "ray-project/kuberay#1667 levers",
    )
    DELETES_VOLUMES = (
        "DeletesVolumes",
        "Scaling down would delete volume claims (whenScaled: Delete).",
        "safety",
    )

    # Where an idle workload stands on its way.
    CONFIRMING = (
        "Confirming",
        "Found idle; the next cycle must agree before anybody is warned.",
        "deciding#the-clock",
    )
    WARNING = (
        "Warning",
        "Proven idle over the full window: the owner is being warned.",
        "deciding#the-clock",
    )
    WARNED = (
        "Warned",
        "The owner was warned; the pause is due at the time shown.",
        "deciding#the-clock",
    )
    NOT_DELIVERED = (
        "NotDelivered",
        "The warning reached nobody, so nothing will be done.",
        "deciding#the-numbers",
    )
    CLOCK_FROZEN = (
        "ClockFrozen",
        "The deadline moves with the clock until the evidence is back.",
        "kedacore/keda#965 deciding#the-clock",
    )
    WARNING_VOID = (
        "WarningVoid",
        "The warning was frozen too long or given in another mode; warn anew.",
        "deciding#the-clock",
    )
    OVER_BUDGET = (
        "OverBudget",
        "As many workloads are due as one cycle or hour allows; next in line.",
        "ArjunaCluster/ArjunaUsers#134 deciding#the-numbers",
    )
    DUE = (
        "Due",
        "The notice is over and a fresh full-window check agrees.",
        "deciding#the-clock",
    )
    RELEASED = (
        "Released",
        "Somebody gave the GPUs back, and nothing worked on them since: paused without notice.",
        "safety",
    )
    REFUSED = (
        "Refused",
        "The last check before the act said no.",
        "safety",
    )
    WOULD_PAUSE = (
        "WouldPause",
        "Dry run: the workload would have been paused at the time shown.",
        "deciding#the-clock",
    )
    PAUSING = (
        "Pausing",
        "The pause was ordered; its pods are not all gone yet.",
        "safety",
    )
    PAUSED = (
        "Paused",
        "The pause was ordered and its pods are gone.",
        "safety",
    )
    RESTORING = (
        "Restoring",
        "The restore was ordered; not all pods are Ready yet.",
        "hjacobs/kube-downscaler#44 safety",
    )
    RESTORED = (
        "Restored",
        "The former size was restored and reached.",
        "hjacobs/kube-downscaler#40 safety",
    )
    RESTARTED = (
        "Restarted",
        "Somebody restarted the workload after our pause: a new window begins.",
        "kubeflow/kubeflow#6648 deciding#the-clock",
    )
    ALREADY_ZERO = (
        "AlreadyZero",
        "The root is at zero, but not by us.",
        "hjacobs/kube-downscaler#40",
    )

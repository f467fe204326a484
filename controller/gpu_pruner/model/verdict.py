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

    def __new__(cls, word: str, rule: str) -> Self:
        """Keep the rule beside the word."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.rule = rule
        return member

    # What the evidence says.
    GPU_ACTIVE = "GpuActive", "A trustworthy signal shows work on a device of the workload."
    IDLE = "Idle", "Every device of every pod is proven idle over the whole window."

    # Why nothing can be said.
    NO_SERIES = "NoSeries", "A device, or a GPU that the pod requests, has no telemetry."
    NO_PRIMARY_SIGNAL = (
        "NoPrimarySignal",
        "No signal that could prove idleness is exported for the device.",
    )
    LOW_COVERAGE = "LowCoverage", "Too few steps of the window have a sample."
    STALE = "Stale", "The newest sample is too old."
    OUT_OF_RANGE = "OutOfRange", "A value is not a number or outside its signal's range."
    NOT_LIVE = "NotLive", "Energy, power and temperature do not move: the reading may be frozen."
    CONTRADICTION = (
        "Contradiction",
        "Engine activity reads idle while utilisation reads busy: the node's telemetry is suspect.",
    )
    SHARED_DEVICE = "SharedDevice", "The device is shared, and its other users are not all idle."
    OWNER_CHANGED = "OwnerChanged", "Another pod held the device within the window."
    DEVICE_MISMATCH = "DeviceMismatch", "The pod's devices are not as many as the GPUs it requests."
    WRONG_NODE = "WrongNode", "The device reports from another node than the pod runs on."
    TELEMETRY_BREAKER = "TelemetryBreaker", "Telemetry as a whole cannot be trusted in this cycle."
    VERIFY_FAILED = "VerifyFailed", "The full-window check of the devices could not be made."

    # Why an idle workload is not (yet) nominated.
    TOO_YOUNG = "TooYoung", "A pod has not been Ready for the window plus the settle time."
    POD_NOT_READY = "PodNotReady", "A GPU pod of the workload is pending, starting or not Ready."
    POD_TERMINATING = "PodTerminating", "A GPU pod of the workload is being deleted."
    ROLLOUT_IN_PROGRESS = (
        "RolloutInProgress",
        "The root is rolling out a change or is being resized.",
    )
    EXEMPT = "Exempt", "An exemption is set on the workload, a pod of it or its namespace."
    MALFORMED_EXEMPTION = (
        "MalformedExemption",
        "An exemption cannot be read, so it is honoured, and reported.",
    )
    KEPT = "Kept", "Somebody asked to keep the workload until a time that has not come."
    HELD = "Held", "A hold is set on the workload or its namespace."
    PROTECTED_NAMESPACE = "ProtectedNamespace", "The namespace is protected by the settings."

    # Why an idle workload is never paused.
    BARE_POD = "BarePod", "A pod without a controller cannot be restored, so it is never touched."
    DAEMON_SET = "DaemonSet", "A DaemonSet has no size that could be lowered."
    UNKNOWN_OWNER = "UnknownOwner", "The controlling owner is of a kind that we do not know."
    OWNER_MISSING = "OwnerMissing", "The controlling owner is not, or not yet, to be seen."
    NO_LEVER = "NoLever", "The root is of a kind that we can read but have no way to pause."
    KIND_DISABLED = "KindDisabled", "Pausing this kind is switched off in the settings."
    DELETES_VOLUMES = (
        "DeletesVolumes",
        "Scaling down would delete volume claims (whenScaled: Delete).",
    )

    # Where an idle workload stands on its way.
    CONFIRMING = "Confirming", "Found idle; the next cycle must agree before anybody is warned."
    WARNING = "Warning", "Proven idle over the full window: the owner is being warned."
    WARNED = "Warned", "The owner was warned; the pause is due at the time shown."
    NOT_DELIVERED = "NotDelivered", "The warning reached nobody, so nothing will be done."
    CLOCK_FROZEN = "ClockFrozen", "The deadline moves with the clock until the evidence is back."
    WARNING_VOID = (
        "WarningVoid",
        "The warning was frozen too long or given in another mode; warn anew.",
    )
    OVER_BUDGET = (
        "OverBudget",
        "As many workloads are due as one cycle or hour allows; next in line.",
    )
    DUE = "Due", "The notice is over and a fresh full-window check agrees."
    REFUSED = "Refused", "The last check before the act said no."
    WOULD_PAUSE = "WouldPause", "Dry run: the workload would have been paused at the time shown."
    PAUSING = "Pausing", "The pause was ordered; its pods are not all gone yet."
    PAUSED = "Paused", "The pause was ordered and its pods are gone."
    RESTORING = "Restoring", "The restore was ordered; not all pods are Ready yet."
    RESTORED = "Restored", "The former size was restored and reached."
    RESTARTED = "Restarted", "Somebody restarted the workload after our pause: a new window begins."
    ALREADY_ZERO = "AlreadyZero", "The root is at zero, but not by us."

"""What changes each outcome: one sentence per reason, for whoever wants another one.

It answers what is missing where nothing can be said, and how to get it; who ends a wish; what a
workload that may not be paused would need. Only words, and no rule: the rules stand beside the
reasons themselves. `outlook` and the reference page read it.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpu_pruner.model.verdict import Reason

REMEDIES: Mapping[Reason, str] = {
    Reason.GPU_ACTIVE: "It stays active until nothing shows work on any of its GPUs for a window.",
    Reason.IDLE: "Any work on any of its GPUs, a keep or an exemption ends it.",
    Reason.NO_SERIES: "Have the exporter of the pod's node running and scraped, with the labels of "
    "pods switched on: every GPU that the pod requests needs series that name it.",
    Reason.NO_PRIMARY_SIGNAL: "Have the exporter export engine activity "
    "(DCGM_FI_PROF_GR_ENGINE_ACTIVE), or for whole GPUs at least DCGM_FI_DEV_GPU_UTIL: both stand "
    "in its list of counters, and the first needs profiling to be available.",
    Reason.LOW_COVERAGE: "Wait until the window is covered, or find out why scrapes fail: "
    "`up` and `scrape_duration_seconds` of the exporter's job tell.",
    Reason.STALE: "Find out why the newest scrapes bring nothing: the exporter's pod, its target "
    "in the metrics server, and whatever stands between the two.",
    Reason.OUT_OF_RANGE: "The value leaves the window by itself; if it comes back, restart the "
    "exporter, or drop the metric where it is scraped.",
    Reason.NOT_LIVE: "Have energy, power or temperature exported, and restart an exporter whose "
    "values stand still. `liveness: false` in the settings asks for no movement, at your risk.",
    Reason.CONTRADICTION: "Restart the exporter (or the DCGM host engine) of that node: one of the "
    "two metrics is wrong, and nobody can tell which.",
    Reason.SHARED_DEVICE: "All shared GPUs of the node have to be idle by engine activity, because "
    "labels do not tell which pod runs on which of them.",
    Reason.OWNER_CHANGED: "Wait until the work of the pod before has left the window.",
    Reason.DEVICE_MISMATCH: "Have the exporter name the pod on each of its GPUs, and nowhere else: "
    "compare the series that carry its name with the GPUs that it requests.",
    Reason.WRONG_NODE: "Have the exporter tell the node by the name that the cluster knows, "
    "or name the label that does with `--node-label`.",
    Reason.SUDDEN_SILENCE: "Wait for one more window: so many at once may be a metric that died.",
    Reason.POWER_ABOVE_IDLE: "Look at what draws the power: the process may work in a way that no "
    "exported signal sees. More signals in the exporter's list of counters would show it.",
    Reason.UNPROVEN_METER: "List the model in `measurable_models` if you know that the signal "
    "shows work on it, or let it be seen at work once.",
    Reason.DEVICE_ERROR: "Look at the node's kernel log for the Xid code: a GPU that failed reads "
    "zero, too.",
    Reason.TELEMETRY_BREAKER: "The breaker says what is wrong and what would fix it.",
    Reason.VERIFY_FAILED: "Ask again; if it fails again, the metrics server's log tells why.",
    Reason.TOO_YOUNG: "Wait: a pod is judged after the window and the settle time, since Ready.",
    Reason.POD_NOT_READY: "Wait until its pods are Ready, or find out why they are not.",
    Reason.POD_TERMINATING: "Wait until the pod is gone.",
    Reason.ROLLOUT_IN_PROGRESS: "Wait until as many pods are Ready as it wants, or find out what "
    "the rollout hangs on.",
    Reason.MIXED_REPLICAS: "All of its replicas have to be GPU pods: a pause takes every one.",
    Reason.EXEMPT: "Whoever set the exemption can take it away.",
    Reason.MALFORMED_EXEMPTION: "Write the exemption as true, false or a time with its zone.",
    Reason.KEPT: "It ends at the time shown, or when whoever asked takes it back.",
    Reason.HELD: "Whoever set the hold can take it away; until then its clock stands still.",
    Reason.CONTESTED: "Settle who sets its size, then delete its GPUWorkload.",
    Reason.PROTECTED_NAMESPACE: "Only `protected_namespaces` in the settings changes this.",
    Reason.BARE_POD: "Run it under a controller, for example a Deployment or a Notebook.",
    Reason.DAEMON_SET: "Nothing: it runs where its nodes are.",
    Reason.UNKNOWN_OWNER: "Describe its owner's kind under `custom_levers` in the settings.",
    Reason.OWNER_MISSING: "Wait until its owner is seen, or allow us to read that kind.",
    Reason.NO_LEVER: "Describe a way to pause the kind under `custom_levers` in the settings.",
    Reason.KIND_DISABLED: "Switch its kind on with `enabled_kinds` (`-e`).",
    Reason.NOT_SELECTED: "Widen `namespaces` (`-n`) or `models` (`-m`) in the settings.",
    Reason.WARN_ONLY: "Take its kind out of `warn_only_kinds`, if it may lose its progress.",
    Reason.DELETES_VOLUMES: "Let it retain its volume claims (`whenScaled: Retain`).",
    Reason.CONFIRMING: "Any work, a keep or an exemption ends it; the next cycles have to agree.",
    Reason.WARNING: "Any work, a keep or an exemption ends it.",
    Reason.WARNED: "Any work, a keep or an exemption ends it.",
    Reason.NOT_DELIVERED: "Find out why no message goes out; nothing is done until one does.",
    Reason.CLOCK_FROZEN: "What stopped the clock has to end; a warning that stood still for longer "
    "than a window is given anew.",
    Reason.WARNING_VOID: "Nothing is missing: it is measured and warned anew.",
    Reason.OVER_BUDGET: "Wait for its turn, or raise `budget` in the settings.",
    Reason.DUE: "It is too late for a wish to arrive before the pause; resume gives it back.",
    Reason.RELEASED: "It is too late to take the release back; resume gives the GPUs back to it.",
    Reason.REFUSED: "The refusal says what stood against the pause.",
    Reason.WOULD_PAUSE: "Nothing more happens in dry run. Work, a keep or an exemption ends it.",
    Reason.PAUSING: "Wait until its pods are gone; a keep still gives it back.",
    Reason.PAUSED: "`gpu-pruner resume` gives it back.",
    Reason.RESTORING: "Wait until its pods are Ready.",
    Reason.RESTORED: "Nothing is missing: a new window has begun.",
    Reason.RESTARTED: "Nothing is missing: a new window has begun.",
    Reason.ALREADY_ZERO: "Whoever set its size to zero can raise it.",
}
"""By reason, every one of them."""

"""Every annotation and label key that we read or write, in one list.

Anyone who can edit a workload can write these: their values are hostile input and are parsed
in `resolve.annotations` only. Nothing is written onto a workload before its pause.
"""

from __future__ import annotations

PREFIX = "gpu-pruner.io/"

PAUSED = "gpu-pruner.io/paused"
"""Written by us, on the lever object, in the patch that pauses it: the pause record, JSON."""

LAST_CYCLE = "gpu-pruner.io/last-cycle"
"""Written by us, on our Lease: when a leader last completed a cycle."""

EXEMPT = "gpu-pruner.io/exempt"
"""Read (label or annotation; root, pod or namespace): ``true``, ``false``, or a time."""

HOLD = "gpu-pruner.io/hold"
"""Read (root or namespace): no acts, and clocks stand still."""

WINDOW = "gpu-pruner.io/window"
"""Read: the judged window of this workload, within policy bounds."""

IDLE_THRESHOLD = "gpu-pruner.io/idle-threshold"
"""Read: the engine-activity ratio below which it counts as idle, within policy bounds."""

NOTICE = "gpu-pruner.io/notice"
"""Read: time between the delivered warning and the pause, within policy bounds."""

OWNER = "gpu-pruner.io/owner"
"""Read (root, pod or namespace): who to tell, as e-mail addresses, user names or Slack mentions."""

SLACK_MENTIONS = "gpu-pruner.io/slack-mentions"
"""Read (root, pod or namespace), beside the owner: who to tell; also known to the Rust tool."""

ACK_UNTIL = "gpu-pruner.io/ack-until"
"""Read: the Rust tool's keep, a time with its offset."""

ACK_BY = "gpu-pruner.io/ack-by"
"""Read: who gave the Rust tool's keep."""

PENDING_SCALE_AT = "gpu-pruner.io/pending-scale-at"
"""Read: the Rust tool's deadline."""

NOTEBOOK_STOPPED = "kubeflow-resource-stopped"
"""Kubeflow's own lever: written to pause a Notebook, removed to restore it."""

NOTEBOOK_LOCK = "odh-notebook-controller-lock"
"""Value of `NOTEBOOK_STOPPED` that Open Data Hub uses as a start-up lock: not a stop."""

KSERVE_STOP = "serving.kserve.io/stop"
"""KServe's own lever: ``true`` (in any case) takes an InferenceService's pods away."""

KSERVE_FROZEN = "serving.kserve.io/disable-auto-update"
"""Read: while ``true``, KServe's controller leaves a Ready InferenceService alone, so that nothing
would stop it."""

KEDA_PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
"""KEDA's own lever, on the ScaledObject: holds its target at this size, whatever is asked of it."""

KEDA_PAUSED = "autoscaling.keda.sh/paused"
"""KEDA's other lever: holds its target at the size that it has. Never written by us; where it is
set beside `KEDA_PAUSED_REPLICAS`, that one counts."""

NOTEBOOK_USERNAME = "opendatahub.io/username"
"""Read, on the root or its pods: who made a workbench, as Open Data Hub's dashboard writes it."""

NOTEBOOK_CREATOR = "notebooks.kubeflow.org/creator"
"""Read, on the root or its pods: who made a Notebook, as Kubeflow's web app writes it."""

WORKSPACE_CREATOR = "notebooks.kubeflow.org/created-by"
"""Read, on the root or its pods: who made a Workspace, as Kubeflow's backend writes it."""

PROFILE_OWNER = "owner"
"""Read, on a namespace: whose it is, as Kubeflow's Profile controller writes it."""

LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
"""Read, a label: the pod is one of a LeaderWorkerSet. Never trusted for whose it is."""

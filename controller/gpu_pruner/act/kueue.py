"""Pausing a job that Kueue admitted: `active` of its Workload. Called through `act.governors`.

Kueue resumes a job that somebody else suspends, and keeps one suspended whose Workload is not
active (kubernetes-sigs/kueue#4799). Restoring means asking for admission anew: the job may queue.
"""

from __future__ import annotations

from gpu_pruner.act.switches import SwitchLever
from gpu_pruner.kube.resources import KUEUE_WORKLOADS

KUEUE_WORKLOAD = SwitchLever(KUEUE_WORKLOADS, ("active",), stopped=False)
